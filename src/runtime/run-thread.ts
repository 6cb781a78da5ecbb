import { DEFAULT_LIMITS } from '../codec/limits.js'
import { copyValue, type Value } from '../codec/value.js'
import type { Clock } from '../core/clock.js'
import { IncompatibleError, InvalidOptionError, InvalidValueError, isHoldfastError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import type { Claim } from '../log/claim.js'
import type { LogKey } from '../log/contract.js'
import type { Fold } from '../log/fold.js'
import type { Log } from '../log/log.js'
import type { LogStore } from '../log/log-store.js'
import { push, set } from '../log/ops.js'
import type { Store } from '../store/store.js'
import type { Observer } from '../telemetry/observer.js'
import type { RunEvent } from './events.js'
import { Company, Place } from './company.js'
import { checkFits } from './fitting.js'
import { hashValue } from './hash-value.js'
import { ownBranch } from './inherit.js'
import { showFold } from './kept-results.js'
import { type BusyOutcome, type Outcome, outcomeBase, type Restart, readOutcome } from './outcome.js'
import { observeClaim } from './observe.js'
import type { ProgramPlan } from './program.js'
import type { Durable, Frequency } from './record-policy.js'
import { checkSettings, Run } from './run.js'
import { type RecordedRead, recordsBeyond } from './records.js'
import { type OnCorrupt, openOrRecover } from './recover.js'
import { currentRun, type ForkRecord, type InputRecord, isUnfinished, type RunState } from './run-state.js'
import { type Intent, isOnlyWaiting, labels, type OnPaused, type Situation, situate } from './situation.js'
import { isInsideStep } from './session.js'

/** What threads need of the open store. */
export interface RuntimeEnvironment {
  readonly logs: LogStore
  readonly clock: Clock
  readonly randomId: () => string
  readonly random: () => number
  /** Names this process to people who look. */
  readonly owner: string
  readonly observer: Observer
  /** Who runs in this process. */
  readonly company: Company
  /** Those that must stop before the store is closed. */
  readonly workers: LiveWorkers
  store(tenant: TenantId): Store
  /** Frees the room of a bounded number of expired items. True when more may be left. */
  sweep(): Promise<boolean>
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
   * Names this input, such as a message id: given again with the same key it is not taken twice, and the recorded outcome
   * is returned. Default: none, and an input of the same content only resumes a run that was interrupted.
   */
  readonly key?: string
  /** What this run brings along; handed to the program as `ctx.context` and not kept. */
  readonly context?: unknown
  /**
   * Stops the run where it is: `run` rejects with an error named `AbortError`, the thread is let go of, and any process
   * can resume it. To end a run for good, use `thread.cancel()`.
   */
  readonly signal?: AbortSignal
  /** Whether the next step waits until the last one's record is acknowledged. Default 'sync': it does. */
  readonly durability?: Durable
  /** How often the run writes. Default 'step': one record per step. */
  readonly frequency?: Frequency
  /** What to do while another runs this thread. Default 'reject': the outcome is `busy`. */
  readonly busy?: 'reject' | 'queue' | 'interrupt'
  /** What to do with new input while questions are open. Default 'return': the outcome is `paused`. */
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
  readonly lease?: number
  /** Sleeps up to this long are waited for, longer ones suspend the run. Default 1,000 ms. */
  readonly inlineSleepMs?: number
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
  readonly owner?: string
}

const DEFAULT_LEASE_MS = 10_000
const DEFAULT_INLINE_SLEEP_MS = 1000
const BUSY_POLL_MS = 100

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
  if (outcome.status !== 'completed' || plan.kind !== 'graph' || plan.output === undefined) return outcome
  return { ...outcome, output: plan.output(outcome.state) as never }
}

/** Leaves input for whoever runs the thread next, usually a worker. Nothing runs here. */
export async function enqueueInput(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  options: { readonly input: unknown; readonly key?: string },
): Promise<void> {
  await new ThreadRunner(environment, plan, key, { ...options, hasInput: true, emit: () => {} }).enqueue()
}

