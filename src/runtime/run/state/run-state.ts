import type { Value } from '../../../codec/value.js'
import type { Path, State } from '../../../log/entry/ops.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import type { Effect } from '../../step/context.js'
import type { FailedChild, RecordedError } from '../../errors.js'
import type { ChildRecord, Errand, ParentRef } from '../../child/child-records.js'
import type { ThreadIdInput } from '../../../core/ids.js'
import type { Joins, Task } from '../../program/program.js'

/** Everything the runtime keeps in a log's fold. Written only as ops, read as plain data. */
export interface RunState {
  /** The program's own state. */
  readonly state?: State
  readonly run?: RunRecord
  /** The tasks of the super-step that is in progress. */
  readonly tasks?: readonly TaskRecord[]
  readonly joins?: Joins
  /** What the tasks of this super-step, or this flow, have finished or begun. */
  readonly steps?: Readonly<Record<string, StepRecord>>
  /** Subgraphs that are in progress, by the path of their task. */
  readonly scopes?: Readonly<Record<string, ScopeState>>
  readonly pauses?: Readonly<Record<string, PauseRecord>>
  /** Questions that no longer take an answer, newest last. */
  readonly closed?: readonly ClosedPause[]
  /** Inputs that wait for their turn. */
  readonly inputs?: readonly InputRecord[]
  /** Inputs whose time has not come, in the order in which they were given. Absent in what 0.1 wrote. */
  readonly later?: readonly LaterInput[]
  readonly signals?: Readonly<Record<string, readonly SignalRecord[]>>
  /** Threads that the current run has begun and awaits, by the name that each has here. */
  readonly children?: Readonly<Record<string, ChildRecord>>
  /** What runs that ended owe to other threads, oldest first. */
  readonly errands?: readonly Errand[]
  readonly cancel?: CancelRecord
  /** Claims since the last progress: a thread that crashes its workers is parked. */
  readonly claims?: number
  /** How many of these ran alone in their process: only those are evidence. */
  readonly alone?: number
  /** Since when the thread has not come to rest cleanly: what was in progress then may have happened. */
  readonly openSince?: number
  /** Its previous process continued before its records were acknowledged: steps further on may have happened too. */
  readonly ahead?: true
  /** Runs that may have gone further than the log says: the store came back and may have lost what was newest. */
  readonly gap?: GapRecord
  /** Why nothing picks up this thread by itself anymore. */
  readonly parked?: RecordedError
  /** Set on a branch that time travel made. */
  readonly fork?: ForkRecord
  /**
   * For runs that were ended without their program: recorded results that are not yet part of the state. The program
   * brings them in before it takes its next input.
   */
  readonly left?: readonly LeftRecord[]
  /** The keys of all inputs whose runs have ended on this branch, for as long as the thread lives. */
  readonly keys?: KeyIndex
  /** Those of the branches that this one comes from, up to where it parted from them. */
  readonly keysOf?: Readonly<Record<string, KeyIndex>>
  /** Names and keys of the signals that were sent with a key. */
  readonly signalKeys?: KeyIndex
  /** Begun under a policy that lets threads expire. Absent in what 0.1 wrote, and in what was begun under 'keep'. */
  readonly retention?: true
  /** Where 0.1 kept the keys of the last hundred inputs, newest last. Carried over to `keys` when the next run ends. */
  readonly taken?: readonly TakenInput[]
}

/**
 * Keys by the start of their hash, then by the rest of it, with the seq of the entry that ended the run, and how where
 * it was not completed. `[seq]`: how is not known; `[]`: nor where.
 */
export type KeyIndex = Readonly<
  Record<string, Readonly<Record<string, number | readonly [seq?: number, ended?: 'cancelled']>>>
>

/** Where records may be missing. */
export interface GapRecord {
  /** The time of the newest record that was left: what is missing came after it. */
  readonly since: number
  /** The runs that were in progress then or had yet to begin, by the ids of their inputs. */
  readonly runs: readonly string[]
}

/** What a forked branch may do. */
export interface ForkRecord {
  readonly branch: string
  readonly seq: number
  /** Effects that reach outside: a person is asked, they run, or they are refused. */
  readonly effects: 'ask' | 'allow' | 'deny'
  /** Steps that only read: they run, or their results are taken from the branch that this one came from. */
  readonly reads: 'live' | 'recorded'
  /** It started over next to a branch that can't be read, and has nothing from it. */
  readonly restarted?: true
}

