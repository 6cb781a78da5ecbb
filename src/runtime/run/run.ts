import { setMaxListeners } from 'node:events'
import type { Redactor } from '../../codec/redactor.js'
import type { StoreRetentionPolicy } from '../../core/retention.js'
import { ClosedError, InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import { onAbort } from '../../core/on-abort.js'
import type { Claim } from '../../log/write/claim.js'
import { DUE, type LogKey } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import type { StoreClock } from '../../log/store-clock.js'
import { set, type State } from '../../log/entry/ops.js'
import type { Updated } from '../../log/write/update.js'
import type { Store } from '../../store/store.js'
import type { Observer, RunObserver } from '../../telemetry/observer.js'
import type { Attempts } from '../step/attempts.js'
import { beginRun, completeRun, migrateRun } from './begin.js'
import type { Drive } from './drive.js'
import type { Place } from '../worker/company.js'
import { nameLog } from '../../core/log-name.js'
import { CancelledError, isStoreFailure, recordError } from '../errors.js'
import { stemsOf } from '../step/failed-steps.js'
import { EventFeed } from '../events/event-feed.js'
import { type LiveEvent, redactEvent, type RunEvent } from '../events/events.js'
import { driveFlow } from '../engine/flow-engine.js'
import { checkFits } from '../upgrade/fitting.js'
import { giveUp } from './give-up.js'
import { fateOf, type OnPaused, settleInput } from './given-input.js'
import { GraphEngine } from '../engine/graph-engine.js'
import { noteEnded } from './input-keys.js'
import { type Settled, settleLeft, settleRun } from '../step/kept-results.js'
import { ASKS } from './labels.js'
import { LeaseKeeper } from '../worker/lease-keeper.js'
import { describeRun, endOfRun } from '../events/observe.js'
import { type Outcome, type Restart, readOutcome } from './outcome.js'
import type { ProgramPlan } from '../program/program.js'
import { checkRecordPolicy, type RecordPolicy } from './record-policy.js'
import { LogRecorder, type Recorder } from './recorder.js'
import type { RecordedReads } from './records.js'
import { contextFor, isBare, missingOf } from './run-context.js'
import { RunDoor } from './run-door.js'
import { isUnfinished, openPauses, type RunState } from './run-state.js'
import { Session, type SessionOptions } from './session.js'
import { expiresWhenAtRest } from './expiry.js'
import {
  endCancelled,
  type ExpiryOf,
  isOnlyWaiting,
  leaveRun,
  nextWake,
  park as parkThread,
  restRun,
} from './situation.js'
import { ViewRecorder } from './view-recorder.js'

/** What a run needs from its surroundings. */
export interface RunEnvironment {
  readonly clock: StoreClock
  readonly store: Store
  readonly random: () => number
  readonly observer: Observer
  readonly attempts: Attempts
  readonly redactor: Redactor | undefined
  readonly retention: StoreRetentionPolicy
}

export interface RunSettings {
  readonly policy: RecordPolicy
  /** What this process brings along. */
  readonly context: unknown
  /** It only fills in what nobody else brought: a worker's. */
  readonly fillsContext: boolean
  /** Input that nobody brought a context to does not fit the program here. */
  readonly isMisfit: boolean
  readonly signal: AbortSignal | undefined
  /** True when no further step should start: what runs may end, then the run is parked. */
  readonly isDraining: (() => boolean) | undefined
  readonly inlineSleepMs: number
  /** What becomes of the input that this run is for, when a run before it can't go on. */
  readonly onPaused: OnPaused
  readonly recordedReads: RecordedReads | undefined
  readonly begunBeyond: NonNullable<SessionOptions['begunBeyond']>
  readonly emit: (event: RunEvent) => void
  /** Its place among the runs of this process. */
  readonly place: Place
}

/**
 * Drives a claimed log until the run of `target` has ended, or nothing is left to do. Releases the claim with the
 * entry that says so. Rejects when the claim is lost: being fenced is an error, not an outcome.
 */
export class Run {
  readonly #environment: RunEnvironment
  readonly #settings: RunSettings
  readonly #plan: ProgramPlan
  readonly #key: LogKey
  #abort = newAbort()
  #feed: EventFeed
  /** Who watches the run that is under way. */
  #watch: RunObserver | undefined
  /** The one run that a caller's context is for. */
  #own: string | undefined

  constructor(environment: RunEnvironment, settings: RunSettings, plan: ProgramPlan, key: LogKey) {
    this.#environment = environment
    this.#settings = settings
    this.#plan = plan
    this.#key = key
    this.#feed = new EventFeed(settings.emit, { told: -1, id: '' })
  }

  get #expiry(): ExpiryOf {
    return { store: this.#environment.retention, plan: this.#plan }
  }

  /**
   * `openSince`: since when what another worker had under way may have happened. `since`: the log before the claim;
   * what was written since is told to listeners first.
   */
  async drive(
    claim: Claim,
    openSince: number | undefined,
    target: string | undefined,
    restart: Restart,
    since: Fold,
  ): Promise<Outcome> {
    const { clock } = this.#environment
    const { place } = this.#settings
    const { log } = claim
    this.#own = target
    this.#feed = new EventFeed(this.#settings.emit, {
      live: log.liveTeller(),
      log,
      told: since.seq,
      id: log.checkpoint ?? '',
      before: since,
    })
    this.#feed.catchUp(log.fold.seq)
    const recorder: LogRecorder = new LogRecorder(claim, this.#settings.policy, (draft, updated, before) => {
      this.#feed.recorded(draft, updated.entries.at(-1), before)
      if (recorder.seen.claims === 0) place.progressed()
      this.#noticeCancel(recorder)
    })
    const lose = (error: unknown) => {
      recorder.fail(error)
      this.#abort.abort(error)
    }
    const keeper = new LeaseKeeper(claim, clock, { onLost: lose, onNews: () => this.#noticeCancel(recorder) })
    const letGo = onAbort(this.#settings.signal, () => this.#abort.abort(new StoppedError()))
    place.listen(nameLog(this.#key), () => void keeper.look())
    try {
      this.#noticeCancel(recorder)
      await this.#enter(recorder)
      const fold = await this.#loop(recorder, keeper, openSince, target)
      // Not come to: something before it is for another version of the program.
      const isOver = target === undefined || (fold.state as RunState).run?.id === target
      const misfit = isOver ? undefined : checkFits(this.#key, fold, this.#plan, restart)
      const outcome = misfit ?? readOutcome(this.#key, fold, restart)
      if (target === undefined) return outcome
      return { ...outcome, input: fateOf(fold.state as RunState, { id: target }) }
    } catch (error) {
      this.#watch?.ended(error instanceof StoppedError ? 'stopped' : 'lost', error)
      if (error instanceof StoppedError) await keeper.letGo(() => park(claim, recorder, openSince !== undefined))
      else void giveUp(claim, this.#environment, error, place.isAlone)
      throw error
    } finally {
      keeper.stop()
      place.leave()
      // Steps that the program did not wait for may still be running: nothing of them is written from here on.
      lose(new ClosedError('This run'))
      letGo()
      await this.#feed.ended()
    }
  }

  /** Nothing of the program runs before this: a process that dies now did not die of it. */
  async #enter(recorder: Recorder): Promise<void> {
    const note = async (alone: boolean) => {
      const { alone: before = 0 } = recorder.state
      recorder.add({ kind: 'resume', ops: [set('alone', alone ? before + 1 : Math.max(0, before - 1))] })
      await recorder.barrier()
    }
    try {
      const entered = await this.#settings.place.enter(this.#environment.clock, this.#abort.signal, note)
      if (!entered) throw new StoppedError()
    } catch (error) {
      // Nothing of a cancelled run starts any more, so nothing can happen to those who are here.
      if (!(error instanceof CancelledError)) throw error
    }
  }

  /** Runs without a claim and without a record. */
  async driveUnrecorded(log: Log, input: RunState['inputs'], begins?: RunState['fork']): Promise<Outcome> {
    const before = log.fold.state as RunState
    const fork = before.fork ?? begins
    const fold: Fold = {
      ...log.fold,
      state: {
        ...(before.state ? { state: before.state } : {}),
        ...(fork ? { fork: fork as never } : {}),
        ...(before.left ? { left: before.left as never } : {}),
        inputs: (input ?? []) as never,
      },
    }
    const recorder = new ViewRecorder(fold, (draft, _, before) => this.#feed.recorded(draft, undefined, before))
    const { signal } = this.#settings
    const letGo = onAbort(signal, () => this.#abort.abort(signal?.reason))
    try {
      await this.#enter(recorder)
      const ended = await this.#loop(recorder, undefined, undefined, undefined)
      return { ...readOutcome(this.#key, ended), checkpoint: undefined }
    } catch (error) {
      this.#watch?.ended('lost', error)
      throw error
    } finally {
      this.#settings.place.leave()
      letGo()
    }
  }

  async #loop(
    recorder: Recorder,
    keeper: LeaseKeeper | undefined,
    openSince: number | undefined,
    target: string | undefined,
  ): Promise<Fold> {
    const { clock } = this.#environment
    let unmoved: number | undefined
    let inherited = openSince
    for (;;) {
      const begun = isUnfinished(recorder.state.run)
      if (!begun && (recorder.seen.inputs ?? []).length === 0) {
        const rested = await this.#rest(recorder, keeper)
        if (rested) return rested
        continue
      }
      if (!begun && this.#lacksContext(recorder)) {
        // Who claims it next for this very input is told what is missing.
        const left = await this.#leave(recorder, keeper, target)
        if (left) return left
        continue
      }
      const failure = await this.#begin(recorder, begun)
      if (failure && checkFits(this.#key, recorder.fold, this.#plan, { restarted: false })) {
        const left = await this.#leave(recorder, keeper, target)
        if (left) return left
        continue
      }
      if (failure) {
        const park = () =>
          recorder.conclude((fold) => parkBehind(fold, failure.error, target, this.#settings.onPaused), true)
        const parked = await (keeper === undefined ? park() : keeper.letGo(park))
        this.#environment.observer.count('holdfast.runs.failed')
        return parked?.fold ?? recorder.fold
      }
      const run = recorder.state.run?.id
      const watch = this.#watched(recorder, begun)
      const door = new RunDoor(recorder)
      // What an effect begins with is recorded before it: of a run that was not recorded yet nothing was begun.
      const since = begun || recorder.state.ahead ? inherited : undefined
      const session = this.#session(door, keeper, since, watch)
      const driven = keepErrors(session, await watch.within(() => this.#drive(session)))
      if (driven.status === 'failed') this.#throwIfStopped(driven.error)
      if (driven.status === 'suspended' && this.#settings.isDraining?.()) throw new StoppedError()
      const isTarget = target === undefined || run === target
      const more = driven.status === 'completed' || recorder.seen.cancel?.run === run
      // As long as nothing of this run is written, its own input lies among those that others see.
      const others = (recorder.seen.inputs ?? []).filter(({ id }) => id !== run)
      const goOn = more && (!isTarget || (target === undefined && others.length > 0))
      if (goOn) door.close()
      const stuck = unmoved === recorder.fold.seq
      const isCancelled = recorder.seen.cancel?.run === run
      const settled = isCancelled ? await settleRun(this.#plan, recorder.state) : undefined
      // It says until when the thread is kept.
      await clock.catchUp()
      const conclude = () =>
        recorder.conclude((fold) => {
          const ending = {
            now: clock.now(),
            stuck,
            goOn,
            inherited,
            target,
            onPaused: this.#settings.onPaused,
            expiry: this.#expiry,
            settled,
          }
          return endOf(fold, driven, ending)
        }, !goOn)
      let ended: Updated | undefined
      try {
        ended = await (goOn || keeper === undefined ? conclude() : keeper.letGo(conclude))
      } catch (error) {
        if (isStoreFailure(error)) throw error
        door.close()
        const fold = await this.#endRefused(recorder, keeper, error, { inherited, target })
        watch.ended('failed', error)
        this.#watch = undefined
        return fold
      }
      if (ended) {
        watch.ended(endOfRun(ended.fold), driven.status === 'failed' ? driven.error : undefined)
        this.#watch = undefined
      }
      if (ended !== undefined && !goOn) return ended.fold
      // Something came while the run was about to wait, so it goes on at once. But a program that makes nothing of it
      // would be called for ever: when nothing was written since, it waits all the same.
      unmoved = ended === undefined ? recorder.fold.seq : undefined
      if (ended) inherited = undefined
      // The signal of a cancelled run says nothing to the next one.
      if (ended && this.#abort.signal.reason instanceof CancelledError) this.#abort = newAbort()
    }
  }

  #lacksContext({ seen }: Recorder): boolean {
    const next = seen.inputs?.[0]
    if (next === undefined || seen.cancel?.run === next.id) return false
    if (this.#settings.isMisfit && isBare(next)) return true
    return missingOf(next, this.#contextOf(next.id)).length > 0
  }

  /**
   * What this process brings to a run. A caller brings it to the run that it asks for, or to the one that it resumes, and
   * to no other that is driven on the way: that one's tools would act for one person with the token of another.
   */
  #contextOf(run: string): unknown {
    const { context, fillsContext } = this.#settings
    if (fillsContext) return context
    this.#own ??= run
    return run === this.#own ? context : undefined
  }

  #contextHere({ state: { run }, seen }: Recorder): unknown {
    // Of a cancelled run nothing is called any more, so nothing is brought to it.
    if (run === undefined || (this.#own === undefined && seen.cancel?.run === run.id)) return undefined
    return contextFor(run, this.#contextOf(run.id), this.#settings.fillsContext)
  }

  /** Takes the next input, brings an old state up to date. What can't be begun stays as it is, for a mended program. */
  async #begin(recorder: Recorder, begun: boolean): Promise<{ readonly error: unknown } | undefined> {
    try {
      const migrated = migrateRun(this.#plan, recorder.state)
      if (migrated) recorder.add(migrated)
      const completed = begun ? completeRun(this.#plan, recorder.state) : undefined
      if (completed) recorder.add(completed)
      const left = begun ? undefined : await settleLeft(this.#plan, recorder.state)
      if (left) recorder.add({ kind: 'step', ops: left.ops, data: { events: left.events } })
      const { incarnation } = recorder.fold
      if (!begun) recorder.add(beginRun(this.#plan, recorder.state, this.#environment.clock.now(), incarnation))
      this.#noticeCancel(recorder)
      return undefined
    } catch (error) {
      return { error }
    }
  }

  /** The same observer as long as the same run is under way here. */
  #watched(recorder: Recorder, begun: boolean): RunObserver {
    if (this.#watch) return this.#watch
    this.#watch = this.#environment.observer.run(describeRun(this.#key, this.#plan, recorder.state, begun))
    const { trace } = this.#watch
    // Travels with the first step.
    if (trace !== undefined && !begun) recorder.add({ kind: 'step', ops: [set(['run', 'trace'], trace)] })
    return this.#watch
  }

  async #drive(session: Session): Promise<Drive> {
    try {
      session.throwIfAborted()
      if (this.#plan.kind === 'flow') return await driveFlow(session, this.#plan)
      const driven = await new GraphEngine(session, this.#plan).drive()
      if (driven.status !== 'completed') return driven
      return { ...driven, limit: this.#plan.limit?.(driven.output as State) }
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /**
   * The log can't hold what this run wants to write: that is dropped, as by a crash, and the run fails of it. Where even
   * its beginning can't be written, the thread is left alone.
   */
  async #endRefused(
    recorder: Recorder,
    keeper: LeaseKeeper | undefined,
    error: unknown,
    { inherited, target }: Pick<Ending, 'inherited' | 'target'>,
  ): Promise<Fold> {
    const { clock } = this.#environment
    const { onPaused } = this.#settings
    const end = async () => {
      await recorder.discard()
      const failure = await this.#begin(recorder, isUnfinished(recorder.state.run))
      if (failure) return park(failure.error)
      const ending = { now: clock.now(), stuck: true, goOn: false, inherited, target, onPaused, expiry: this.#expiry }
      try {
        return await recorder.conclude((fold) => endOf(fold, { status: 'failed', error }, ending), true)
      } catch (again) {
        if (isStoreFailure(again)) throw again
        return park(again)
      }
    }
    const park = async (cause: unknown) => {
      await recorder.discard()
      return recorder.conclude((fold) => parkBehind(fold, cause, target, onPaused), true)
    }
    const ended = await (keeper === undefined ? end() : keeper.letGo(end))
    return ended?.fold ?? recorder.fold
  }

  /** Nothing to run after all: lets go. Undefined when input came meanwhile, which nobody would ever be woken for. */
  async #rest(recorder: Recorder, keeper: LeaseKeeper | undefined): Promise<Fold | undefined> {
    const { clock } = this.#environment
    const release = () =>
      recorder.conclude((fold) => {
        const state = fold.state as RunState
        if ((state.inputs ?? []).length > 0) return undefined
        const expires = isUnfinished(state.run) ? {} : expiresWhenAtRest(this.#expiry, fold, this.#plan, clock.now())
        return { kind: 'release', ops: restRun(state), index: { wakeAt: null, ...expires } }
      }, true)
    const released = await (keeper === undefined ? release() : keeper.letGo(release))
    return released?.fold
  }

  /** Another version of the program has to go on: lets go of a thread that stays due. */
  async #leave(
    recorder: Recorder,
    keeper: LeaseKeeper | undefined,
    target: string | undefined,
  ): Promise<Fold | undefined> {
    const release = () =>
      recorder.conclude(({ state }) => {
        const ops = [...restRun(state as RunState), ...settleInput(state as RunState, target, false)]
        return { kind: 'release', ops, index: { wakeAt: DUE } }
      }, true)
    const released = await (keeper === undefined ? release() : keeper.letGo(release))
    return released?.fold
  }

  #session(
    recorder: Recorder,
    keeper: LeaseKeeper | undefined,
    openSince: number | undefined,
    watch: RunObserver,
  ): Session {
    const { clock, store, random } = this.#environment
    return new Session({
      log: this.#key,
      recorder,
      clock,
      store,
      random,
      openSince,
      context: this.#contextHere(recorder),
      abort: this.#abort,
      heartbeat: async () => keeper?.beat(),
      lease: keeper,
      attempts: this.#environment.attempts,
      redactor: this.#environment.redactor,
      watch,
      emit: (live: LiveEvent) => {
        const event = redactEvent(this.#environment.redactor, live)
        if (event.type === 'retry') watch.retried(event.step, event.attempt, event.error)
        this.#feed.live(event)
      },
      inlineSleepMs: this.#settings.inlineSleepMs,
      isDraining: this.#settings.isDraining,
      begunBeyond: this.#settings.begunBeyond,
      ...(this.#settings.recordedReads ? { recordedReads: this.#settings.recordedReads } : {}),
    })
  }

  #noticeCancel(recorder: Recorder): void {
    const { cancel } = recorder.seen
    if (cancel === undefined) return
    // Our own view: what others see may not hold the run yet.
    const { run } = recorder.state
    if (isUnfinished(run) && cancel.run === run.id && !this.#abort.signal.aborted) {
      this.#abort.abort(new CancelledError(cancel.reason, { by: cancel.by ?? null }))
    }
  }

  // These say nothing of the run itself: it is not over, and not failed. Nor does what a program throws when it is told
  // to stop.
  #throwIfStopped(error: unknown): void {
    const { signal } = this.#abort
    if (signal.aborted && !(signal.reason instanceof CancelledError)) throw signal.reason
    if (error instanceof StoppedError || isStoreFailure(error)) throw error
  }
}

/** What the program itself threw is recorded, too. */
function keepErrors(session: Session, driven: Drive): Drive {
  return driven.status === 'failed' ? { ...driven, error: session.keepError(driven.error) } : driven
}

// Each step that runs listens; Node warns of a leak from the eleventh on.
function newAbort(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** The caller asked to stop; the run is parked and can be resumed by anyone. */
export class StoppedError extends Error {
  constructor(store: 'hanging' | 'fine' = 'fine') {
    super(
      store === 'fine'
        ? 'The run was stopped; it can be resumed.'
        : 'The run was stopped, but the store does not answer. It can be resumed when the store does, at the latest when ' +
            'its lease has run out.',
    )
    this.name = 'AbortError'
  }
}

interface Ending {
  readonly now: number
  readonly stuck: boolean
  readonly goOn: boolean
  /** Since when something may have been under way before this claim. */
  readonly inherited: number | undefined
  /** The input that this claim was made for, and what becomes of it if this run, before it, can't go on. */
  readonly target: string | undefined
  readonly onPaused: OnPaused
  readonly expiry: ExpiryOf
  /** Of a run that is cancelled: what brings its results into the state. */
  readonly settled?: Settled | undefined
}

/** The entry that ends a stretch of a run. Undefined when something came that lets it go on. */
function endOf(fold: Fold, driven: Drive, ending: Ending): Draft | undefined {
  const { now, stuck, goOn, inherited, target, onPaused, expiry, settled } = ending
  const state = fold.state as RunState
  const { run } = state
  if (run === undefined) return undefined
  // The next run of this claim is under way from here on.
  const over = goOn
    ? [set('claims', 1), ...(state.alone ? [set('alone', 0)] : []), set('openSince', now)]
    : restRun(state)
  const isMisfit = driven.status === 'failed' && isHoldfastError(driven.error, 'incompatible')
  // What an interrupted worker did further on, ahead of its records, is not found out before the run comes there; and a
  // program that fails, or does not fit, may come to nothing of what was under way: whoever resumes the run must still
  // know how old the keys are.
  const isOpen = inherited !== undefined && (state.ahead === true || driven.status === 'failed')
  const rest = isOpen ? [set('claims', 0), ...(state.alone ? [set('alone', 0)] : [])] : over
  const cancelled = endCancelled(fold, over, now, expiry, settled)
  if (cancelled) return cancelled
  const waits = (state.inputs ?? []).length > 0
  switch (driven.status) {
    case 'completed': {
      const { limit } = driven
      const status = limit === undefined ? 'completed' : 'limited'
      return {
        kind: 'step',
        ops: [
          set(['run', 'status'], 'completed'),
          ...(limit === undefined ? [] : [set(['run', 'limit'], limit)]),
          ...over,
          ...(run.kind === 'flow' && driven.output !== undefined ? [set(['run', 'output'], driven.output)] : []),
          ...leaveRun(state, now),
          ...noteEnded(state, fold.seq + 1, 'completed'),
        ],
        index: {
          status: waits ? 'active' : status,
          wakeAt: waits ? DUE : null,
          ...(waits ? {} : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
        },
        data: { events: [{ type: 'run', run: run.id, status, ...limit }] },
      }
    }
    case 'suspended': {
      const waiting = { ...fold, state: { ...state, run: { ...run, waiting: driven.waiting } } as never }
      if (!stuck && !isOnlyWaiting(waiting, now)) return undefined
      return {
        kind: 'wait',
        ops: [
          set(['run', 'waiting'], driven.waiting),
          ...rest,
          // To drop a run that waits is the next thing that is done for this input.
          ...(onPaused === 'cancel' ? [] : settleInput(state, target, onPaused === 'queue')),
        ],
        index: {
          status: openPauses(state).length > 0 ? 'waiting_human' : 'waiting',
          wakeAt: nextWake(waiting.state as RunState),
        },
        data: { events: [{ type: 'run', run: run.id, status: 'paused' }] },
      }
    }
    default: {
      const error = recordError(driven.error)
      const { retry, doubt } = stemsOf([driven.error, ...(driven.others ?? [])])
      return {
        kind: 'end',
        ops: [
          set(['run', 'status'], isMisfit ? 'incompatible' : 'failed'),
          set(['run', 'error'], error),
          ...rest,
          ...(retry.length === 0 ? [] : [set(['run', 'retry'], retry)]),
          set(['run', 'doubt'], doubt),
          ...settleInput(state, target, onPaused === 'queue'),
        ],
        index: {
          status: isMisfit ? 'incompatible' : 'failed',
          wakeAt: null,
          ...(openPauses(state).length > 0 ? { metadata: { [ASKS]: true } } : {}),
          ...(isMisfit || waits || openPauses(state).length > 0
            ? {}
            : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
        },
        data: { events: [{ type: 'run', run: run.id, status: isMisfit ? 'incompatible' : 'failed', error }] },
      }
    }
  }
}

/** Leaves a thread alone whose next run can't begin. Input behind that one is taken back; its own stays to be tried again. */
function parkBehind(fold: Fold, cause: unknown, target: string | undefined, onPaused: OnPaused): Draft {
  const state = fold.state as RunState
  const parked = parkThread(cause, state)
  if (!isUnfinished(state.run) && state.inputs?.[0]?.id === target) return parked
  return { ...parked, ops: [...(parked.ops ?? []), ...settleInput(state, target, onPaused === 'queue')] }
}

// What is recorded stays; what is under way is lost as in a crash, but nobody has to wait for the lease.
// And where something was under way before, it is not known how far this process has come to it.
async function park(claim: Claim, recorder: LogRecorder, wasOpen: boolean): Promise<void> {
  try {
    const said = await recorder.conclude(({ state }) => {
      const { run, ...others } = state as RunState
      if (!isUnfinished(run)) return undefined
      const { openSince: _, ahead: __, ...counts } = others
      return { kind: 'park', ops: restRun(wasOpen ? counts : others), data: { events: [] } }
    }, true)
    if (said === undefined) await claim.release()
  } catch {
    await claim.release().catch(() => {})
  }
}

/** Before anything is claimed. */
export function checkSettings(policy: RecordPolicy): void {
  checkRecordPolicy(policy)
  if (policy.frequency === 'none' && policy.durability !== 'sync') {
    throw new InvalidOptionError('durability', "has no meaning with frequency 'none'", 'Leave one of them out.')
  }
}