class ThreadRunner {
  readonly #environment: RuntimeEnvironment
  readonly #plan: ProgramPlan
  readonly #options: DriveOptions
  readonly #place: Place
  #key: LogKey
  #records: ReadonlyMap<string, RecordedRead> | undefined
  #restart: Restart = { restarted: false }
  #begins: ForkRecord | undefined
  #input: InputRecord | undefined

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
    this.#input = await this.#readInput()
    const { log, key, restart, begins } = await openOrRecover(
      this.#environment.logs,
      this.#key,
      this.#options.onCorrupt ?? 'fail',
    )
    this.#key = key
    this.#restart = restart
    this.#begins = begins
    const outcome = await this.#runOn(log, frequency)
    this.#environment.logs.giveBack(log)
    return outcome
  }

  async #runOn(log: Log, frequency: Frequency): Promise<Outcome> {
    await this.#noteRestart(log)
    this.#records = await readsOf(this.#environment, log)
    if (frequency === 'none') return this.#newRun().driveUnrecorded(log, this.#input && [this.#input], this.#begins)
    for (let first = true; ; first = false) {
      const { settled, claim, target, openSince, since } = await this.#claim(log)
      if (settled) return this.#answer(settled)
      if (claim) return this.#newRun().drive(claim, openSince, target, this.#restart, since)
      const busy = await this.#beBusy(log, first)
      if (busy) return busy
    }
  }

  async #claim(log: Log) {
    const { lease = DEFAULT_LEASE_MS, owner = this.#environment.owner } = this.#options
    let situation: Situation | undefined
    let openSince: number | undefined
    let since = log.fold
    const decide = (fold: Fold) => {
      openSince = (ownBranch(fold, 0).fold.state as RunState).openSince
      since = fold
      situation = situate(this.#key, fold, this.#intent())
      if (situation.do === 'claim' && situation.isSuspect && !this.#place.reserve()) throw new NotNowError()
      if (situation.do === 'claim' || situation.do === 'park') return situation.drafts
      throw new Settled()
    }
    try {
      const claim = await log.claim({ owner, ms: lease, decide })
      observeClaim(this.#environment, since, log.fold)
      if (situation?.do === 'park') {
        await claim.release()
        const outcome = readOutcome(this.#key, await this.#asToday(log.fold), this.#restart)
        return { settled: { do: 'answer' as const, outcome }, since }
      }
      const target = situation?.do === 'claim' ? situation.target : undefined
      return { claim: claim as Claim | undefined, target, openSince, since }
    } catch (error) {
      this.#place.leave()
      if (error instanceof Settled) return { settled: situation as Settlement, since }
      if (isHoldfastError(error, 'held')) return { since }
      throw error
    }
  }

  #intent(): Intent {
    const { onPaused = 'return', maxClaims } = this.#options
    return {
      plan: this.#plan,
      input: this.#input,
      onPaused,
      restart: this.#restart,
      begins: this.#begins,
      now: this.#environment.clock.now(),
      ahead: (this.#options.frequency ?? 'step') !== 'step' || (this.#options.durability ?? 'sync') !== 'sync',
      ...(maxClaims === undefined ? {} : { maxClaims }),
    }
  }

  async #answer(situation: Settlement): Promise<Outcome> {
    if (situation.do === 'answer') return situation.outcome
    const key: LogKey = { ...this.#key, branch: situation.branch as LogKey['branch'] }
    const fold = await this.#environment.logs.unread(key).at(situation.seq)
    return readOutcome(key, await showFold(this.#plan, fold), this.#restart)
  }

  /** Another runs this thread. Undefined: try again. */
  async #beBusy(log: Log, first: boolean): Promise<Outcome | undefined> {
    const { busy = 'reject', signal } = this.#options
    if (busy === 'reject' || this.#input === undefined) {
      if (busy !== 'reject') {
        await this.#environment.clock.sleep(BUSY_POLL_MS, signal)
        return undefined
      }
      return this.#busyOutcome(log)
    }
    if (first) await this.#enqueue(log, this.#input, busy === 'interrupt')
    await this.#environment.clock.sleep(BUSY_POLL_MS, signal)
    const { run, parked } = (await log.refresh()).state as RunState
    const { id, key } = this.#input
    const isOurs = run?.id === id || (key !== undefined && run?.key === key)
    if (
      parked ||
      (isOurs && (run.status === 'failed' || run.status === 'incompatible' || run.status === 'cancelled'))
    ) {
      return readOutcome(this.#key, await this.#asToday(log.fold), this.#restart)
    }
    return undefined
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

  async enqueue(): Promise<void> {
    this.#input = await this.#readInput()
    const log = await this.#environment.logs.borrow(this.#key)
    const misfit = checkFits(this.#key, log.fold, this.#plan, this.#restart)
    if (misfit?.status === 'incompatible') {
      throw new IncompatibleError(misfit.reason, 'program', misfit.remedy, { thread: this.#key.thread })
    }
    if (this.#input) await this.#enqueue(log, this.#input, false)
    this.#environment.logs.giveBack(log)
  }

  async #enqueue(log: Log, input: InputRecord, interrupt: boolean): Promise<void> {
    const { clock } = this.#environment
    await log.update((fold) => {
      const state = fold.state as RunState
      const run = currentRun(state)
      const known = [
        ...(state.inputs ?? []),
        ...(state.taken ?? []).map((taken) => ({ id: taken.run, key: taken.key })),
      ]
      const isKnown = known.some(({ id, key }) => id === input.id || (input.key !== undefined && key === input.key))
      const isOurs = run === input.id || (input.key !== undefined && keyOf(state, run) === input.key)
      // A request that is sent again must not stop its own run.
      const stop = interrupt && run !== undefined && !isOurs
      if (isKnown && !stop) return undefined
      const cancel = { reason: 'interrupted by new input', at: clock.now(), run: run ?? '' }
      // Its turn comes when the run is over that waits: until then nobody needs to look.
      const isBehind = !stop && isUnfinished(state.run) && isOnlyWaiting(fold, clock.now())
      return [
        {
          kind: stop ? 'cancel' : 'input',
          ops: [...(isKnown ? [] : [push('inputs', input)]), ...(stop ? [set('cancel', cancel)] : [])],
          index: {
            ...(isBehind ? {} : { wakeAt: clock.now() }),
            ...labels(fold, this.#plan),
            // A thread at rest has work again; one that waits for a person still does.
            ...(isUnfinished(state.run) ? {} : { status: 'active' }),
          },
        },
      ]
    })
  }

  async #busyOutcome(log: Log): Promise<BusyOutcome<Readonly<Record<string, Value>>>> {
    const fold = await log.refresh()
    const lease = await this.#environment.logs.lease(this.#key)
    return {
      ...outcomeBase(this.#key, await this.#asToday(fold), this.#restart),
      status: 'busy',
      owner: lease?.owner ?? '',
      remainingMs: lease?.remainingMs ?? 0,
    }
  }

  #newRun(): Run {
    const { clock, random, store, observer } = this.#environment
    const { frequency = 'step', durability = 'sync', context, signal, isDraining, emit } = this.#options
    return new Run(
      { clock, random, observer, store: store(this.#key.tenant) },
      {
        policy: { frequency, durability },
        context,
        signal,
        isDraining,
        emit,
        inlineSleepMs: this.#options.inlineSleepMs ?? DEFAULT_INLINE_SLEEP_MS,
        recordedReads: this.#records,
        place: this.#place,
      },
      this.#plan,
      this.#key,
    )
  }

  async #readInput(): Promise<InputRecord | undefined> {
    const { input, key, hasInput } = this.#options
    if (!hasInput) {
      if (key !== undefined) throw new InvalidOptionError('key', 'names no input', 'Pass the input that it names.')
      return undefined
    }
    if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 512 || !key.isWellFormed())) {
      throw new InvalidValueError('key', 'must be 1 to 512 characters', 'Pass an id of the request or message.')
    }
    const hash = hashValue(input)
    const checked = await this.#plan.checkInput(input)
    const value = checked === undefined ? undefined : copyValue(checked, DEFAULT_LIMITS)
    return {
      id: this.#environment.randomId(),
      hash,
      at: this.#environment.clock.now(),
      ...(key === undefined ? {} : { key }),
      ...(value === undefined ? {} : { value }),
      // A program of another version may be the one to take it.
      ...(this.#plan.kind === 'graph' ? { stateVersion: this.#plan.stateVersion } : {}),
    }
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

/** The reads that a fork takes from the branch it came from, if it was made so. */
async function readsOf({ logs }: RuntimeEnvironment, { key, fold }: Log) {
  const { fork, run, inputs } = fold.state as RunState
  if (fork?.reads !== 'recorded') return undefined
  // Forked before its run began: the input that waits is the run to be.
  const id = isUnfinished(run) ? run.id : inputs?.[0]?.id
  return id === undefined ? undefined : recordsBeyond(logs, key, fork, id)
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
    throw new InvalidOptionError(field, 'is none that is known', `Use ${known.map((one) => `'${one}'`).join(' or ')}.`)
  }
}

type Settlement = Exclude<Situation, { do: 'claim' | 'park' }>

/** It must run alone, and another that must is under way in this process. */
export class NotNowError extends Error {}

/** Ends a claim before it is made: there is nothing to run. */
class Settled extends Error {}