export type ScopeState = Pick<RunState, 'state' | 'tasks' | 'joins' | 'steps' | 'scopes'> & {
  readonly count?: number
  /** Of the subgraph's own state. */
  readonly stateVersion?: number
}

/** The super-step that was in progress when a run was ended. */
export interface LeftRecord extends Pick<RunState, 'tasks' | 'steps' | 'scopes'> {
  readonly run: string
  readonly stateVersion: number
  readonly questions?: readonly LeftQuestion[]
}

/** A question about one of its tasks, and the answer if there was one. */
export interface LeftQuestion {
  /** The place that asked. */
  readonly path: string
  readonly answer?: Value
}

export interface RunRecord {
  /** The id of its input. */
  readonly id: string
  readonly number: number
  readonly status: 'running' | 'completed' | 'failed' | 'cancelled' | 'incompatible'
  readonly kind: 'graph' | 'flow'
  readonly program: string
  readonly version: string
  readonly stateVersion: number
  readonly key?: string
  readonly inputHash: string
  /** Kept only for flows, whose function is called again with it. */
  readonly input?: Value
  /** What `run({ context })` brought, while the run is in progress. Absent in records of 0.1, which kept none. */
  readonly context?: Value
  /** What of it is not kept: these keys, or all. Whoever resumes the run has to bring it. */
  readonly transient?: true | readonly string[]
  readonly startedAt: number
  /** The life of the thread in which it began, part of its idempotency keys. Absent in runs begun by 0.1. */
  readonly incarnation?: string
  /** Who awaits it. Absent where nobody does: most runs are begun by a caller. */
  readonly parent?: ParentRef
  /** The span in which it began, if it was traced: spans of whoever resumes it refer to it. */
  readonly trace?: string
  /** Super-steps that were closed. */
  readonly count: number
  /** How often it was picked up. */
  readonly takes: number
  /** Where the records of the failed steps lie that made it fail: they are tried again when it is resumed. */
  readonly retry?: readonly Path[]
  /**
   * Those of failed steps which it may stem from or have continued from. Absent in records of 0.1, and while it runs.
   */
  readonly doubt?: readonly Path[]
  readonly output?: Value
  readonly error?: RecordedError
  /** Of a completed run that was ended by a limit of its program. Absent in records of 0.1, which called it completed. */
  readonly limit?: RunLimit
  /** What a suspended run waits for. */
  readonly waiting?: readonly Waiting[]
  /**
   * Questions that were answered or had expired when the run began to wait, and that it did not reach: another version of
   * the program asked them. They are no news to it as long as they stay as they were.
   */
  readonly passed?: Readonly<Record<string, 'answered' | 'expired'>>
  /** The version of the program that did not reach them. */
  readonly passedBy?: string
}

/** The limit that ended a run before its program was done. */
export interface RunLimit {
  /** Which, such as 'max-turns'. */
  readonly limit: string
  /** In words. */
  readonly reason: string
}

/** What a run waits for besides answers. */
export type Waiting =
  | { readonly kind: 'sleep'; readonly step: string; readonly until: number }
  | { readonly kind: 'signal'; readonly step: string; readonly name: string; readonly until?: number }
  | {
      readonly kind: 'child'
      readonly step: string
      /** The thread whose end is awaited. */
      readonly thread: ThreadIdInput
      readonly program: string
      /** The name that it has among the children of this run. */
      readonly child: string
      readonly until?: undefined
    }

export interface TaskRecord extends Task {
  /** Unique among the tasks of the run. */
  readonly id: string
}

/** Instead of the hash of an input, in exported records that text was taken out of: whatever comes is the same. */
export const ANY_INPUT = '*'

