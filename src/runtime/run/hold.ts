import { ClosedError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { onAbort } from '../../core/on-abort.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import { set } from '../../log/entry/ops.js'
import type { Log } from '../../log/log.js'
import { Claim } from '../../log/write/claim.js'
import type { Updated } from '../../log/write/update.js'
import type { RunObserver } from '../../telemetry/observer.js'
import { withErrands } from '../child/errands.js'
import type { ParentRef } from '../child/child-records.js'
import { isStillAwaited } from '../child/run-errands.js'
import { CancelledError, isStoreFailure } from '../errors.js'
import { EventFeed } from '../events/event-feed.js'
import { type LiveEvent, redactEvent } from '../events/events.js'
import { describeRun, endOfRun } from '../events/observe.js'
import { settleLeft, settleRun } from '../step/kept-results.js'
import { checkFits } from '../upgrade/fitting.js'
import { LeaseKeeper } from '../worker/lease-keeper.js'
import { beginRun, completeRun, migrateRun } from './begin.js'
import { type Ending, endOf, leaveThread, parkBehind, restThread, stopRun } from './conclude.js'
import { giveUp } from './give-up.js'
import { fateOf } from './given-input.js'
import { type Outcome, readOutcome } from './outcome.js'
import type { RecordedReads } from './recorded-reads.js'
import type { Request } from './request.js'
import { type Drive, Run } from './run.js'
import { RunAbort } from './run-abort.js'
import { CallerContext } from './caller-context.js'
import { type RunClaim, RunLog } from './run-log.js'
import { type InputRecord, isUnfinished, type RunState } from './run-state.js'
import type { ExpiryOf } from './run-ops.js'
import { StoppedError } from './stop-in-time.js'
import { Unrecorded } from './unrecorded.js'

/** Why a run could not begin. */
interface Failure {
  readonly error: unknown
}

/** A thread and the right to run it. */
export interface Held {
  readonly claim: Claim
  /** The input that it was claimed for; undefined: whatever is to be done. */
  readonly target: string | undefined
  /** Since when what another worker had in progress may have happened. */
  readonly openSince: number | undefined
  /** The log before the claim: what was written since is reported to listeners first. */
  readonly since: Fold
}

/**
 * A thread held by this process: drives one run after the other until that of the target has ended, or nothing is left
 * to do, and releases it with the entry that says so.
 */
export class Hold {
  readonly #request: Request
  readonly #claim: RunClaim
  readonly #recordedReads: RecordedReads | undefined
  readonly #target: string | undefined
  #keeper: LeaseKeeper | undefined
  #feed: EventFeed
  /** Of the run that is in progress. */
  #log: RunLog
  #abort = new RunAbort()
  #watch: RunObserver | undefined
  /** Since when something may have been in progress before this claim. */
  #inherited: number | undefined
  /** Where the log ended when a run was about to wait and something came in between. */
  #unmoved: { readonly seq: number; readonly at: number } | undefined
  readonly #context: CallerContext

  private constructor(request: Request, claim: RunClaim, held?: Held, recordedReads?: RecordedReads) {
    this.#request = request
    this.#claim = claim
    this.#target = held?.target
    this.#context = new CallerContext(request, held?.target)
    this.#inherited = held?.openSince
    this.#recordedReads = recordedReads
    this.#feed = new EventFeed(request.options.emit, startOf(held))
    this.#log = this.#newLog()
  }

  /** Rejects when the claim is lost: being fenced is an error, not an outcome. */
  static drive(request: Request, held: Held, recordedReads: RecordedReads | undefined): Promise<Outcome> {
    return new Hold(request, held.claim, held, recordedReads).#driveClaimed(held)
  }

  /** Runs without a claim and without a record. */
  static async driveUnrecorded(request: Request, log: Log, recordedReads: RecordedReads | undefined): Promise<Outcome> {
    const before = log.fold.state as RunState
    const fork = before.fork ?? request.begins
    const state = {
      ...(before.state ? { state: before.state } : {}),
      ...(fork ? { fork: fork as never } : {}),
      ...(before.left ? { left: before.left as never } : {}),
      inputs: (request.input ? [request.input] : []) as never,
    }
    return new Hold(request, new Unrecorded({ ...log.fold, state }), undefined, recordedReads).#driveUnrecorded()
  }

  async #driveClaimed({ claim, target, openSince }: Held): Promise<Outcome> {
    const { environment, options, place, key, plan, restart } = this.#request
    const keeper = new LeaseKeeper(claim, environment.clock, {
      onLost: (error) => this.#lose(error),
      onNews: () => this.#noticeCancel(),
    })
    this.#keeper = keeper
    const letGo = onAbort(options.signal, () => this.#abort.abort(new StoppedError()))
    place.listen(nameLog(key), () => void keeper.look())
    try {
      this.#feed.catchUp(claim.log.fold.seq)
      this.#noticeCancel()
      const entering = this.#enter()
      if (entering) await entering
      const fold = await this.#loop()
      // The run stops before this step: an earlier one needs another version of the program.
      const isOver = target === undefined || (fold.state as RunState).run?.id === target
      const misfit = isOver ? undefined : checkFits(key, fold, plan, restart)
      const outcome = misfit ?? readOutcome(key, fold, restart)
      if (target === undefined) return outcome
      return { ...outcome, input: fateOf(fold.state as RunState, { id: target }) }
    } catch (error) {
      this.#watch?.ended(error instanceof StoppedError ? 'stopped' : 'lost', error)
      if (error instanceof StoppedError) await keeper.letGo(() => this.#stop(claim, openSince !== undefined))
      else void giveUp(claim, environment, error, place.isAlone)
      throw error
    } finally {
      keeper.stop()
      place.leave()
      // Steps that the program did not wait for may still be running: nothing from them is written from here on.
      this.#lose(OVER)
      letGo()
      const telling = this.#feed.ended()
      if (telling) await telling
    }
  }

  async #driveUnrecorded(): Promise<Outcome> {
    const { options, place, key } = this.#request
    const letGo = onAbort(options.signal, () => this.#abort.abort(options.signal?.reason))
    try {
      const entering = this.#enter()
      if (entering) await entering
      return { ...readOutcome(key, await this.#loop()), checkpoint: undefined }
    } catch (error) {
      this.#watch?.ended('lost', error)
      throw error
    } finally {
      place.leave()
      letGo()
    }
  }

  #newLog(): RunLog {
    const { policy, place } = this.#request
    return new RunLog(this.#claim, policy, (draft, updated, before) => {
      this.#feed.recorded(draft, updated.entries.at(-1), before)
      if (this.#log.seen.claims === 0) place.progressed()
      this.#noticeCancel()
    })
  }

  #lose(error: unknown): void {
    this.#log.fail(error)
    this.#abort.abort(error)
  }

  /** Nothing of the program runs before this: a process that dies now did not die because of it. */
  #enter(): Promise<void> | undefined {
    return this.#request.place.enterAtOnce() ? undefined : this.#enterInTurn()
  }

  async #enterInTurn(): Promise<void> {
    const { place, environment } = this.#request
    const note = async (alone: boolean) => {
      const { alone: before = 0 } = this.#log.state
      this.#log.add({ kind: 'resume', ops: [set('alone', alone ? before + 1 : Math.max(0, before - 1))] })
      await this.#log.barrier()
    }
    try {
      const entered = await place.enter(environment.clock, this.#abort.signal, note)
      if (!entered) throw new StoppedError()
    } catch (error) {
      // Nothing of a cancelled run starts anymore, so nothing can happen to the others in this process.
      if (!(error instanceof CancelledError)) throw error
    }
  }

  async #loop(): Promise<Fold> {
    for (;;) {
      const isBegun = isUnfinished(this.#log.state.run)
      const ended = isBegun || (this.#log.seen.inputs ?? []).length > 0 ? await this.#next(isBegun) : await this.#rest()
      if (ended) return ended
    }
  }

  /** One run, up to where it ends or waits. Undefined: there is more to do. */
  async #next(isBegun: boolean): Promise<Fold | undefined> {
    const { key, plan, environment, onPaused } = this.#request
    const forsaking = isBegun ? undefined : this.#dropForsaken()
    if (forsaking) await forsaking
    // Whoever claims it next for this very input is told what is missing.
    if (!isBegun && this.#context.isMissing(this.#log.seen)) return this.#leave()
    const beginning = this.#begin(isBegun)
    const failure = beginning instanceof Promise ? await beginning : beginning
    if (failure === undefined) return this.#driveNext(isBegun)
    if (checkFits(key, this.#log.fold, plan, { restarted: false })) return this.#leave()
    const parked = await this.#letGo(() =>
      this.#conclude((fold) => parkBehind(fold, failure.error, this.#target, onPaused), true),
    )
    environment.observer.count('holdfast.runs.failed')
    return parked?.fold ?? this.#log.fold
  }

  /** Cancels the next run if whoever awaited it does so no longer. */
  #dropForsaken(): Promise<void> | undefined {
    const [next] = this.#log.seen.inputs ?? []
    if (next?.parent === undefined || !this.#log.durable || this.#log.seen.cancel?.run === next.id) return undefined
    return this.#dropUnlessAwaited(next, next.parent)
  }

  async #dropUnlessAwaited(next: InputRecord, parent: ParentRef): Promise<void> {
    const { environment, key } = this.#request
    if (await isStillAwaited(environment, key, parent)) return
    const cancel = { reason: 'nothing awaits it anymore', at: environment.clock.now(), run: next.id }
    await this.#log.decide(({ state }) =>
      (state as RunState).inputs?.[0]?.id === next.id ? { kind: 'cancel', ops: [set('cancel', cancel)] } : undefined,
    )
  }

  async #driveNext(isBegun: boolean): Promise<Fold | undefined> {
    const { plan, environment, options } = this.#request
    const id = this.#log.state.run?.id
    const watch = this.#watched(isBegun)
    const run = this.#newRun(isBegun, watch)
    const driven = await run.drive(plan)
    if (driven.status === 'failed') this.#throwIfStopped(driven.error)
    if (driven.status === 'suspended' && options.isDraining?.()) throw new StoppedError()
    const isCancelled = this.#log.seen.cancel?.run === id
    const goOn = this.#goesOn(driven, id, isCancelled)
    if (goOn) this.#log.close()
    const settled = isCancelled ? await settleRun(plan, this.#log.state) : undefined
    // It says until when the thread is kept.
    const jump = environment.clock.catchUp()
    if (jump) await jump
    let decided: { readonly seq: number; readonly at: number } | undefined
    const conclude = () =>
      this.#conclude((fold) => {
        // Of what came since then, the program knows nothing.
        const unmovedSince = this.#unmoved?.seq === fold.seq ? this.#unmoved.at : undefined
        const ending = { ...this.#ending(), unmovedSince, goOn, settled }
        decided = { seq: fold.seq, at: ending.now }
        return endOf(fold, driven, ending)
      }, !goOn)
    let ended: Updated | undefined
    try {
      ended = await (goOn ? conclude() : this.#letGo(conclude))
    } catch (error) {
      if (isStoreFailure(error)) throw error
      const fold = await this.#endRefused(error)
      this.#unwatch('failed', error)
      return fold
    }
    // Something arrived while the run was about to wait, so it continues at once. But a program that does nothing with
    // it would be called forever: if nothing was written since, it waits all the same.
    this.#unmoved = ended === undefined ? decided : undefined
    if (ended === undefined) return undefined
    this.#unwatch(endOfRun(ended.fold), driven.status === 'failed' ? driven.error : undefined)
    if (!goOn) return ended.fold
    this.#inherited = undefined
    this.#log = this.#newLog()
    // Whoever waits for this one does not wait for the next as well.
    if (this.#claim instanceof Claim && this.#request.owes(this.#claim.log)) {
      await this.#request.runErrands(this.#claim.log)
    }
    // The signal of a cancelled run says nothing to the next one.
    if (this.#abort.reason instanceof CancelledError) this.#abort = new RunAbort()
    return undefined
  }

  /** Whether another run follows on this claim. */
  #goesOn(driven: Drive, id: string | undefined, isCancelled: boolean): boolean {
    if (driven.status !== 'completed' && !isCancelled) return false
    if (this.#target !== undefined) return id !== this.#target
    // As long as nothing of this run is written, its own input lies among those that others see.
    return (this.#log.seen.inputs ?? []).some((input) => input.id !== id)
  }

  #ending(): Ending {
    return {
      now: this.#request.environment.clock.now(),
      goOn: false,
      inherited: this.#inherited,
      target: this.#target,
      onPaused: this.#request.onPaused,
      expiry: this.#expiry,
    }
  }

  get #expiry(): ExpiryOf {
    return { store: this.#request.environment.retention, plan: this.#request.plan }
  }

  /** Takes the next input, migrates an old state. What can't be started stays as it is, for a fixed program. */
  #begin(isBegun: boolean): Failure | undefined | Promise<Failure | undefined> {
    const { plan } = this.#request
    const log = this.#log
    try {
      const migrated = migrateRun(plan, log.state)
      if (migrated) log.add(migrated)
      const completed = isBegun ? completeRun(plan, log.state) : undefined
      if (completed) log.add(completed)
      if (!isBegun && log.state.left !== undefined) return this.#beginAfter(settleLeft(plan, log.state))
      if (!isBegun) this.#take()
      this.#noticeCancel()
      return undefined
    } catch (error) {
      return { error }
    }
  }

  async #beginAfter(settling: ReturnType<typeof settleLeft>): Promise<Failure | undefined> {
    try {
      const left = await settling
      if (left) this.#log.add({ kind: 'step', ops: left.ops, data: { events: left.events } })
      this.#take()
      this.#noticeCancel()
      return undefined
    } catch (error) {
      return { error }
    }
  }

  #take(): void {
    const { plan, environment } = this.#request
    this.#log.add(beginRun(plan, this.#log.state, environment.clock.now(), this.#log.fold.incarnation))
  }

  /** The same observer as long as the same run is in progress here. */
  #watched(isBegun: boolean): RunObserver {
    if (this.#watch) return this.#watch
    const { environment, key, plan } = this.#request
    this.#watch = environment.observer.run(describeRun(key, plan, this.#log.state, isBegun))
    const { trace } = this.#watch
    // Travels with the first step.
    if (trace !== undefined && !isBegun) this.#log.add({ kind: 'step', ops: [set(['run', 'trace'], trace)] })
    return this.#watch
  }

  #unwatch(...end: Parameters<RunObserver['ended']>): void {
    this.#watch?.ended(...end)
    this.#watch = undefined
  }

  #newRun(isBegun: boolean, watch: RunObserver): Run {
    const { environment, key, options } = this.#request
    return new Run(environment, key, this.#log, {
      context: this.#context.ofRun(this.#log.state, this.#log.seen),
      abort: this.#abort,
      emit: (live: LiveEvent) => {
        const event = redactEvent(environment.redactor, live)
        if (event.type === 'retry') watch.retried(event.step, event.attempt, event.error)
        this.#feed.live(event)
      },
      lease: this.#keeper,
      // What an effect begins with is recorded before it: of a run that was not recorded yet nothing was begun.
      openSince: isBegun || this.#log.state.ahead ? this.#inherited : undefined,
      inlineSleepMs: options.inlineSleepMs ?? DEFAULT_INLINE_SLEEP_MS,
      isDraining: options.isDraining,
      recordedReads: this.#recordedReads,
      children: this.#request.children,
      watch,
    })
  }

  /**
   * The log can't hold what this run wants to write: that is dropped, as by a crash, and the run fails because of it.
   * If even its beginning can't be written, the thread is left alone.
   */
  async #endRefused(error: unknown): Promise<Fold> {
    const end = async () => {
      await this.#discard()
      const failure = await this.#begin(isUnfinished(this.#log.state.run))
      if (failure) return park(failure.error)
      try {
        return await this.#conclude((fold) => endOf(fold, { status: 'failed', error }, this.#ending()), true)
      } catch (again) {
        if (isStoreFailure(again)) throw again
        return park(again)
      }
    }
    const park = async (cause: unknown) => {
      await this.#discard()
      return this.#conclude((fold) => parkBehind(fold, cause, this.#target, this.#request.onPaused), true)
    }
    const ended = await this.#letGo(end)
    return ended?.fold ?? this.#log.fold
  }

  async #discard(): Promise<void> {
    await this.#log.discard()
    this.#log = this.#newLog()
  }

  /** Releases the thread. Undefined if something arrived that has to be done first. */
  async #rest(): Promise<Fold | undefined> {
    const { clock } = this.#request.environment
    const rested = await this.#letGo(() => this.#conclude((fold) => restThread(fold, this.#expiry, clock.now()), true))
    return rested?.fold
  }

  async #leave(): Promise<Fold | undefined> {
    const left = await this.#letGo(() =>
      this.#conclude(({ state }) => leaveThread(state as RunState, this.#target), true),
    )
    return left?.fold
  }

  async #stop(claim: Claim, wasOpen: boolean): Promise<void> {
    try {
      const said = await this.#conclude(({ state }) => stopRun(state as RunState, wasOpen), true)
      if (said === undefined) await claim.release()
    } catch {
      await claim.release().catch(() => {})
    }
  }

  /** Also says what the end of a run owes to other threads. */
  #conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    const { clock } = this.#request.environment
    return this.#log.conclude((fold) => withErrands(fold, decide(fold), clock.now()), release)
  }

  #letGo<Result>(release: () => Promise<Result>): Promise<Result> {
    return this.#keeper === undefined ? release() : this.#keeper.letGo(release)
  }

  #noticeCancel(): void {
    const { cancel } = this.#log.seen
    if (cancel === undefined) return
    // Our own view: what others see may not hold the run yet.
    const { run } = this.#log.state
    if (isUnfinished(run) && cancel.run === run.id && !this.#abort.aborted) {
      this.#abort.abort(new CancelledError(cancel.reason, { by: cancel.by ?? null }))
    }
  }

  // These say nothing about the run itself: it is not over, and not failed. Nor does what a program throws when it is
  // told to stop.
  #throwIfStopped(error: unknown): void {
    const { aborted, reason } = this.#abort
    if (aborted && !(reason instanceof CancelledError)) throw reason
    if (error instanceof StoppedError || isStoreFailure(error)) throw error
  }
}

const DEFAULT_INLINE_SLEEP_MS = 1000
/** Created once: nearly nobody ever sees it, and its stack would cost each run more than a step. */
const OVER = new ClosedError('This run')

function startOf(held: Held | undefined): ConstructorParameters<typeof EventFeed>[1] {
  if (held === undefined) return { told: -1, id: '' }
  const { claim, since } = held
  return {
    live: claim.log.liveTeller(),
    log: claim.log,
    told: since.seq,
    id: claim.log.checkpoint ?? '',
    before: since,
  }
}
