import type { RunObserver } from '../../telemetry/observer.js'
import type { Children } from '../child/run-with-children.js'
import type { LiveEvent } from '../events/events.js'
import type { ReplayScript } from '../history/replay-script.js'
import type { RecordedReads } from './record/recorded-reads.js'
import type { LazyAbort } from '../../core/async/lazy-abort.js'
import type { RunLimit, Waiting } from './state/run-state.js'

/** How far a program got. */
export type Drive =
  | { readonly status: 'completed'; readonly output: unknown; readonly limit?: RunLimit | undefined }
  | { readonly status: 'failed'; readonly error: unknown; readonly others?: readonly unknown[] }
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }

/** The lease of a claim, as far as effects go by it. */
export interface Lease {
  readonly isSure: boolean
  secure(): Promise<void>
  beat(): Promise<void>
}

/** What a run is driven with. */
export interface RunTerms {
  readonly context: unknown
  readonly abort: LazyAbort
  readonly emit: (event: LiveEvent) => void
  /** Undefined if there is no claim. */
  readonly lease?: Lease | undefined
  /**
   * Since when something may have been in progress that nobody recorded; undefined if the run was at rest before us.
   */
  readonly openSince?: number | undefined
  /** Sleeps up to this long are waited for. */
  readonly inlineSleepMs: number
  /** True if no further step should start: what is running may finish, then the run stops here. */
  readonly isDraining?: (() => boolean) | undefined
  /** Results of steps that only read, from the branch that this one was forked from. */
  readonly recordedReads?: RecordedReads | undefined
  /** Nothing runs: results come from here. */
  readonly replay?: ReplayScript
  /** Through which other threads are begun; undefined where nothing is recorded. */
  readonly children?: Children | undefined
  /** Told what the run does. */
  readonly watch?: RunObserver
}
