import { notAChoice } from '../../core/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { OptionNames } from '../../core/option-names.js'
import type { RetentionPolicy } from '../../core/retention.js'
import type { ParentRef } from '../child/child-records.js'
import type { RunEvent } from '../events/events.js'
import type { OnPaused } from './given-input.js'
import { checkRecordPolicy, type Durable, type Frequency, type RecordPolicy } from './record-policy.js'
import type { OnCorrupt } from './recover.js'

/** How one run behaves. All of it can be left out. */
export interface RunOptions<Input = unknown> {
  /** What the run works on. Left out: an unfinished run is resumed. */
  readonly input?: Input
  /**
   * Names this input, such as a message id: for as long as the thread lives it is not taken twice, and the recorded
   * outcome is returned when it is given again. Default: none, and an input of the same content only resumes a run that
   * was interrupted or failed.
   */
  readonly key?: string
  /**
   * What the state of a thread that begins with this input holds before it: keys of the program's state, of an agent also
   * `memory`. Refused on a thread that exists, unless the same input is given again.
   */
  readonly initial?: Readonly<Record<string, unknown>>
  /**
   * What this run brings along; handed to the program as `ctx.context`, and to tools. It is recorded with the run, so that
   * whoever resumes the run has it, but for what the program declares as `transientContext`: secrets, connections. On a run
   * that is resumed it is laid over what the run was begun with.
   */
  readonly context?: unknown
  /**
   * Stops the run where it is: `run` rejects with an error named `AbortError`, the thread is let go of, and any process
   * can resume it. While the store hangs it rejects all the same, and the thread is released when the store goes on, or
   * when its lease has run out. To end a run for good, use `thread.cancel()`.
   */
  readonly signal?: AbortSignal
  /** Whether the next step waits until the last one's record is acknowledged. Default 'sync': it does. */
  readonly durability?: Durable
  /** How often the run writes. Default 'step': one record per step. */
  readonly frequency?: Frequency
  /**
   * What to do while another runs this thread. Default 'reject': the outcome is `busy` and the input refused. 'queue'
   * leaves the input in the log at once and waits for its turn; 'interrupt' also cancels the run under way.
   */
  readonly busy?: 'reject' | 'queue' | 'interrupt'
  /**
   * What to do with new input when the run before it can't go on: it waits for an answer, a signal or a time, or it is
   * tried again and fails. 'return' refuses the input, 'queue' leaves it in the log for later; the outcome is that of the
   * run before it either way. 'cancel' drops a run that waits and takes the input; behind one that fails it is refused.
   * Default 'return', and 'queue' where `busy` is 'queue' or 'interrupt'.
   */
  readonly onPaused?: OnPaused
  /**
   * What to do when the newest state does not verify. Default 'fail': the error is thrown. 'lastGood' goes on from the
   * newest checkpoint that does, 'restart' from nothing, both on a branch beside the damaged one. There, effects that
   * reach outside ask first: they may have happened before the damage.
   */
  readonly onCorrupt?: OnCorrupt
  /** 'existing': history is expected; if it is gone the outcome says `restarted`. */
  readonly expect?: 'existing'
  /** How long the thread stays claimed without a sign of life, in milliseconds. Default 10,000. */
  readonly leaseMs?: number
  /** Sleeps up to this long are waited for, longer ones suspend the run. Default 1,000 ms. */
  readonly inlineSleepMs?: number
}

/** What `run` and `stream` know. */
export const RUN_OPTIONS: OptionNames<RunOptions> = {
  input: true,
  key: true,
  initial: true,
  context: true,
  signal: true,
  durability: true,
  frequency: true,
  busy: true,
  onPaused: true,
  onCorrupt: true,
  expect: true,
  leaseMs: true,
  inlineSleepMs: true,
}

