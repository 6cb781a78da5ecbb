import { DEFAULT_LIMITS } from '../../../codec/limits.js'
import { copyValue, type Value } from '../../../codec/value.js'
import { InvalidOptionError } from '../../../core/errors.js'
import type { LogKey } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { Log } from '../../../log/log.js'
import type { Children } from '../../child/run-with-children.js'
import { errandsOf } from '../../child/errands.js'
import { runErrands } from '../../child/run-errands.js'
import { ownBranch } from '../../history/inherit.js'
import type { ProgramPlan } from '../../program/program.js'
import { hashKept } from '../../step/record/hash-value.js'
import { stepHere } from '../../step/here.js'
import { Company, Place } from '../../worker/company.js'
import type { RuntimeEnvironment } from '../environment.js'
import type { Expiry } from '../state/expiry.js'
import { checkKey, type OnPaused } from '../input/given-input.js'
import { arrive } from '../input/later-input.js'
import type { Restart } from '../state/outcome.js'
import type { RecordPolicy } from '../record/record-policy.js'
import { checkBrought, contextMisfit, isBare, keepContext, type KeptContext } from './run-context.js'
import type { RequestOptions } from './run-options.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { ForkRecord, InputRecord, RunState } from '../state/run-state.js'
import type { Intent, Situation } from './situation.js'

/** What a caller, or a worker, wants from a thread, and what is known about it so far. */
export class Request {
  readonly environment: RuntimeEnvironment
  readonly plan: ProgramPlan
  readonly options: RequestOptions
  readonly children: Children | undefined
  /** Its place among the runs of this process. */
  readonly place: Place
  /** Another branch than was asked for, where that one is damaged. */
  key: LogKey
  restart: Restart = { restarted: false }
  /** What the first entry of a log says that begins beside a damaged one. */
  begins: ForkRecord | undefined
  input: InputRecord | undefined
  /** Where the log ended when the input was last seen in the queue that this request put it into. */
  queuedAt: number | undefined
  /** The caller's context, as the program's schema parses it, and the part of it that is recorded. */
  context: unknown
  brought: KeptContext = {}
  /** Why input without a context can't begin here. */
  misfit: Error | undefined

  /** @param children of the thread, where its program is run. */
  constructor(
    environment: RuntimeEnvironment,
    plan: ProgramPlan,
    key: LogKey,
    options: RequestOptions,
    children?: Children,
  ) {
    this.children = children
    this.environment = environment
    this.plan = plan
    this.key = key
    this.options = options
    // What a step of a run runs is part of that run, and crashes with it.
    const isPart = options.makeRoom === undefined && stepHere() !== undefined
    this.place = new Place(isPart ? new Company() : environment.company, options.makeRoom)
  }

  get onPaused(): OnPaused {
    const { onPaused, busy = 'reject' } = this.options
    return onPaused ?? (busy === 'reject' ? 'return' : 'queue')
  }

  get now(): number {
    return Math.max(this.environment.clock.now(), this.options.notBefore ?? 0)
  }

  get expiry(): Expiry {
    return { store: this.environment.retention, own: this.options.retention }
  }

  get policy(): RecordPolicy {
    const { frequency = 'step', durability = 'sync' } = this.options
    return { frequency, durability }
  }

  get intent(): Intent {
    const { maxClaims } = this.options
    const { frequency, durability } = this.policy
    return {
      plan: this.plan,
      input: this.input,
      isQueued: this.queuedAt !== undefined,
      only: this.options.only?.run,
      onPaused: this.onPaused,
      brought: this.brought,
      restart: this.restart,
      begins: this.begins,
      now: this.now,
      expiry: this.expiry,
      ahead: frequency !== 'step' || durability !== 'sync',
      ...(maxClaims === undefined ? {} : { maxClaims }),
      revisits: this.options.revisits,
    }
  }

