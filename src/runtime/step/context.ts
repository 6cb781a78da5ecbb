import type { Value } from '../../codec/value.js'
import type { SqlSession } from '../../log/contract.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import type { ChildOptions } from '../child/await-child.js'
import type { FlowProgram } from '../program/flow.js'
import type { GraphProgram } from '../program/graph.js'
import type { TypedProgram } from '../program/program.js'
import type { Shape, StateOf } from '../program/state-key.js'
import type { StepStore } from './step-store.js'

/** What a step does to the outside world, which decides what happens when its outcome is unknown. */
export type Effect =
  /** Changes nothing outside, or nothing that matters: runs again. */
  | 'read'
  /** The other side honours the idempotency key: runs again with the same key. */
  | 'idempotent'
  /** The other side can be asked what happened. */
  | 'reconcilable'
  /** Must never run twice: a person decides. */
  | 'once'

/** How often a failing step is tried, and how long to wait in between. */
export interface RetryPolicy {
  /** How often the step is tried in all. Default 3; 1 never tries again. */
  readonly attempts?: number
  /** The pause after the first failure. Default 200 ms. */
  readonly initialMs?: number
  /** What each further pause is multiplied by. Default 2. */
  readonly factor?: number
  /** The longest pause. Default 30,000 ms. */
  readonly maxMs?: number
  /** The part of a pause that is random, 0 to 1. Default 0.5. */
  readonly jitter?: number
  /** Whether this error is worth another try. Default: all but errors of Holdfast that say they are not retryable. */
  readonly retryIf?: (error: unknown) => boolean
}

/** What the other side says about a call: it happened (with its result), it did not, or it can not tell. */
export type Reconciled<Result = unknown> =
  | { readonly outcome: 'executed'; readonly result: Result }
  | { readonly outcome: 'not-executed' }
  | { readonly outcome: 'unknown' }

/** How a step behaves: shared by nodes, `ctx.step` and tools. */
export interface StepPolicy<Result = unknown> {
  /** Default 'read': the step may run again after a crash. */
  readonly effect?: Effect
  readonly retry?: RetryPolicy
  /** How long one attempt may take; its signal is aborted then. Default: no limit. */
  readonly timeoutMs?: number
  /** For 'idempotent': how long the other side remembers a key. Default 24 hours. */
  readonly keyTtlMs?: number
  /** For 'reconcilable': asks the other side what became of the call with this key. */
  readonly reconcile?: (key: string, input: unknown) => Reconciled<Result> | Promise<Reconciled<Result>>
  /**
   * For effects: how long an attempt that ran out of time may take to end before its outcome is asked, or the step fails.
   * While it runs, nobody can say that it did not happen. When it still runs after that, `reconcile` is not asked, and
   * `onUnknown` decides. Default 10,000 ms.
   */
  readonly settleMs?: number
  /** What to do when nobody can tell what happened. Default 'pause': a person is asked. */
  readonly onUnknown?: 'pause' | 'fail'
}

/** How one step behaves, and what identifies it. */
export interface StepOptions<Result = unknown> extends StepPolicy<Result> {
  /** What the step works on. Its hash is recorded: coming back with another input is reported, not repeated. */
  readonly input?: unknown
  /** Tells repeated steps of one name apart, for example in a loop. */
  readonly key?: string | number
  /** Replaces the idempotency key that Holdfast derives. */
  readonly idempotencyKey?: string
}

/** What a running step is handed. */
export interface StepContext {
  /** Stable over retries and crashes; hand it to the service that is called. */
  readonly idempotencyKey: string
  /** From 1, in this process. */
  readonly attempt: number
  /** Aborted by a timeout, `thread.cancel()`, shutdown, or when another worker took over. */
  readonly abortSignal: AbortSignal
  /** Writes that travel with the record of this step. */
  readonly store: StepStore
  /** Reports that the step is alive and the thread still ours; rejects when it is not. */
  heartbeat(): Promise<void>
  /** Sends something to whoever reads the stream; not recorded. */
  emit(value: unknown): void
}

/** What a valid answer to a question is, and how long it can be given. */
export interface PauseOptions<Answer = unknown> {
  /** What a valid answer is. Its JSON Schema is stored, so that a process without the program can check answers. */
  readonly schema?: StandardSchema<unknown, Answer>
  /** The JSON Schema to store, for schemas that don't offer one. */
  readonly jsonSchema?: Value
  /** How long the question stays open, in milliseconds. Default: for ever. */
  readonly expiresInMs?: number
  /** What happens then. Default: the run fails. */
  readonly onExpire?: { readonly answer: Answer } | 'fail'
  /**
   * Tells the questions of one activation apart. Left out, they are told apart by their order, which holds for questions
   * that come one after another; ones that are asked side by side need a key.
   */
  readonly key?: string | number
}

