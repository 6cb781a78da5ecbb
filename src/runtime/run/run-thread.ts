import { notAChoice } from '../../core/choices.js'
import type { OptionNames } from '../../core/option-names.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import type { Redactor } from '../../codec/redactor.js'
import { copyValue, type Value } from '../../codec/value.js'
import { nameLog } from '../../core/log-name.js'
import { IncompatibleError, InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { isExpiry, type RetentionPolicy, type StoreRetentionPolicy, type SweepReport } from '../../core/retention.js'
import type { Claim } from '../../log/write/claim.js'
import { DUE, type LogKey, type Tombstone } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import type { LogStore } from '../../log/log-store.js'
import type { StoreClock } from '../../log/store-clock.js'
import { push, set } from '../../log/entry/ops.js'
import type { Store } from '../../store/store.js'
import type { Observer } from '../../telemetry/observer.js'
import type { Attempts } from '../step/attempts.js'
import type { RunEvent } from '../events/events.js'
import { Company, Place } from '../worker/company.js'
import { checkFits } from '../upgrade/fitting.js'
import { claimThread } from './gap.js'
import { checkBegins, checkKey, fateOf, findQueued, isInput, type OnPaused, relyOn } from './given-input.js'
import { beginUnder, type Expiry, staysOpen } from './expiry.js'
import { hashKept } from '../step/hash-value.js'
import { ownBranch } from '../history/inherit.js'
import { type Ended, findEnded } from './input-keys.js'
import { showFold } from '../step/kept-results.js'
import { type BusyOutcome, type Outcome, outcomeBase, prunedOutcome, type Restart, readOutcome } from './outcome.js'
import { observeClaim } from '../events/observe.js'
import type { ProgramPlan } from '../program/program.js'
import type { Durable, Frequency } from './record-policy.js'
import { checkSettings, Run, StoppedError } from './run.js'
import {
  bringToQueued,
  checkBrought,
  contextMisfit,
  isBare,
  keepContext,
  type KeptContext,
  refuseTransient,
} from './run-context.js'
import { begunBeyond, type RecordedReads, recordsBeyond } from './records.js'
import { type OnCorrupt, openOrRecover } from './recover.js'
import { currentRun, type ForkRecord, type InputRecord, isUnfinished, type RunState } from './run-state.js'
import { isInsideStep } from './session.js'
import { stopInTime } from './stop-in-time.js'
import { type Intent, isOnlyWaiting, isStuck, labels, type Situation, situate } from './situation.js'

/** Somebody runs it now, or died in the middle of it. */
function isUnderWay({ run }: RunState): boolean {
  return run?.status === 'running' && run.waiting === undefined
}

/** What threads need of the open store. */
export interface RuntimeEnvironment {
  readonly logs: LogStore
  readonly clock: StoreClock
  readonly randomId: () => string
  readonly random: () => number
  /** Names this process to people who look. */
  readonly owner: string
  readonly observer: Observer
  /** Who runs in this process. */
  readonly company: Company
  /** Effects of this process that are under way. */
  readonly attempts: Attempts
  /** Takes out of values what must not be kept; undefined where everything may be. */
  readonly redactor: Redactor | undefined
  /** Those that must stop before the store is closed. */
  readonly workers: LiveWorkers
  /** How long threads are kept. */
  readonly retention: StoreRetentionPolicy
  store(tenant: TenantId): Store
  /** Begins to remove what the policy no longer keeps, of one tenant or of all. */
  sweep(tenant: TenantId | undefined): Sweep
}

/** One pass over what has expired, in small pieces. */
export interface Sweep {
  /** The next piece, and what it removed. `more`: the pass is not over. */
  step(): Promise<{ readonly more: boolean; readonly swept: SweepReport }>
}

/** The workers of one open store, of all tenants. */
export interface LiveWorkers {
  readonly running: Set<{ stop(): Promise<void> }>
  /** From now on none is started. */
  closing: boolean
}

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
}