export interface StepRecord {
  readonly status: 'started' | 'retry' | 'done' | 'failed' | 'waiting'
  /** The hash of its input, or ANY_INPUT. */
  readonly input?: string
  readonly effect?: Effect
  readonly result?: Value
  readonly error?: RecordedError
  /** Of an effect whose outcome is not known: what it wrote to the store, which is to happen if it turns out to have. */
  readonly writes?: readonly StoreWrite[]
  /** The run was resumed after a failure that may stem from this one: it is tried again unless something depends on it. */
  readonly doubted?: true
  /** The program was told that nobody knows its outcome, and may have continued from there. */
  readonly unknown?: true
  /** Raised after each definite failure, so that the service sees a new key. */
  readonly generation?: number
  /** For an effect that was begun: the key that the service was given. Absent in records of 0.1. */
  readonly key?: string
  /** For an idempotent effect that was begun: how long the service remembers the key. */
  readonly keyTtlMs?: number
  readonly startedAt?: number
  /**
   * Where in its function the step was asked for: a hash of the step whose end the function reacted to, "-" for its call,
   * "~" where it did other things in between; then "+" if something else was open. Absent in records of 0.1.
   */
  readonly after?: string
  /** For sleeps and waits. */
  readonly until?: number
  /** Of a wait without a key: the function has had several things open at once, so it may be one of a branch. */
  readonly beside?: true
  /**
   * Of a wait: a hash of what the code that asked had passed last, "-" for the call of the function. One without a key
   * is handed only to code that has passed the same. Absent in records of 0.1, and of steps.
   */
  readonly past?: string
  /** Of a wait without a key: for how long it was to be. One of several branches gets nothing that was for another time. */
  readonly asked?: string
  /** Of a wait: since when something behind it may have been begun without a record, by who came by before it was there. */
  readonly since?: number
  /** A person let a node continue that pauses when it is done. */
  readonly passed?: true
  /** It was not begun as far as is recorded; the store may have lost the record. */
  readonly missing?: true
  /** It is known that nothing of it was begun in the lost part of the log whose gap began then. */
  readonly clear?: number
  /**
   * Of one that failed for certain: the time that the run was picked up after that, when nothing of it was in progress.
   */
  readonly clearIn?: number
  /** Of a step that awaits another thread: which of the children. */
  readonly child?: string
  /** Of one that failed: which thread it was, and how that ended. */
  readonly childEnd?: FailedChild & { readonly thread: string }
  /** Begun on the branch that this one was forked from; its outcome there says nothing here. */
  readonly inherited?: true
}

export interface PauseRecord {
  readonly id: string
  /** The activation and place that asked. */
  readonly path: string
  readonly kind: 'question' | 'approval' | 'before' | 'after' | 'unknown-effect' | 'permission'
  readonly question: Value
  readonly schema?: Value
  readonly askedAt: number
  readonly expiresAt?: number
  readonly onExpire?: { readonly answer: Value } | 'fail'
  readonly answer?: AnswerRecord
  /** Asked without a key, by a function that has had several things open at once. */
  readonly beside?: true
  /** As in the record of a step that waits. */
  readonly past?: string
  readonly since?: number
  /** Why the last answer was not taken: it fitted the schema, but not the program's own check. */
  readonly refused?: RefusalRecord
  /** Of an approval: what is shown is what runs. Absent in records of version 0.1, which showed what that is made from. */
  readonly exact?: true
  /** Someone put the question off. */
  readonly deferred?: DeferralRecord
  /** The program has seen the answer; it is kept for when the program is called again. */
  readonly used?: true
}

export interface AnswerRecord {
  readonly value: Value
  readonly by?: string
  readonly at: number
  readonly expired?: true
}

export interface RefusalRecord {
  readonly reason: string
  /** Who gave the answer. */
  readonly by?: string
  readonly at: number
}

export interface DeferralRecord {
  readonly until: number
  readonly by?: string
  readonly at: number
}

export interface ClosedPause {
  readonly id: string
  readonly reason: 'answered' | 'expired' | 'superseded' | 'cancelled'
  readonly by?: string
  readonly at: number
}

export interface InputRecord {
  readonly id: string
  readonly key?: string
  readonly hash: string
  readonly value?: Value
  /** The update that the state begins with, before the input itself. */
  readonly initial?: Value
  /** What its run is brought, and what of that is not kept. */
  readonly context?: Value
  readonly transient?: true | readonly string[]
  /** Of a graph's input: the version of the state that it is an update of. Absent in records from before it was kept. */
  readonly stateVersion?: number
  /** Who awaits its run. */
  readonly parent?: ParentRef
  readonly at: number
  /**
   * Its sender has not been told its outcome yet, and may take it back. `true`: while nobody holds the thread its
   * sender is dead, and without a key the same content given again is this very input. 'waits': its sender is waiting.
   */
  readonly unsaid?: true | 'waits'
}

/** Input that is not to be taken before a time, by the store's clock. */
export interface LaterInput extends InputRecord {
  readonly runAt: number
}

export interface SignalRecord {
  readonly id: string
  readonly value?: Value
  readonly at: number
}

export interface CancelRecord {
  readonly reason: string
  readonly by?: string
  readonly at: number
  readonly run: string
}

/** As 0.1 recorded it. */
export interface TakenInput {
  readonly run: string
  readonly key?: string
  /** The seq of the entry that ended the run; absent while it is in progress. */
  readonly seq?: number
  /** The branch of that entry, when it is one that this was forked from. */
  readonly branch?: string
}
