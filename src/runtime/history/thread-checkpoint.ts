import type { BranchId } from '../../core/ids.js'
import { checkOptionNames } from '../../core/wording/option-names.js'
import type { LogKey } from '../../log/contract.js'
import type { ProgramPlan } from '../program/program.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { Outcome } from '../run/state/outcome.js'
import { RUN_OPTIONS, type RunOptions } from '../run/request/run-options.js'
import type { RunState } from '../run/state/run-state.js'
import type { Thread } from '../thread.js'
import { completeFold } from '../upgrade/upgrade.js'
import { Checkpoint, FORK_OPTIONS, type ForkOptions, forkCheckpoint } from './checkpoint.js'

/** A thread with its program, at one checkpoint. */
export class ThreadCheckpoint<Input, State, Output, Update> extends Checkpoint<State> {
  readonly #plan: ProgramPlan
  readonly #open: (branch: BranchId) => Thread<Input, State, Output, Update>

  constructor(
    environment: RuntimeEnvironment,
    key: LogKey,
    id: string,
    plan: ProgramPlan,
    open: (branch: BranchId) => Thread<Input, State, Output, Update>,
  ) {
    super(environment, key, id)
    this.#plan = plan
    this.#open = open
  }

  /** The program's state as it was. Keys that were declared since have their initial values. */
  override async state(): Promise<State> {
    return ((completeFold(this.#plan, await this.fold()).state as RunState).state ?? {}) as State
  }

  /** Creates a branch from this checkpoint, with changes, and returns it as a thread. */
  async fork(options: ForkOptions<State, Update> = {}): Promise<Thread<Input, State, Output, Update>> {
    checkOptionNames('fork()', options, FORK_OPTIONS)
    const branch = await forkCheckpoint(this.environment, this.key, this.id, this.#plan, options as ForkOptions)
    return this.#open(branch)
  }

  /** Continues from here, on a separate branch; the outcome names it. */
  async run(options: RunOptions<Input> & ForkOptions<State, Update> = {}): Promise<Outcome<State, Output>> {
    // Before there is a branch that nobody asked for.
    checkOptionNames('run()', options, { ...RUN_OPTIONS, ...FORK_OPTIONS })
    const { name, set: values, update, effects, reads, ...run } = options
    const fork = await this.fork(
      Object.fromEntries(
        Object.entries({ name, set: values, update, effects, reads }).filter(([, v]) => v !== undefined),
      ),
    )
    return fork.run(run as RunOptions<Input>)
  }
}
