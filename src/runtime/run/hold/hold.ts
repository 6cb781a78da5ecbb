import { ClosedError } from '../../../core/errors.js'
import { nameLog } from '../../../core/log-name.js'
import { onAbort } from '../../../core/async/on-abort.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { Updated } from '../../../log/write/update.js'
import { isStoreFailure } from '../../errors.js'
import { endOfRun } from '../../events/observe.js'
import { settleRun } from '../../step/record/kept-results.js'
import { checkFits } from '../../upgrade/fitting.js'
import { LeaseKeeper } from '../../worker/lease-keeper.js'
import { begin, dropForsaken, enter } from './begin.js'
import { concludeRun, endRefused, goesOn, leave, parkNext, rest, stop } from './let-go.js'
import { giveUp } from './give-up.js'
import { fateOf } from '../input/given-input.js'
import { type Claimed, HeldThread } from './held-thread.js'
import { type Outcome, readOutcome, withFields } from '../state/outcome.js'
import type { RecordedReads } from '../record/recorded-reads.js'
import type { Request } from '../request/request.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'
import { StoppedError } from '../request/stop-in-time.js'

/** Created once: nearly nobody ever sees it, and its stack would cost each run more than a step. */
const OVER = new ClosedError('This run')

/**
 * Holds a claimed thread: drives one run after the other until that of the target has ended, or nothing is left to do,
 * and releases it with the entry that says so. Rejects when the claim is lost: being fenced is an error, not an outcome.
 */
export async function hold(request: Request, claimed: Claimed, reads: RecordedReads | undefined): Promise<Outcome> {
  const { environment, options, place, key, plan, restart } = request
  const { claim, target, openSince } = claimed
  const held = new HeldThread(request, claim, claimed, reads)
  const keeper = new LeaseKeeper(claim, environment.clock, {
    onLost: (error) => held.lose(error),
    onNews: () => held.noticeCancel(),
  })
  held.keeper = keeper
  const letGo = onAbort(options.signal, () => held.abort.abort(new StoppedError()))
  place.listen(nameLog(key), () => void keeper.look())
  try {
    held.feed.begin()
    held.noticeCancel()
    const fold = await driveRuns(held)
    // The run stops before this step: an earlier one needs another version of the program.
    const isOver = target === undefined || (fold.state as RunState).run?.id === target
    const misfit = isOver ? undefined : checkFits(key, fold, plan, restart)
    const outcome = misfit ?? readOutcome(key, fold, restart)
    if (target === undefined) return outcome
    return withFields(outcome, { input: fateOf(fold.state as RunState, { id: target }) })
  } catch (error) {
    held.unwatch(error instanceof StoppedError ? 'stopped' : 'lost', error)
    if (error instanceof StoppedError) await keeper.letGo(() => stop(held, claim, openSince !== undefined))
    else void giveUp(claim, environment, error, place.isAlone)
    throw error
  } finally {
    keeper.stop()
    place.leave()
    // Steps that the program did not wait for may still be running: nothing from them is written from here on.
    held.lose(OVER)
    letGo()
    const telling = held.feed.ended()
    if (telling) await telling
  }
}

/** Drives the runs of a thread until it is released, and returns where that left it. */
export async function driveRuns(held: HeldThread): Promise<Fold> {
  const entering = enter(held)
  if (entering) await entering
  for (;;) {
    const { state, acknowledged } = held.log
    const isBegun = isUnfinished(state.run)
    const ended = isBegun || (acknowledged.inputs ?? []).length > 0 ? await next(held, isBegun) : await rest(held)
    if (ended) return ended
  }
}

/** One run, up to where it ends or waits. Undefined: there is more to do. */
async function next(held: HeldThread, isBegun: boolean): Promise<Fold | undefined> {
  const forsaking = isBegun ? undefined : dropForsaken(held)
  if (forsaking) await forsaking
  // Whoever claims it next for this very input is told what is missing.
  if (!isBegun && held.context.isMissing(held.log.acknowledged)) return leave(held)
  const beginning = begin(held, isBegun)
  const failure = beginning instanceof Promise ? await beginning : beginning
  if (failure === undefined) return driveNext(held, isBegun)
  const { key, plan } = held.request
  return checkFits(key, held.log.fold, plan, { restarted: false }) ? leave(held) : parkNext(held, failure.error)
}

/** Drives the run that has begun, and records how that ended. */
async function driveNext(held: HeldThread, isBegun: boolean): Promise<Fold | undefined> {
  const { plan, environment, options } = held.request
  const id = held.log.state.run?.id
  const driven = await held.newRun(isBegun).drive(plan)
  if (driven.status === 'failed') held.throwIfStopped(driven.error)
  if (driven.status === 'suspended' && options.isDraining?.()) throw new StoppedError()
  const isCancelled = held.log.acknowledged.cancel?.run === id
  const goOn = goesOn(held, driven, id, isCancelled)
  if (goOn) held.log.close()
  const settled = isCancelled ? await settleRun(plan, held.log.state) : undefined
  // Its last entry says until when the thread is kept.
  const jump = environment.clock.catchUp()
  if (jump) await jump
  let ended: Updated | undefined
  try {
    ended = await concludeRun(held, driven, { goOn, settled })
  } catch (error) {
    if (isStoreFailure(error)) throw error
    const fold = await endRefused(held, error)
    held.unwatch('failed', error)
    return fold
  }
  if (ended === undefined) return undefined
  held.unwatch(endOfRun(ended.fold), driven.status === 'failed' ? driven.error : undefined)
  if (!goOn) return ended.fold
  held.startOver()
  // Whoever waits for this one does not wait for the next as well.
  await held.runErrands()
  return undefined
}
