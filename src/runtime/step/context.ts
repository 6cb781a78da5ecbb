import type { Value } from '../../codec/value.js'
import type { SqlSession } from '../../log/contract.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import type { ChildOptions } from '../child/await-child.js'
import type { FlowProgram } from '../program/flow.js'
import type { GraphProgram } from '../program/graph/graph.js'
import type { TypedProgram } from '../program/program.js'
import type { Shape, StateOf } from '../program/state/state-key.js'
import type { StepStore } from './record/step-store.js'

/** What a step does to the outside world, which decides what happens if its outcome is unknown. */
export type Effect =
  /** Changes nothing outside, or nothing that matters: it runs again. */
  | 'read'
  /** The service honors the idempotency key: it runs again with the same key. */
  | 'idempotent'
  /** The service can be asked what happened. */
  | 'reconcilable'
  /** Must never run twice: a person decides. */
  | 'once'

/** How often a failing step is retried, and how long to wait in between. */
export interface RetryPolicy {
  /** How many attempts to make in total. Default 3; 1 never retries. */
  readonly attempts?: number
  /** The delay after the first failure. Default 200 ms. */
  readonly initialMs?: number
  /** What each further delay is multiplied by. Default 2. */
  readonly factor?: number
  /** The longest delay. Default 30,000 ms. */
  readonly maxMs?: number
  /** The random fraction of a delay, 0 to 1. Default 0.5. */
  readonly jitter?: number
  /**
   * Whether this error is worth another attempt. Default: all except Holdfast errors that say they are not retryable.
   */
  readonly retryIf?: (error: unknown) => boolean
}

/** What the service says about a call: it happened (with its result), it did not, or it can't tell. */
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
  /** For 'idempotent': how long the service remembers a key. Default 24 hours. */
  readonly keyTtlMs?: number
  /** For 'reconcilable': asks the service about the outcome of the call with this key. */
  readonly reconcile?: (key: string, input: unknown) => Reconciled<Result> | Promise<Reconciled<Result>>
  /**
   * For effects: how long an attempt that timed out may take to end before anyone is asked about its outcome, or the
   * step fails. While it runs, nobody can say that it did not happen. If it is still running after that, `reconcile` is
   * not called, and `onUnknown` decides. Default 10,000 ms.
   */
  readonly settleMs?: number
  /** What to do when nobody can tell what happened. Default 'pause': a person is asked. */
  readonly onUnknown?: 'pause' | 'fail'
}

/** How one step behaves, and what identifies it. */
export interface StepOptions<Result = unknown> extends StepPolicy<Result> {
  /** What the step works on. Its hash is recorded: a different input on a resume is reported, not repeated. */
  readonly input?: unknown
  /** Distinguishes repeated steps of one name, for example in a loop. */
  readonly key?: string | number
  /** Replaces the idempotency key that Holdfast derives. */
  readonly idempotencyKey?: string
}

/** What a running step receives. */
export interface StepContext {
  /** Stable across retries and crashes; pass it to the service that is called. */
  readonly idempotencyKey: string
  /** From 1, in this process. */
  readonly attempt: number
  /** Aborted by a timeout, `thread.cancel()`, shutdown, or when another worker takes over. */
  readonly abortSignal: AbortSignal
  /** Writes that are recorded together with this step. */
  readonly store: StepStore
  /** Reports that the step is alive and the thread is still ours; rejects if it is not. */
  heartbeat(): Promise<void>
  /** Sends something to whoever reads the stream; not recorded. */
  emit(value: unknown): void
}

/** What a valid answer to a question is, and how long it can be given. */
export interface PauseOptions<Answer = unknown> {
  /** What a valid answer is. Its JSON Schema is stored, so that a process without the program can check answers. */
  readonly schema?: StandardSchema<unknown, Answer>
  /** The JSON Schema to store, for schemas that can't generate one. */
  readonly jsonSchema?: Value
  /** How long the question stays open, in milliseconds. Default: forever. */
  readonly expiresInMs?: number
  /** What happens then. Default: the run fails. */
  readonly onExpire?: { readonly answer: Answer } | 'fail'
  /**
   * Distinguishes the questions of one activation. If omitted, they are distinguished by their order, which works for
   * questions that come one after another; parallel ones need a key.
   */
  readonly key?: string | number
}

/** What a valid signal is, and how long to wait for it. */
export interface ReceiveOptions {
  readonly schema?: StandardSchema
  /** How long to wait, in milliseconds; after that the result is undefined. Default: forever. */
  readonly timeoutMs?: number
  /** Distinguishes waits for one name. Required if several run in parallel, like the `key` of a pause. */
  readonly key?: string | number
}

/** What distinguishes the sleeps of one activation. */
export interface SleepOptions {
  /** Required if several run in parallel, like the `key` of a pause. */
  readonly key?: string | number
}

/** What identifies a transaction, and how long it may take. */
export interface TransactionOptions<Prepared = undefined> {
  readonly input?: unknown
  readonly key?: string | number
  /** How long one attempt may take. Default 5,000 ms. */
  readonly timeoutMs?: number
  /** An attempt that fails leaves nothing behind. What the database refuses is not retried. */
  readonly retry?: RetryPolicy
  /**
   * Runs before the transaction is opened, and only if it is not recorded: for what must not keep a transaction open,
   * such as a model call. Its result is passed to the work. It may run again after a crash, so it should change nothing
   * outside.
   */
  readonly prepare?: () => Prepared | Promise<Prepared>
}

/** What a program's code receives: everything it does through this is recorded and survives a crash. */
export interface Context<Input = unknown, RunContext = unknown> {
  /** What this activation was given: the input of a flow, the item of a fan-out. */
  readonly input: Input
  /**
   * What the caller of this run passed along. It is recorded with the run, except for what the program declares
   * transient.
   */
  readonly context: RunContext
  readonly thread: string
  readonly branch: string
  readonly tenant: string
  /** The id of the run. */
  readonly runId: string
  /** The newest checkpoint when this activation began. */
  readonly checkpoint: string
  /** From 1: how often this run was picked up. */
  readonly attempt: number
  readonly abortSignal: AbortSignal
  /** For this node as a whole: stable across retries and crashes. */
  readonly idempotencyKey: string
  /** Memory that outlives the thread. Writes made here are recorded together with this node. */
  readonly store: StepStore
  /** Does something once and records its result: after a crash the record is returned. */
  step<Result>(name: string, work: (step: StepContext) => Result | Promise<Result>): Promise<Result>
  step<Result>(
    name: string,
    options: StepOptions<Result>,
    work: (step: StepContext) => Result | Promise<Result>,
  ): Promise<Result>
  /** Runs your own SQL in the same transaction as its record: exactly once. SQLite and Postgres only. */
  transaction<Result>(name: string, work: (sql: SqlSession) => Promise<Result>): Promise<Result>
  transaction<Result, Prepared = undefined>(
    name: string,
    options: TransactionOptions<Prepared>,
    work: (sql: SqlSession, prepared: Prepared) => Promise<Result>,
  ): Promise<Result>
  /** Sleeps for this many milliseconds, or until a time, across crashes and restarts. A long sleep holds no process. */
  sleep(duration: number | Date, options?: SleepOptions): Promise<void>
  /** Waits for `thread.signal(name, value)` without holding anything. Each signal is received once, in order. */
  receive<Received = unknown>(name: string, options?: ReceiveOptions): Promise<Received>
  /**
   * Runs another program on its own thread and returns its output. `id` distinguishes it among those that this run
   * starts. Nothing is held while it runs: this run is at rest, and continues when the other one has ended, in whatever
   * process. If it does not complete, `child-failed` is thrown.
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
