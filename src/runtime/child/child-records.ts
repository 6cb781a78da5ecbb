import type { Value } from '../../codec/value.js'
import type { RecordedError } from '../errors.js'
import type { RunLimit, RunRecord } from '../run/state/run-state.js'
import { createHash } from 'node:crypto'
import { MAX_ID_BYTES, parseThreadId, type ThreadId, threadIdInput } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'

/**
 * The name of a child among those of its parent: derived from the place that awaits it, in this run, on this branch, in
 * this incarnation of the thread. The generation is raised when the child is over and is to be started again.
 */
export function nameChild(
  { tenant, thread, branch }: LogKey,
  run: RunRecord,
  step: string,
  generation: number,
): string {
  return shorten([tenant, thread, run.incarnation ?? '', branch, run.id, step, generation], 24)
}

/** The key of the input that begins a child: given twice, it is taken once. */
export function inputKeyOf(child: string): string {
  return `child ${child}`
}

/**
 * The thread that a child runs on unless the program names one: below its parent's, and a different one for each run
 * and branch of it. Parts of a structured id stay, so that a search for a user's threads finds these too.
 */
export function childThread(parent: LogKey, run: RunRecord, step: string, id: string): ThreadId {
  const of = threadIdInput(parent.thread)
  const mark = shorten([parent.tenant, parent.thread, run.incarnation ?? '', parent.branch, run.id, step], 10)
  const name = `${id}~${mark}`
  const whole =
    typeof of === 'string'
      ? `${of}/${name}`
      : { ...of, child: of['child'] === undefined ? name : `${of['child']}/${name}` }
  try {
    return parseThreadId(whole)
  } catch {
    // Deeply nested, or an id that already uses all the space.
    const short = shorten([parent.tenant, parent.thread, step, mark], 32)
    const root = typeof of === 'string' ? [...of].slice(0, (MAX_ID_BYTES - 64) / 4).join('') : undefined
    return parseThreadId(root === undefined ? `child~${short}` : `${root}~${short}`)
  }
}

function shorten(parts: readonly unknown[], length: number): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, length)
}

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