/** Settings that only workers use. */
export interface DriveOptions extends RunOptions {
  readonly hasInput: boolean
  readonly emit: (event: RunEvent) => void
  /** True when no further step should start. */
  readonly isDraining?: () => boolean
  /** Ends the run at its next step, for another that must run alone. Absent: someone waits for this one. */
  readonly makeRoom?: () => void
  /** A run that was claimed this often without progress is parked. */
  readonly maxClaims?: number
  /** The context is for every run that has none, or lacks what was not recorded. */
  readonly fillsContext?: boolean
  readonly owner?: string
  /** What was said of this thread alone. */
  readonly retention?: RetentionPolicy
  /** An entry of the log that is known to be there. */
  readonly atLeast?: number
  /** By the store's clock it is this late, or later, whatever the clock here says. */
  readonly notBefore?: number
  /** Who awaits the run of this input. */
  readonly parent?: ParentRef
  /** Calls the program also where it only waits for children. */
  readonly revisits?: boolean
}

/** How input is left for a worker. */
export interface EnqueueOptions {
  /** Names this input: it is not taken twice, for as long as the thread lives. */
  readonly key?: string
  /**
   * What to do when the thread has a run that is not over, whether it runs, waits or failed, or input before this one.
   * 'queue' (the default) leaves the input behind it, 'interrupt' also cancels that run, 'reject' leaves nothing.
   */
  readonly busy?: 'queue' | 'interrupt' | 'reject'
  /** What the state of a thread that begins with this input holds before it. */
  readonly initial?: Readonly<Record<string, unknown>>
  /** What its run brings along, recorded with it. What is transient has to come from the worker. */
  readonly context?: unknown
  /**
   * When its turn comes, by the store's clock: a Date, or milliseconds since 1970. Until then the thread rests, and other
   * input is taken before it. A key that is known keeps the time it was first given.
   */
  readonly runAt?: Date | number
  /**
   * Larger comes first, of the same the one that has waited longest: a whole number from -1000 to 1000. Default 0. The thread
   * keeps the highest of what it was given until it rests.
   */
  readonly priority?: number
  /** What limits `per: 'key'` of workers are counted by, such as the id of a customer. The thread keeps it until it rests. */
  readonly limitKey?: string
}

/** What `enqueue` knows. */
export const ENQUEUE_OPTIONS: OptionNames<EnqueueOptions> = {
  key: true,
  busy: true,
  initial: true,
  context: true,
  runAt: true,
  priority: true,
  limitKey: true,
}

/** What became of input that was left for a worker. */
export interface Enqueued {
  /** It waits for its turn; or its key was known and its run has begun; or it was refused, and nothing of it is kept. */
  readonly input: 'queued' | 'taken' | 'refused'
  /** The id of its run. Undefined when it was refused, and for a key whose run ended in entries that were pruned. */
  readonly run: string | undefined
  /** The run of its key is over: `run` with the same input and key tells how it ended, and does not run it again. */
  readonly ended: boolean
  /** The newest checkpoint, for `events({ after })`: all that happens from now on. Undefined where there is no thread. */
  readonly checkpoint: string | undefined
}

// What is misspelt here must not pick the choice that happens to be last: 'restart' leaves a conversation behind.
export function checkChoices(options: DriveOptions): void {
  const choices: readonly (readonly [keyof DriveOptions, readonly string[]])[] = [
    ['busy', ['reject', 'queue', 'interrupt']],
    ['onPaused', ['return', 'queue', 'cancel']],
    ['onCorrupt', ['fail', 'lastGood', 'restart']],
    ['expect', ['existing']],
  ]
  for (const [field, known] of choices) {
    const value = options[field]
    if (value === undefined || known.includes(value as string)) continue
    throw notAChoice(field, value, known)
  }
}

/** Before anything is claimed. */
export function checkSettings(policy: RecordPolicy): void {
  checkRecordPolicy(policy)
  if (policy.frequency === 'none' && policy.durability !== 'sync') {
    throw new InvalidOptionError('durability', "has no meaning with frequency 'none'", 'Leave one of them out.')
  }
}
