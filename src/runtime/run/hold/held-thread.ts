import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import { set } from '../../../log/entry/ops.js'
import { Claim } from '../../../log/write/claim.js'
import type { Updated } from '../../../log/write/update.js'
import type { RunObserver } from '../../../telemetry/observer.js'
import { withErrands } from '../../child/errands.js'
import { CancelledError, isStoreFailure } from '../../errors.js'
import { EventFeed } from '../../events/event-feed.js'
import { type LiveEvent, redactEvent } from '../../events/events.js'
import { describeRun } from '../../events/observe.js'
import type { LeaseKeeper } from '../../worker/lease-keeper.js'
import { CallerContext } from '../request/run-context.js'
import type { Ending } from './conclude.js'
import type { RecordedReads } from '../record/recorded-reads.js'
import type { Request } from '../request/request.js'
import { Run } from '../run.js'
import { LazyAbort } from '../../../core/async/lazy-abort.js'
import type { RunClaim } from '../record/run-claim.js'
import { RunLog } from '../record/run-log.js'
import type { ExpiryOf } from '../state/run-ops.js'
import { isUnfinished } from '../state/read-run-state.js'
import { StoppedError } from '../request/stop-in-time.js'

/** A thread that was claimed, and why. */
export interface Claimed {
  readonly claim: Claim
  /** The input that it was claimed for; undefined: whatever is to be done. */
  readonly target: string | undefined
  /** Since when what another worker had in progress may have happened. */
  readonly openSince: number | undefined
}

const DEFAULT_INLINE_SLEEP_MS = 1000

/** A thread held by this process, and what its current run is driven with. */
export class HeldThread {
  readonly request: Request
  readonly claim: RunClaim
  readonly target: string | undefined
  readonly context: CallerContext
  readonly feed: EventFeed
  /** Undefined if there is no claim. */
  keeper: LeaseKeeper | undefined
  /** Of the run that is in progress. */
  log: RunLog
  abort = new LazyAbort()
  /** Where the log ended when a run was about to wait and something came in between. */
  unmoved: { readonly seq: number; readonly at: number } | undefined
  readonly #recordedReads: RecordedReads | undefined
  /** Since when something may have been in progress before this claim. */
  #inherited: number | undefined
  #watch: RunObserver | undefined

  constructor(request: Request, claim: RunClaim, claimed?: Claimed, recordedReads?: RecordedReads) {
    this.request = request
    this.claim = claim
    this.target = claimed?.target
    this.context = new CallerContext(request, claimed?.target)
    this.#inherited = claimed?.openSince
    this.#recordedReads = recordedReads
    this.feed = new EventFeed(request.options.emit, startOf(claimed))
    this.log = this.#newLog()
  }

  /** The run that is in progress, with what its steps share. */
  newRun(isBegun: boolean): Run {
    const { environment, key, options, children } = this.request
    const watch = this.#watched(isBegun)
    return new Run(environment, key, this.log, {
      context: this.context.ofRun(this.log.state, this.log.acknowledged),
      abort: this.abort,
      emit: (live: LiveEvent) => {
        const event = redactEvent(environment.redactor, live)
        if (event.type === 'retry') watch.retried(event.step, event.attempt, event.error)
        this.feed.live(event)
      },
      lease: this.keeper,
      // What an effect begins with is recorded before it: of a run that was not recorded yet nothing was begun.
      openSince: isBegun || this.log.state.ahead ? this.#inherited : undefined,
      inlineSleepMs: options.inlineSleepMs ?? DEFAULT_INLINE_SLEEP_MS,
      isDraining: options.isDraining,
      recordedReads: this.#recordedReads,
      children,
      watch,
    })
  }

  /** The same observer as long as the same run is in progress here. */
  #watched(isBegun: boolean): RunObserver {
    if (this.#watch) return this.#watch
    const { environment, key, plan } = this.request
    this.#watch = environment.observer.run(describeRun(key, plan, this.log.state, isBegun))
    const { trace } = this.#watch
    // Travels with the first step.
    if (trace !== undefined && !isBegun) this.log.add({ kind: 'step', ops: [set(['run', 'trace'], trace)] })
    return this.#watch
  }

  /** Tells the observer how the run ended here. */
  unwatch(...end: Parameters<RunObserver['ended']>): void {
    this.#watch?.ended(...end)
    this.#watch = undefined
  }

  /** Another run follows on this claim. */
  startOver(): void {
    this.#inherited = undefined
    this.log = this.#newLog()
    // The signal of a cancelled run says nothing to the next one.
    if (this.abort.reason instanceof CancelledError) this.abort = new LazyAbort()
  }

  /** Does what the run that ended owes to other threads. */
  async runErrands(): Promise<void> {
    const { claim, request } = this
    if (claim instanceof Claim && request.owes(claim.log)) await request.runErrands(claim.log)
  }

  /** Drops what the log can't hold, as a crash would. */
  async discard(): Promise<void> {
    await this.log.discard()
    this.log = this.#newLog()
  }

  /** From here on nothing of it is written, and what is in progress ends. */
  lose(error: unknown): void {
    this.log.fail(error)
    this.abort.abort(error)
  }

  noticeCancel(): void {
    const { cancel } = this.log.acknowledged
    if (cancel === undefined) return
    // Our own view: what others see may not hold the run yet.
    const { run } = this.log.state
    if (isUnfinished(run) && cancel.run === run.id && !this.abort.aborted) {
      this.abort.abort(new CancelledError(cancel.reason, { by: cancel.by ?? null }))
    }
  }

  // These say nothing about the run itself: it is not over, and not failed. Nor does what a program throws when it is
  // told to stop.
  throwIfStopped(error: unknown): void {
    const { aborted, reason } = this.abort
    if (aborted && !(reason instanceof CancelledError)) throw reason
    if (error instanceof StoppedError || isStoreFailure(error)) throw error
  }

  /** Writes the last entry of a run, and what its end owes to other threads. */
  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    const { clock } = this.request.environment
    return this.log.conclude((fold) => withErrands(fold, decide(fold), clock.now()), release)
  }

  /** The same, and releases the thread. */
  concludeLast(decide: (fold: Fold) => Draft | undefined): Promise<Updated | undefined> {
    return this.letGo(() => this.conclude(decide, true))
  }

  letGo<Result>(release: () => Promise<Result>): Promise<Result> {
    return this.keeper === undefined ? release() : this.keeper.letGo(release)
  }

  get ending(): Ending {
    return {
      now: this.request.environment.clock.now(),
      goOn: false,
      inherited: this.#inherited,
      target: this.target,
      onPaused: this.request.onPaused,
      expiry: this.expiry,
    }
  }

  get expiry(): ExpiryOf {
    return { store: this.request.environment.retention, plan: this.request.plan }
  }

  #newLog(): RunLog {
    const { policy, place } = this.request
    return new RunLog(this.claim, policy, (draft, updated, before) => {
      this.feed.recorded(draft, updated.entries.at(-1), before)
      if (this.log.acknowledged.claims === 0) place.progressed()
      this.noticeCancel()
    })
  }
}

function startOf(claimed: Claimed | undefined): ConstructorParameters<typeof EventFeed>[1] {
  if (claimed === undefined) return { claimed: [], id: '' }
  const { claim } = claimed
  return {
    live: claim.log.liveTeller(),
    log: claim.log,
    claimed: claim.made,
    id: claim.log.checkpoint ?? '',
    before: claim.log.fold,
  }
}