const DEFAULT_LEASE_MS = 10_000
const DEFAULT_INLINE_SLEEP_MS = 1000
const BUSY_POLL_MS = 100
const BUSY_TRY_MS = 1000
const MOST_TRIES = 10

/** Starts, resumes or continues a thread: the one way in. */
export async function runThread(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  options: DriveOptions,
): Promise<Outcome> {
  const { defaults } = plan.kind === 'graph' ? plan : { defaults: undefined }
  return withOutput(plan, await new ThreadRunner(environment, plan, key, { ...defaults, ...options }).run())
}

/** The outcome with the output that this program makes of its state, where it does: an agent's is what it said. */
export function withOutput(plan: ProgramPlan, outcome: Outcome): Outcome {
  if (outcome.status !== 'completed' && outcome.status !== 'limited') return outcome
  if (plan.kind !== 'graph' || plan.output === undefined) return outcome
  return { ...outcome, output: plan.output(outcome.state) as never }
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

/** Leaves input for whoever runs the thread next, usually a worker. Nothing runs here. */
export async function enqueueInput(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  input: unknown,
  options: EnqueueOptions & { readonly retention?: RetentionPolicy },
): Promise<Enqueued> {
  const { busy = 'queue', ...rest } = options
  const drive = { ...rest, input, hasInput: true, emit: () => {} }
  checkChoices({ ...drive, busy })
  return new ThreadRunner(environment, plan, key, drive).enqueue(busy)
}

class ThreadRunner {
  readonly #environment: RuntimeEnvironment
  readonly #plan: ProgramPlan
  readonly #options: DriveOptions
  readonly #place: Place
  #key: LogKey
  #records: RecordedReads | undefined
  #restart: Restart = { restarted: false }
  #begins: ForkRecord | undefined
  #hasClaimed = false
  #input: InputRecord | undefined
  /** What the caller brings along, as the program's schema makes it, and what of it is recorded. */
  #context: unknown
  #brought: KeptContext = {}
  /** Why input that nobody brought a context to can't begin here. */
  #misfit: Error | undefined
  /** Where the log ended when the input was last seen in the queue that this request put it into. */
  #queuedAt: number | undefined

  constructor(environment: RuntimeEnvironment, plan: ProgramPlan, key: LogKey, options: DriveOptions) {
    this.#environment = environment
    this.#plan = plan
    this.#key = key
    this.#options = options
    // What a step of a run runs is part of that run, and crashes with it.
    const isPart = options.makeRoom === undefined && isInsideStep()
    const company = isPart ? new Company() : environment.company
    this.#place = new Place(company, options.makeRoom)
  }

  async run(): Promise<Outcome> {
    const { frequency = 'step', durability = 'sync', signal } = this.#options
    checkSettings({ frequency, durability })
    checkChoices(this.#options)
    signal?.throwIfAborted()
    return stopInTime(this.#open(frequency), signal, this.#environment.clock)
  }

  async #open(frequency: Frequency): Promise<Outcome> {
    await this.#readContext(this.#options.hasInput)
    this.#input = await this.#readInput()
    return this.#afterExpiry(() => this.#openOnce(frequency))
  }

  /**
   * A thread may expire between the moment it is read and the moment it is claimed. Nothing was begun then, so what is wanted
   * of it begins anew: whoever uses it a moment later gets the same. Once it is claimed it can't expire.
   */
  async #afterExpiry<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (this.#hasClaimed || tries === MOST_TRIES || !isGone(error)) throw error
      }
    }
  }

  #openOnce(frequency: Frequency): Promise<Outcome> {
    const given = this.#key
    return this.#onLog(
      async (options) => {
        const onCorrupt = this.#options.onCorrupt ?? 'fail'
        const opened = await openOrRecover(this.#environment.logs, given, onCorrupt, options)
        this.#key = opened.key
        this.#restart = opened.restart
        this.#begins = opened.begins
        return opened.log
      },
      (log) => this.#runOn(log, frequency),
      // Who records nothing appends nothing, and so never learns whether it was the newest.
      { atLeast: frequency === 'none' ? Infinity : (this.#options.atLeast ?? 0) },
    )
  }

  /**
   * Works on a log, and gives it back. What a cache told of it counts only if an append of the work landed: otherwise
   * whatever came of the work is dropped, and it is done again on what the store itself says.
   */
  async #onLog<Result>(
    open: (options: { readonly atLeast: number }) => Promise<Log>,
    work: (log: Log) => Promise<Result>,
    options = { atLeast: 0 },
  ): Promise<Result> {
    const log = await open(options)
    try {
      const result = await work(log)
      if (log.isConfirmed) {
        this.#environment.logs.giveBack(log)
        return result
      }
    } catch (error) {
      if (log.isConfirmed || !mayBeOutdated(error)) throw error
    }
    this.#environment.logs.disbelieve(log)
    return this.#onLog(open, work, { atLeast: Infinity })
  }

  async #runOn(log: Log, frequency: Frequency): Promise<Outcome> {
    await this.#noteRestart(log)
    this.#records = await readsOf(this.#environment, log)
    if (frequency === 'none') {
      const outcome = await this.#newRun().driveUnrecorded(log, this.#input && [this.#input], this.#begins)
      return this.#input === undefined ? outcome : { ...outcome, input: 'taken' }
    }
    for (;;) {
      if (this.#options.signal?.aborted) throw new StoppedError()
      const { situation, claim, openSince, since } = await this.#claim(log)
      if (situation?.do === 'claim' && claim) {
        const { target } = situation
        const outcome = await this.#newRun().drive(claim, openSince, target, this.#restart, since)
        // The run before it came to wait only now: it is dropped as one is that waited all along.
        const isDropped = this.#onPaused === 'cancel' && outcome.status === 'paused' && outcome.input === 'queued'
        if (isDropped) continue
        return outcome
      }
      const outcome = situation && !claim ? await this.#settled(log, situation) : await this.#beBusy(log)
      if (outcome) return outcome
    }
  }

  async #claim(log: Log) {
    const { leaseMs = DEFAULT_LEASE_MS, owner = this.#environment.owner } = this.#options
    const made: { situation?: Situation; openSince?: number | undefined; since: Fold; claim?: Claim } = {
      since: log.fold,
    }
    const decide = (fold: Fold) => {
      made.openSince = (ownBranch(fold, 0).fold.state as RunState).openSince
      made.since = fold
      made.situation = situate(this.#key, fold, this.#intent())
      const { situation } = made
      if (situation.do === 'claim') this.#checkContext(fold, situation)
      if (situation.do === 'claim' && situation.isSuspect && !this.#place.reserve()) throw new NotNowError()
      if (situation.do === 'claim' || situation.do === 'settle') return situation.drafts
      throw new Settled()
    }
    try {
      const claim = await claimThread(log, { owner, ms: leaseMs, decide })
      this.#hasClaimed = true
      observeClaim(this.#environment, made.since, log.fold)
      if (made.situation?.do !== 'settle') return { ...made, claim }
      await claim.release()
      return made
    } catch (error) {
      this.#place.leave()
      if (error instanceof Settled) return made
      if (isHoldfastError(error, 'held')) return { since: made.since }
      throw error
    }
  }

  get #onPaused(): OnPaused {
    const { onPaused, busy = 'reject' } = this.#options
    return onPaused ?? (busy === 'reject' ? 'return' : 'queue')
  }

  get #expiry(): Expiry {
    return { store: this.#environment.retention, own: this.#options.retention }
  }

  #intent(): Intent {
    const { maxClaims } = this.#options
    return {
      plan: this.#plan,
      input: this.#input,
      isQueued: this.#queuedAt !== undefined,
      onPaused: this.#onPaused,
      brought: this.#brought,
      restart: this.#restart,
      begins: this.#begins,
      now: this.#environment.clock.now(),
      expiry: this.#expiry,
      ahead: (this.#options.frequency ?? 'step') !== 'step' || (this.#options.durability ?? 'sync') !== 'sync',
      ...(maxClaims === undefined ? {} : { maxClaims }),
    }
  }

  /** The answer where there is nothing to run. Undefined: the log has moved on, try again. */
  async #settled(log: Log, situation: Situation): Promise<Outcome | undefined> {
    switch (situation.do) {
      case 'answer':
        return situation.outcome
      case 'recall':
        return this.#recall(log, situation.ended)
      case 'search':
        return this.#search(log)
      case 'queue': {
        const isWaiting = (fold: Fold) => isOnlyWaiting(fold, this.#environment.clock.now())
        const queued = await this.#enqueue(log, this.#input as InputRecord, false, isWaiting)
        return queued === undefined ? undefined : this.#asItIs(log)
      }
      default:
        return this.#asItIs(log)
    }
  }

  async #asItIs(log: Log): Promise<Outcome> {
    const outcome = readOutcome(this.#key, await this.#asToday(log.fold), this.#restart)
    return this.#input === undefined ? outcome : { ...outcome, input: fateOf(log.fold.state as RunState, this.#input) }
  }

  /** How the run of a key ended, from the entry that ended it. */
  async #recall(log: Log, { seq, branch, ended }: Ended): Promise<Outcome> {
    const key: LogKey = { ...this.#key, branch: branch as LogKey['branch'] }
    const gone = async () => prunedOutcome(this.#key, await this.#asToday(log.fold), ended, this.#restart)
    if (seq === undefined) return gone()
    try {
      const fold = await this.#environment.logs.unread(key).at(seq)
      // A branch that was erased and made again has another past under the same numbers.
      if ((fold.state as RunState).run?.key !== this.#input?.key) return gone()
      return { ...readOutcome(key, await this.#asToday(fold), this.#restart), input: 'taken' }
    } catch (error) {
      if (isHoldfastError(error, 'not-found')) return gone()
      throw error
    }
  }

  /** How the run of an input without a key ended, which was queued here and run by another. */
  async #search(log: Log): Promise<Outcome | undefined> {
    const from = (this.#queuedAt ?? 0) + 1
    try {
      for await (const { fold } of log.entries(from, log.fold.seq)) {
        const { run } = fold.state as RunState
        if (run?.id !== this.#input?.id || isUnfinished(run)) continue
        return { ...readOutcome(this.#key, await this.#asToday(fold), this.#restart), input: 'taken' }
      }
      // It never began, and is not there any more: it is given again.
      this.#queuedAt = undefined
      return undefined
    } catch (error) {
      if (!isHoldfastError(error, 'not-found')) throw error
      return prunedOutcome(this.#key, await this.#asToday(log.fold), undefined, this.#restart)
    }
  }

  /** Another runs this thread. Undefined: try again. */
  async #beBusy(log: Log): Promise<Outcome | undefined> {
    const { busy = 'reject', signal } = this.#options
    if (busy === 'reject') return this.#busyOutcome(log)
    if (this.#input !== undefined && this.#queuedAt === undefined) {
      const stays = this.#onPaused === 'queue' ? {} : { unsaid: 'waits' as const }
      await this.#enqueue(log, { ...this.#input, ...stays }, busy === 'interrupt')
      this.#queuedAt = log.fold.seq
    }
    await this.#untilLetGo(log, signal)
    if (this.#input === undefined) return undefined
    const state = (await log.refresh()).state as RunState
    if (findQueued(state, this.#input)) this.#queuedAt = log.fold.seq
    const isOver = state.run?.status === 'cancelled' || isStuck(state)
    const isOurs = state.run !== undefined && isInput(this.#input, state.run)
    return state.parked || (isOurs && isOver) ? this.#asItIs(log) : undefined
  }

  /** Waits until whoever runs this thread has let go of it, or until it pays to try again: it may have died. */
  async #untilLetGo(log: Log, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#environment
    const until = clock.monotonic() + BUSY_TRY_MS
    const follower = log.follow()
    try {
      do {
        await follower.rest(BUSY_POLL_MS, signal, Math.max(0, until - clock.monotonic()))
        await log.refresh()
      } while (isUnderWay(log.fold.state as RunState) && clock.monotonic() < until)
    } finally {
      follower.close()
    }
  }

  /** Who holds the thread may run a program that is newer than this one: then the state is shown as it is. */
  async #asToday(fold: Fold): Promise<Fold> {
    try {
      return await showFold(this.#plan, fold)
    } catch (error) {
      if (isHoldfastError(error, 'incompatible')) return fold
      throw error
    }
  }

  async enqueue(busy: NonNullable<EnqueueOptions['busy']>): Promise<Enqueued> {
    await this.#readContext(false)
    refuseTransient(this.#brought)
    const input = (await this.#readInput()) as InputRecord
    this.#input = input
    return this.#afterExpiry(() => this.#leave(input, busy))
  }

  async #leave(input: InputRecord, busy: NonNullable<EnqueueOptions['busy']>): Promise<Enqueued> {
    return this.#onLog(
      (options) => this.#environment.logs.borrow(this.#key, options),
      (log) => this.#leaveOn(log, input, busy),
    )
  }

  async #leaveOn(log: Log, input: InputRecord, busy: NonNullable<EnqueueOptions['busy']>): Promise<Enqueued> {
    const misfit = checkFits(this.#key, log.fold, this.#plan, this.#restart)
    if (misfit?.status === 'incompatible') {
      throw new IncompatibleError(misfit.reason, 'program', misfit.remedy, { thread: this.#key.thread })
    }
    // Its own run is no reason to refuse it: a request that is sent again is told what became of the first.
    const isFree = ({ state }: Fold) =>
      fateOf(state as RunState, input) !== 'refused' || currentRun(state as RunState) === undefined
    const known = await this.#enqueue(log, input, busy === 'interrupt', busy === 'reject' ? isFree : undefined)
    const state = log.fold.state as RunState
    return {
      input: known === undefined ? 'refused' : fateOf(state, input),
      run: known === undefined ? undefined : await this.#runOf(state, input),
      ended: input.key !== undefined && findEnded(state, input.key, this.#key.branch) !== undefined,
      checkpoint: log.checkpoint,
    }
  }

  /** The id of the run that an input is given to: that of the first input with its key. */
  async #runOf(state: RunState, input: InputRecord): Promise<string | undefined> {
    const known = [state.run, ...(state.inputs ?? [])].find((other) => other !== undefined && isInput(input, other))
    if (known !== undefined) return known.id
    const ended = input.key === undefined ? undefined : findEnded(state, input.key, this.#key.branch)
    if (ended?.seq === undefined) return undefined
    try {
      const fold = await this.#environment.logs
        .unread({ ...this.#key, branch: ended.branch as LogKey['branch'] })
        .at(ended.seq)
      const { run } = fold.state as RunState
      return run?.key === input.key ? run?.id : undefined
    } catch (error) {
      if (isHoldfastError(error, 'not-found')) return undefined
      throw error
    }
  }

  /** Undefined when the thread is no longer as it has to be; otherwise the input is known to the log from here on. */
  async #enqueue(
    log: Log,
    input: InputRecord,
    interrupt: boolean,
    isFit: (fold: Fold) => boolean = () => true,
  ): Promise<'known' | undefined> {
    const { clock } = this.#environment
    let known: 'known' | undefined
    await log.update((fold) => {
      known = isFit(fold) ? 'known' : undefined
      if (known === undefined) return undefined
      const state = fold.state as RunState
      const run = currentRun(state)
      const isKnown = fateOf(state, input) !== 'refused'
      const isOurs = run === input.id || (input.key !== undefined && keyOf(state, run) === input.key)
      // A request that is sent again must not stop its own run.
      const stop = interrupt && run !== undefined && !isOurs
      if (!isKnown) checkBegins(state, input)
      const queued = findQueued(state, input)
      const relied = [...relyOn(state, input), ...bringToQueued(state, queued?.id, input)]
      if (isKnown && !stop && relied.length === 0) return undefined
      const cancel = { reason: 'interrupted by new input', at: clock.now(), run: run ?? '' }
      // Its turn comes when the run is over that waits: until then nobody needs to look.
      const isBehind = !stop && isUnfinished(state.run) && isOnlyWaiting(fold, clock.now())
      return [
        {
          kind: stop ? 'cancel' : 'input',
          ops: [
            ...beginUnder(this.#expiry, fold),
            ...(isKnown ? relied : [push('inputs', input)]),
            ...(stop ? [set('cancel', cancel)] : []),
          ],
          index: {
            ...(isBehind ? {} : { wakeAt: DUE }),
            ...staysOpen(fold.index),
            ...labels(fold, this.#plan, this.#expiry),
            // A thread at rest has work again; one that waits for a person still does.
            ...(isUnfinished(state.run) ? {} : { status: 'active' }),
          },
        },
      ]
    })
    if (interrupt) this.#environment.company.tell(nameLog(this.#key))
    return known
  }

  async #busyOutcome(log: Log): Promise<BusyOutcome<Readonly<Record<string, Value>>>> {
    const fold = await log.refresh()
    const lease = await this.#environment.logs.lease(this.#key)
    const input = this.#input && fateOf(fold.state as RunState, this.#input)
    // It is said to be queued from here on, and nobody takes it back.
    if (input === 'queued') await this.#enqueue(log, this.#input as InputRecord, false)
    return {
      ...outcomeBase(this.#key, await this.#asToday(fold), this.#restart),
      ...(input === undefined ? {} : { input }),
      status: 'busy',
      owner: lease?.owner ?? '',
      remainingMs: lease?.remainingMs ?? 0,
    }
  }

  #newRun(): Run {
    const { clock, random, store, observer, attempts, redactor, retention } = this.#environment
    const { frequency = 'step', durability = 'sync', signal, isDraining, emit } = this.#options
    return new Run(
      { clock, random, observer, attempts, redactor, retention, store: store(this.#key.tenant) },
      {
        policy: { frequency, durability },
        context: this.#context,
        fillsContext: this.#options.fillsContext ?? false,
        isMisfit: this.#misfit !== undefined,
        signal,
        isDraining,
        emit,
        inlineSleepMs: this.#options.inlineSleepMs ?? DEFAULT_INLINE_SLEEP_MS,
        onPaused: this.#onPaused,
        recordedReads: this.#records,
        begunBeyond: (from, run) => begunBeyond(this.#environment.logs, this.#key, from, run),
        place: this.#place,
      },
      this.#plan,
      this.#key,
    )
  }

  /** @param isWhole what the program needs of it must be there: it begins a run here. */
  async #readContext(isWhole: boolean): Promise<void> {
    const { context, fillsContext } = this.#options
    this.#context = context
    this.#misfit = await contextMisfit(this.#plan, fillsContext ? context : undefined, this.#key.thread)
    if (fillsContext) return
    const { made, kept } = await keepContext(this.#plan, context, this.#environment.redactor, isWhole)
    this.#context = made
    this.#brought = kept
  }

  /** What comes first must have all that it was begun with: its tools would be handed undefined. */
  #checkContext(fold: Fold, { target, drops }: Extract<Situation, { do: 'claim' }>): void {
    const { run, inputs = [], cancel } = ownBranch(fold, 0).fold.state as RunState
    const next = isUnfinished(run) && !drops ? run : inputs[0]
    // To end a run nothing of it is needed.
    if (next === undefined || cancel?.run === next.id) return
    // Another's run that comes before the own one must not act with what this caller brings.
    const isOwn = target === undefined || next.id === target
    const isBrought = isOwn && !isBare(this.#brought)
    if (this.#misfit && next !== run && isBare(next) && !isBrought) throw this.#misfit
    checkBrought(next, isOwn ? this.#context : undefined, this.#key.thread)
  }

  async #readInput(): Promise<InputRecord | undefined> {
    const { input, hasInput } = this.#options
    const key = checkKey(this.#options.key)
    if (!hasInput) {
      if (key !== undefined) throw new InvalidOptionError('key', 'names no input', 'Pass the input that it names.')
      if (this.#options.initial !== undefined) {
        throw new InvalidOptionError('initial', 'begins a thread, which takes input', 'Pass the first input, too.')
      }
      return undefined
    }
    const { redactor } = this.#environment
    const hash = hashKept(input, redactor)
    const checked = await this.#plan.checkInput(input)
    const copied = checked === undefined ? undefined : copyValue(checked, DEFAULT_LIMITS)
    const value = copied === undefined ? undefined : (redactor?.value(copied) ?? copied)
    return {
      id: this.#environment.randomId(),
      hash,
      at: this.#environment.clock.now(),
      ...(key === undefined ? {} : { key }),
      ...(value === undefined ? {} : { value }),
      ...this.#brought,
      ...(await this.#readInitial()),
      // A program of another version may be the one to take it.
      ...(this.#plan.kind === 'graph' ? { stateVersion: this.#plan.stateVersion } : {}),
    }
  }

  async #readInitial(): Promise<Pick<InputRecord, 'initial'>> {
    const { initial } = this.#options
    if (initial === undefined) return {}
    if (this.#plan.kind === 'flow') {
      throw new InvalidOptionError('initial', 'has no meaning for a flow, which keeps no state', 'Pass it as input.')
    }
    const { shape, checkInitial = (given) => shape.check(given, 'initial') } = this.#plan
    const copied = copyValue(await checkInitial(initial), DEFAULT_LIMITS)
    return { initial: this.#environment.redactor?.value(copied) ?? copied }
  }

  async #noteRestart(log: Log): Promise<void> {
    if (this.#options.expect !== 'existing' || log.exists || this.#restart.restarted) return
    const tombstone = await this.#environment.logs.tombstone(this.#key.tenant, this.#key.thread)
    // The day and not the reason: that was written for those who run this, not for the end user.
    const why = tombstone ? ` It was removed on ${new Date(tombstone.at).toISOString().slice(0, 10)}.` : ''
    this.#restart = {
      restarted: true,
      message: `Your earlier conversation is no longer available, so we start from the beginning.${why}`,
    }
  }
}

/** Trouble with the store is none of the state that was read, and is not tried again from the beginning. */
function mayBeOutdated(error: unknown): boolean {
  if (error instanceof StoppedError) return false
  return !(isHoldfastError(error) && ['unavailable', 'storage', 'closed'].includes(error.code))
}

/** The thread that was read is gone: it expired, and was perhaps made again since. */
function isGone(error: unknown): boolean {
  if (isHoldfastError(error, 'conflict')) return error.data['incarnation'] !== undefined
  if (!isHoldfastError(error, 'not-found')) return false
  const { tombstone, createdAt } = error.data as { readonly tombstone?: Tombstone; readonly createdAt?: number }
  // The tombstone goes when the thread is made again.
  return createdAt !== undefined || isExpiry(tombstone?.reason)
}

/** The reads that a fork takes from the branch it came from, if it was made so. */
async function readsOf({ logs }: RuntimeEnvironment, log: Log): Promise<RecordedReads | undefined> {
  const { key, fold } = log
  const { fork, run, inputs } = fold.state as RunState
  if (fork?.reads !== 'recorded') return undefined
  // Forked before its run began: the input that waits is the run to be.
  const id = isUnfinished(run) ? run.id : inputs?.[0]?.id
  if (id === undefined) return undefined
  // Where its beginning is gone, nothing counts as shared: more is read again than would be needed.
  const begun = (await log.firstKept()) === 0 ? ((await log.at(0)).state as RunState) : {}
  return { beyond: await recordsBeyond(logs, key, fork, id), shared: new Set(Object.keys(begun.steps ?? {})) }
}

/** The key of the input that a run was given. */
function keyOf({ run, inputs }: RunState, id: string | undefined): string | undefined {
  return run?.id === id ? run?.key : inputs?.find((input) => input.id === id)?.key
}

// What is misspelt here must not pick the choice that happens to be last: 'restart' leaves a conversation behind.
function checkChoices(options: DriveOptions): void {
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

/** It must run alone, and another that must is under way in this process. */
export class NotNowError extends Error {}

/** Ends a claim before it is made: there is nothing to run. */
class Settled extends Error {}