  /**
   * Checks and copies what was given.
   * @param isWhole what the program needs from its context must be there: it begins a run here.
   */
  async read(isWhole: boolean): Promise<void> {
    const { context } = this.options
    // Most callers bring none, to programs that need none.
    if (context !== undefined || this.plan.context !== undefined) await this.#readContext(context, isWhole)
    this.input = this.options.hasInput ? await this.#readInput() : undefined
    if (this.options.hasInput) return
    if (checkKey(this.options.key) !== undefined) {
      throw new InvalidOptionError('key', 'names no input', 'Pass the input that it names.')
    }
    if (this.options.initial !== undefined) {
      throw new InvalidOptionError('initial', 'begins a thread, which takes input', 'Pass the first input, too.')
    }
  }

  async #readContext(context: unknown, isWhole: boolean): Promise<void> {
    const { fillsContext } = this.options
    this.context = context
    this.misfit = await contextMisfit(this.plan, fillsContext ? context : undefined, this.key.thread)
    if (fillsContext) return
    const { made, kept } = await keepContext(this.plan, context, this.environment.redactor, isWhole)
    this.context = made
    this.brought = kept
  }

  async #readInput(): Promise<InputRecord> {
    const { input, initial, parent } = this.options
    const key = checkKey(this.options.key)
    const { redactor, randomId, clock } = this.environment
    const hash = hashKept(input, redactor)
    const checking = this.plan.checkInput(input)
    const checked = checking instanceof Promise ? await checking : checking
    const copied = checked === undefined ? undefined : copyValue(checked, DEFAULT_LIMITS)
    const value = copied === undefined ? undefined : (redactor?.value(copied) ?? copied)
    return {
      id: randomId(),
      hash,
      at: clock.now(),
      ...(key === undefined ? {} : { key }),
      ...(value === undefined ? {} : { value }),
      ...(parent === undefined ? {} : { parent }),
      ...this.brought,
      ...(initial === undefined ? {} : { initial: await this.#readInitial(initial) }),
      // A program of another version may be the one to take it.
      ...(this.plan.kind === 'graph' ? { stateVersion: this.plan.stateVersion } : {}),
    }
  }

  async #readInitial(initial: unknown): Promise<Value> {
    if (this.plan.kind === 'flow') {
      throw new InvalidOptionError('initial', 'has no meaning for a flow, which keeps no state', 'Pass it as input.')
    }
    const { shape, checkInitial = (given) => shape.check(given, 'initial') } = this.plan
    const copied = copyValue(await checkInitial(initial as never), DEFAULT_LIMITS)
    return this.environment.redactor?.value(copied) ?? copied
  }

  /** What comes first must have everything that it was started with: otherwise its tools would get undefined. */
  checkContext(fold: Fold, { target, drops }: Extract<Situation, { do: 'claim' }>): void {
    const { state } = arrive(ownBranch(fold, 0).fold, this.now, this.input).fold
    const { run, inputs = [], cancel } = state as RunState
    const next = isUnfinished(run) && !drops ? run : inputs[0]
    // To end a run nothing of it is needed.
    if (next === undefined || cancel?.run === next.id) return
    // Another caller's run that comes before this one must not act with what this caller passes.
    const isOwn = target === undefined || next.id === target
    const isBrought = isOwn && !isBare(this.brought)
    if (this.misfit && next !== run && isBare(next) && !isBrought) throw this.misfit
    checkBrought(next, isOwn ? this.context : undefined, this.key.thread)
  }

  /** Whether something is left to do for other threads. */
  owes(log: Log): boolean {
    return errandsOf(log.fold.state).length > 0
  }

  /** What can't be done now stays due, and is no reason to hide how the run ended. */
  async runErrands(log: Log): Promise<void> {
    if (!this.owes(log)) return
    await runErrands(this.environment, this.plan, log).catch(() => {})
  }

  /** Notes that history was expected, and is gone. */
  async noteRestart(log: Log): Promise<void> {
    if (this.options.expect !== 'existing' || log.exists || this.restart.restarted) return
    const tombstone = await this.environment.logs.tombstone(this.key.tenant, this.key.thread)
    // The day and not the reason: that was written for those who run this, not for the end user.
    const why = tombstone ? ` It was removed on ${new Date(tombstone.at).toISOString().slice(0, 10)}.` : ''
    this.restart = {
      restarted: true,
      message: `Your earlier conversation is no longer available, so we start from the beginning.${why}`,
    }
  }
}
