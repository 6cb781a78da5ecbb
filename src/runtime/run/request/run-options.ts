import { checkWhole, notAChoice } from '../../../core/wording/choices.js'
import { InvalidOptionError } from '../../../core/errors.js'
import type { OptionNames } from '../../../core/wording/option-names.js'
import type { RetentionPolicy } from '../../../core/retention.js'
import type { ParentRef } from '../../child/child-records.js'
import type { RunEvent } from '../../events/events.js'
import type { OnPaused } from '../input/given-input.js'
import { checkRecordPolicy, type Durable, type Frequency, type RecordPolicy } from '../record/record-policy.js'
import type { OnCorrupt } from './on-log.js'

/** How one run behaves. Everything is optional. */
export interface RunOptions<Input = unknown> {
  /** What the run works on. If omitted, an unfinished run is resumed. */
  readonly input?: Input
  /**
   * Identifies this input, such as a message id: for as long as the thread lives, the same key does not run twice, and
   * the recorded outcome is returned when it is given again. Default: none, and an input with the same content only
   * resumes a run that was interrupted or failed.
   */
  readonly key?: string
  /**
   * Initial values for a thread that starts with this input: keys of the program's state, for an agent also `memory`.
   * Refused on an existing thread, unless the same input is given again.
   */
  readonly initial?: Readonly<Record<string, unknown>>
  /**
   * The context of this run; available to the program as `ctx.context`, and to tools. It is recorded with the run, so
   * that whoever resumes the run has it, except for what the program declares as `transientContext`: secrets,
   * connections. On a resumed run it is merged over what the run was started with.
   */
  readonly context?: unknown
  /**
   * Stops the run where it is: `run` rejects with an error named `AbortError`, the thread is released, and any process
   * can resume it. If the store hangs, it still rejects, and the thread is released when the store recovers, or when
   * its lease has run out. To end a run for good, use `thread.cancel()`.
   */
  readonly signal?: AbortSignal
  /** Whether the next step waits until the record of the last one is acknowledged. Default 'sync': it does. */
  readonly durability?: Durable
  /** How often the run writes. Default 'step': one record per step. */
  readonly frequency?: Frequency
  /**
   * What to do while another process runs this thread. Default 'reject': the outcome is `busy` and the input is
   * refused. 'queue' leaves the input in the log immediately and waits for its turn; 'interrupt' also cancels the
   * current run.
   */
  readonly busy?: 'reject' | 'queue' | 'interrupt'
  /**
   * What to do with new input if the run before it can't continue: it is waiting for an answer, a signal or a point in
   * time, or it is retried and fails. 'return' refuses the input, 'queue' leaves it in the log for later; either way,
   * the outcome is that of the run before it. 'cancel' drops a waiting run and takes the input; behind a run that
   * fails, it is refused. Default 'return', and 'queue' if `busy` is 'queue' or 'interrupt'.
   */
  readonly onPaused?: OnPaused
  /**
   * What to do if the newest state does not verify. Default 'fail': the error is thrown. 'lastGood' continues from the
   * newest checkpoint that does, 'restart' starts over, both on a branch next to the damaged one. There, effects that
   * reach the outside world ask first: they may have happened before the damage.
   */
  readonly onCorrupt?: OnCorrupt
  /** 'existing': history is expected; if it is gone the outcome says `restarted`. */
  readonly expect?: 'existing'
  /** How long the thread stays claimed without a heartbeat, in milliseconds. Default 10,000. */
  readonly leaseMs?: number
  /** Sleeps up to this long are waited for; longer ones suspend the run. Default 1,000 ms. */
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

const MOST_LEASE_MS = 24 * 60 * 60 * 1000

/** Refused by the name it was given under, and before a worker starts that could never claim anything. */
export function checkLease(leaseMs: number | undefined): void {
  if (leaseMs !== undefined) checkWhole('leaseMs', leaseMs, MOST_LEASE_MS, 'Pass milliseconds, for example 10_000.')
}

/** Settings that only workers use. */
export interface RequestOptions extends RunOptions {
  readonly hasInput: boolean
  readonly emit: (event: RunEvent) => void
  /** True when no further step should start. */
  readonly isDraining?: () => boolean
  /** Ends the run at its next step, for another that must run alone. Absent: someone is waiting for this one. */
  readonly makeRoom?: () => void
  /** A run that was claimed this often without progress is parked. */
  readonly maxClaims?: number
  /** The context applies to every run that has none, or lacks what was not recorded. */
  readonly fillsContext?: boolean
  /** It applies only to the run of the input with this key. */
  readonly fillsOnly?: string
  readonly owner?: string
  /** Settings for this thread alone. */
  readonly retention?: RetentionPolicy
  /** An entry of the log that is known to be there. */
  readonly atLeast?: number
  /** By the store's clock it is at least this late, whatever the clock here says. */
  readonly notBefore?: number
  /** Who awaits the run of this input. */
  readonly parent?: ParentRef
  /** Calls the program even if it only waits for children. */
  readonly revisits?: boolean
  /** Continues this run, and no other: which, and an entry that it was in progress at. */
  readonly only?: { readonly run: string; readonly since: number }
}

/** How input is left for a worker. */
export interface EnqueueOptions {
  /** Identifies this input: the same key does not run twice, for as long as the thread lives. */
  readonly key?: string
  /**
   * What to do if the thread has an unfinished run, whether it runs, waits or failed, or earlier input. 'queue' (the
   * default) leaves the input behind it, 'interrupt' also cancels that run, 'reject' leaves nothing.
   */
  readonly busy?: 'queue' | 'interrupt' | 'reject'
  /** Initial values for a thread that starts with this input. */
  readonly initial?: Readonly<Record<string, unknown>>
  /** The context of its run, recorded with it. What is transient has to come from the worker. */
  readonly context?: unknown
  /**
   * When its turn comes, by the store's clock: a Date, or milliseconds since 1970. Until then the thread is at rest,
   * and other input is taken before it. A known key keeps the time it was first given.
   */
  readonly runAt?: Date | number
  /**
   * Larger values come first; among equal ones, the one that has waited longest. A whole number from -1000 to 1000.
   * Default 0. The thread keeps the highest priority it was given until it is at rest.
   */
  readonly priority?: number
  /**
   * The key that workers' limits with `per: 'key'` are counted by, such as the id of a customer. The thread keeps it
   * until it is at rest.
   */
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

/** What happened to input that was left for a worker. */
export interface Enqueued {
  /**
   * It is waiting for its turn; or its key was known and its run has started; or it was refused, and none of it is
   * kept.
   */
  readonly input: 'queued' | 'taken' | 'refused'
  /** The id of its run. Undefined if it was refused, and for a key whose run ended in entries that were pruned. */
  readonly run: string | undefined
  /** The run of its key is over: `run` with the same input and key returns how it ended, and does not run it again. */
  readonly ended: boolean
  /**
   * The newest checkpoint, for `events({ after })`: everything that happens from now on. Undefined if there is no
   * thread.
   */
  readonly checkpoint: string | undefined
}

// A misspelled value here must not fall through to the last choice: 'restart' leaves a conversation behind.
export function checkChoices(options: RequestOptions): void {
  const choices: readonly (readonly [keyof RequestOptions, readonly string[]])[] = [
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
