import { checkOptionNames } from '../core/wording/option-names.js'
import type { Value } from '../codec/value.js'
import type { BranchId } from '../core/ids.js'
import { parseRetention, type Retention, type RetentionPolicy } from '../core/retention.js'
import type { LogKey } from '../log/contract.js'
import type { Log } from '../log/log.js'
import { unheard } from './events/event-feed.js'
import { type Settled, settleRun, showFold, showFoldOrAsIs } from './step/record/kept-results.js'
import { type Outcome, readOutcome, withOutput } from './run/state/outcome.js'
import type { ProgramPlan } from './program/program.js'
import { ThreadCheckpoint } from './history/checkpoint.js'
import { type ReplayReport, replayRun } from './history/replay.js'
import type { RunState } from './run/state/run-state.js'
import { RunStream } from './events/run-stream.js'
import { enqueueInput } from './run/input/enqueue.js'
import type { RuntimeEnvironment } from './run/environment.js'
import {
  checkLease,
  ENQUEUE_OPTIONS,
  type Enqueued,
  type EnqueueOptions,
  RUN_OPTIONS,
  type RunOptions,
} from './run/request/run-options.js'
import { runThread } from './run/run-thread.js'
import type { Expiry } from './run/state/expiry.js'
import { ThreadView } from './thread-view.js'

/** One conversation or task, run by a program. */
export class Thread<
  Input = unknown,
  State = Readonly<Record<string, Value>>,
  Output = State,
  Update = Readonly<Record<string, unknown>>,
> extends ThreadView<Outcome<State, Output>, State> {
  readonly #plan: ProgramPlan
  readonly #own: { readonly retention?: RetentionPolicy }

  constructor(environment: RuntimeEnvironment, key: LogKey, plan: ProgramPlan, retention?: Retention) {
    super(environment, key)
    this.#plan = plan
    this.#own = retention === undefined ? {} : { retention: parseRetention(retention) }
  }

  /**
   * Starts the thread, resumes a run that was interrupted, or continues with new input. How the run ended is the
   * outcome's `status`, including a failure of the program. What throws: invalid input (`invalid-value`), a program
   * that can't run (`invalid-program`), damage (`corrupt`), a store that is down (`unavailable`, `storage`), and losing
   * the thread to another worker (`fenced`).
   */
  run(options: RunOptions<Input> = {}): Promise<Outcome<State, Output>> {
    return this.#run(options, unheard, options.signal)
  }

  /**
   * Leaves input for a worker, durably; nothing runs here. With a `key`, the same input does not run twice, and the
   * result says whether it is waiting (`queued`) or its run has already started, and perhaps ended (`taken`). Without
   * one, every call is a new input.
   */
  async enqueue(input: Input, options: EnqueueOptions = {}): Promise<Enqueued> {
    checkOptionNames('enqueue()', options, ENQUEUE_OPTIONS)
    return enqueueInput(this.environment, this.#plan, this.key, input, { ...options, ...this.#own })
  }

  /** Like `run`, as a stream of events, with `.outcome` and `.abort()`. */
  stream(options: RunOptions<Input> = {}): RunStream<Outcome<State, Output>> {
    return new RunStream((emit, signal) => this.#run(options, emit, signal), options.signal)
  }

  /**
   * The program's state as of the newest checkpoint, in this program's version; undefined if there is no thread. Throws
   * `incompatible` if no migration leads to it.
   */
  override async state(): Promise<State | undefined> {
    const log = await this.open()
    if (!log.exists) return undefined
    return (((await showFold(this.#plan, log.fold)).state as RunState).state ?? {}) as State
  }

  /** The thread as it was at a checkpoint: to look at, to run from, to fork. */
  at(checkpoint: string): ThreadCheckpoint<Input, State, Output, Update> {
    const open = (branch: BranchId) =>
      new Thread<Input, State, Output, Update>(this.environment, { ...this.key, branch }, this.#plan)
    return new ThreadCheckpoint(this.environment, this.key, checkpoint, this.#plan, open)
  }

  /** Replays the last run from its records alone and says where the current program would behave differently. */
  async replay(): Promise<ReplayReport> {
    return replayRun(this.environment, await this.existing(), this.#plan)
  }

  // As `run` returns it: an agent's output is what it said, and not its state.
  protected override async read(log: Log): Promise<Outcome<State, Output>> {
    const fold = await showFoldOrAsIs(this.#plan, log.fold)
    return withOutput(this.#plan, readOutcome(this.key, fold)) as Outcome<State, Output>
  }

  protected override get expiry(): Expiry & { readonly plan: ProgramPlan } {
    return { ...super.expiry, plan: this.#plan }
  }

  protected override get plan(): ProgramPlan {
    return this.#plan
  }

  protected override settle(state: RunState): Promise<Settled | undefined> {
    return settleRun(this.#plan, state)
  }

  async #run(
    options: RunOptions<Input>,
    emit: Parameters<typeof runThread>[3]['emit'],
    signal: AbortSignal | undefined,
  ): Promise<Outcome<State, Output>> {
    checkOptionNames('run()', options, RUN_OPTIONS)
    checkLease(options.leaseMs)
    const request = { ...options, ...this.#own, hasInput: 'input' in options && options.input !== undefined, emit }
    const outcome = await runThread(this.environment, this.#plan, this.key, signal ? { ...request, signal } : request)
    return outcome as Outcome<State, Output>
  }
}