/** What a valid signal is, and how long to wait for it. */
export interface ReceiveOptions {
  readonly schema?: StandardSchema
  /** How long to wait, in milliseconds; after that the result is undefined. Default: for ever. */
  readonly timeoutMs?: number
  /** Tells waits for one name apart. Needed where several run side by side, as `key` of a pause. */
  readonly key?: string | number
}

/** What tells sleeps of one activation apart. */
export interface SleepOptions {
  /** Needed where several run side by side, as `key` of a pause. */
  readonly key?: string | number
}

/** What identifies a transaction, and how long it may take. */
export interface TransactionOptions<Prepared = undefined> {
  readonly input?: unknown
  readonly key?: string | number
  /** How long one attempt may take. Default 5,000 ms. */
  readonly timeoutMs?: number
  /** An attempt that fails leaves nothing behind. What the database refuses is not tried again. */
  readonly retry?: RetryPolicy
  /**
   * Runs before the transaction is opened, and only if it is not on record: for what must not hold a transaction open,
   * such as a call of a model. What it returns is handed to the work. It may run again after a crash, so it should
   * change nothing outside.
   */
  readonly prepare?: () => Prepared | Promise<Prepared>
}

/** What a program's code is handed: everything it does through this is recorded and survives a crash. */
export interface Context<Input = unknown, RunContext = unknown> {
  /** What this activation was given: the input of a flow, the item of a fan-out. */
  readonly input: Input
  /** What the caller of this run brought along. It is recorded with the run, but for what the program declares transient. */
  readonly context: RunContext
  readonly thread: string
  readonly branch: string
  readonly tenant: string
  /** The id of the run. */
  readonly runId: string
  /** The newest checkpoint when this activation began. */
  readonly checkpoint: string
  /** From 1: how often this run was taken up. */
  readonly attempt: number
  readonly abortSignal: AbortSignal
  /** Of this node as a whole: stable over retries and crashes. */
  readonly idempotencyKey: string
  /** Memory that outlives the thread. Writes made here travel with the record of this node. */
  readonly store: StepStore
  /** Does something once and records its result: after a crash the record is returned. */
  step<Result>(name: string, work: (step: StepContext) => Result | Promise<Result>): Promise<Result>
  step<Result>(
    name: string,
    options: StepOptions<Result>,
    work: (step: StepContext) => Result | Promise<Result>,
  ): Promise<Result>
  /** Runs SQL of one's own in the same transaction as its record: exactly once. SQLite and Postgres only. */
  transaction<Result>(name: string, work: (sql: SqlSession) => Promise<Result>): Promise<Result>
  transaction<Result, Prepared = undefined>(
    name: string,
    options: TransactionOptions<Prepared>,
    work: (sql: SqlSession, prepared: Prepared) => Promise<Result>,
  ): Promise<Result>
  /** Sleeps for so many milliseconds, or until a time, over crashes and restarts. A long sleep holds no process. */
  sleep(duration: number | Date, options?: SleepOptions): Promise<void>
  /** Waits for `thread.signal(name, value)`, holding nothing. Each signal is received once, in order. */
  receive<Received = unknown>(name: string, options?: ReceiveOptions): Promise<Received>
  /**
   * Runs another program on a thread of its own and returns what it gives back. `id` names it among those that this run
   * begins. Nothing is held while it runs: this run rests, and goes on when the other has ended, in whatever process. If it
   * does not come to its end, `child-failed` is thrown.
   */
  run<S extends Shape, Given>(
    program: GraphProgram<S, Given>,
    id: string,
    input: Given,
    options?: ChildOptions,
  ): Promise<StateOf<S>>
  run<Given, Output>(
    program: FlowProgram<Given, Output>,
    id: string,
    input: Given,
    options?: ChildOptions,
  ): Promise<Output>
  run<Given, State, Output>(
    program: TypedProgram<Given, State, Output>,
    id: string,
    input: Given,
    options?: ChildOptions,
  ): Promise<Output>
  /** Asks a person and ends the run as paused until there is an answer. */
  pause<Answer = unknown>(question: unknown, options?: PauseOptions<Answer>): Promise<Answer>
  heartbeat(): Promise<void>
  emit(value: unknown): void
}
