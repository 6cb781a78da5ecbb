import type { Value } from '../../codec/value.js'
import type { RecordedError } from '../errors.js'
import type { RunLimit } from '../run/state/run-state.js'

/** A child of the current run, from the moment before it is started until its parent has taken its outcome. */
export interface ChildRecord {
  /** The thread it runs on, in its stored form. */
  readonly thread: string
  readonly program: string
  /** The place in the parent that awaits it. */
  readonly step: string
  /** For one that failed before and is retried: how often it had been picked up by then. An older end says nothing. */
  readonly after?: number
  /** Its outcome, left here by whoever ended it. */
  readonly ended?: ChildEnd
}

/** How the run of a child ended. */
export interface ChildEnd {
  readonly status: 'completed' | 'limited' | 'failed' | 'cancelled' | 'incompatible' | 'gone'
  /** The id of that run; empty where it is not known anymore. */
  readonly run: string
  /** How often it was picked up. */
  readonly takes: number
  readonly output?: Value
  readonly error?: RecordedError
  readonly limit?: RunLimit
  /** For one that a limit ended: what it had done by then. */
  readonly done?: Value
}

/** Who awaits a run: kept with its input, and with the run. */
export interface ParentRef {
  readonly thread: string
  readonly branch: string
  /** The incarnation of the thread: one that was erased and created again awaits nothing. */
  readonly incarnation: string
  /** The name of this child among those of its parent. */
  readonly child: string
  /** The thread is the parent's own, and not one that was named for it. */
  readonly own?: true
  /** The threads above the parent, nearest first: awaiting one of them would never end. */
  readonly above?: readonly string[]
}

/** What the end of a run owes to other threads. The thread stays due until it is done. */
export type Errand =
  | { readonly do: 'tell'; readonly parent: ParentRef; readonly run: string; readonly key?: string }
  | {
      readonly do: 'cancel'
      readonly thread: string
      readonly key: string
      readonly reason: string
      readonly by?: string
    }
