import type { Value } from '../../codec/value.js'
import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import { type Difference, diffValues } from './diff.js'
import { describePauses, type OpenPause, type Outcome } from '../run/state/outcome.js'
import { isAtRest } from '../run/state/read-run-state.js'
import type { RunRecord, RunState } from '../run/state/run-state.js'
import { awaitedBy, FamilyRest } from '../child/family-rest.js'
import { follow } from '../events/follow.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { BranchId } from '../../core/ids.js'
import { checkOptionNames } from '../../core/wording/option-names.js'
import type { ProgramPlan } from '../program/program.js'
import { RUN_OPTIONS, type RunOptions } from '../run/request/run-options.js'
import type { Thread } from '../thread.js'
import { completeFold } from '../upgrade/upgrade.js'
import { FORK_OPTIONS, forkCheckpoint, type ForkOptions } from './fork.js'

/** Everything known about a thread at a checkpoint. */
export interface CheckpointFacts {
  readonly id: string
  readonly at: Date
  readonly hash: string
  readonly status: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly program?: string
  readonly version?: string
  readonly stateVersion?: number
  readonly run?: RunRecord
  readonly pauses: readonly OpenPause[]
  readonly state: Readonly<Record<string, Value>>
}

/** A thread as it was at one checkpoint. Reading it changes nothing; running it runs a fork. */
export class Checkpoint<State = Readonly<Record<string, Value>>> {
  readonly id: string
  protected readonly environment: RuntimeEnvironment
  protected readonly key: LogKey

  constructor(environment: RuntimeEnvironment, key: LogKey, id: string) {
    const { branch } = parseCheckpointId(id)
    this.id = id
    this.environment = environment
    this.key = { ...key, branch }
  }

  get branch(): string {
    return this.key.branch
  }

  /** The program's state as it was. */
  async state(): Promise<State> {
    return stateOf(await this.fold()) as State
  }

  /** Everything that was known about the thread. */
  async facts(): Promise<CheckpointFacts> {
    const fold = await this.fold()
    const { run } = fold.state as RunState
    return {
      id: this.id,
      at: new Date(fold.at),
      hash: fold.hash,
      status: fold.index.status,
      createdAt: new Date(fold.index.createdAt),
      expiresAt: fold.index.expiresAt === null ? null : new Date(fold.index.expiresAt),
      ...(run ? { program: run.program, version: run.version, stateVersion: run.stateVersion, run } : {}),
      pauses: describePauses(fold.state as RunState),
      state: stateOf(fold),
    }
  }

  /**
   * Whether the thread was at rest here: nothing of it continued by itself. Where it awaits threads that are in
   * progress, this is known when it moves on, or when they rest, too.
   */
  async rests(options: { readonly signal?: AbortSignal } = {}): Promise<boolean> {
    const { logs, clock } = this.environment
    const { state, seq, ...fold } = await this.fold()
    if (!isAtRest({ ...fold, state, seq }, clock.now())) return false
    if (awaitedBy((state as RunState).run).length === 0) return true
    const log = await logs.open(this.key)
    const family = new FamilyRest(logs)
    try {
      for await (const _ of follow(log, clock, options.signal, undefined, family)) {
        if (log.fold.seq !== seq) return false
        if (await family.isAtRest(log)) return true
      }
    } finally {
      family.close()
    }
    return false
  }

  /** What changed in the state from here to another checkpoint of the same thread, on any branch. */
  async diff(other: string | { readonly id: string }): Promise<readonly Difference[]> {
    const id = typeof other === 'string' ? other : other.id
    const there = new Checkpoint(this.environment, this.key, id)
    const [before, after] = await Promise.all([this.fold(), there.fold()])
    return diffValues(stateOf(before), stateOf(after))
  }

  async fold(): Promise<Fold> {
    return (await this.log()).at(this.id)
  }

  // Not opened and verified to its head: the newest entries may be the damaged ones.
  protected async log(): Promise<Log> {
    return this.environment.logs.unread(this.key)
  }
}

function stateOf(fold: Fold): Readonly<Record<string, Value>> {
  return (fold.state as RunState).state ?? {}
}

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
