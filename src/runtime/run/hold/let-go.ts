import type { Fold } from '../../../log/entry/fold.js'
import type { Claim } from '../../../log/write/claim.js'
import { isStoreFailure } from '../../errors.js'
import { begin } from './begin.js'
import { type Ending, endOf, leaveThread, parkBehind, restThread, stopRun } from './conclude.js'
import type { HeldThread } from './held-thread.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'
import type { Updated } from '../../../log/write/update.js'
import type { Drive } from '../run-terms.js'

/** Writes how a run ended or what it waits for. Undefined if something arrived that lets it continue. */
export async function concludeRun(
  held: HeldThread,
  driven: Drive,
  how: Pick<Ending, 'goOn' | 'settled'>,
): Promise<Updated | undefined> {
  let decided: { readonly seq: number; readonly at: number } | undefined
  const decide = (fold: Fold) => {
    // Of what came since then, the program knows nothing.
    const unmovedSince = held.unmoved?.seq === fold.seq ? held.unmoved.at : undefined
    const ending = { ...held.ending, unmovedSince, ...how }
    decided = { seq: fold.seq, at: ending.now }
    return endOf(fold, driven, ending)
  }
  const ended = await (how.goOn ? held.conclude(decide, false) : held.concludeLast(decide))
  // Something arrived while the run was about to wait, so it continues at once. But a program that does nothing with
  // it would be called forever: if nothing was written since, it waits all the same.
  held.unmoved = ended === undefined ? decided : undefined
  return ended
}

/** Whether another run follows on this claim. */
export function goesOn(
  { target, log }: HeldThread,
  driven: Drive,
  id: string | undefined,
  isCancelled: boolean,
): boolean {
  if (driven.status !== 'completed' && !isCancelled) return false
  if (target !== undefined) return id !== target
  // As long as nothing of this run is written, its own input lies among those that others see.
  return (log.acknowledged.inputs ?? []).some((input) => input.id !== id)
}

/** Releases a thread on which nothing is left to do. Undefined if something arrived that has to be done first. */
export async function rest(held: HeldThread): Promise<Fold | undefined> {
  const { clock } = held.request.environment
  const rested = await held.concludeLast((fold) => restThread(fold, held.expiry, clock.now()))
  return rested?.fold
}

/** Releases a thread whose next run somebody else must begin. */
export async function leave(held: HeldThread): Promise<Fold | undefined> {
  const left = await held.concludeLast(({ state }) => leaveThread(state as RunState, held.target))
  return left?.fold
}

/** Releases a thread whose next run can't begin, and says why. */
export async function parkNext(held: HeldThread, error: unknown): Promise<Fold> {
  const parked = await held.concludeLast((fold) => parkBehind(fold, error, held.target, held.request.onPaused))
  held.request.environment.observer.count('holdfast.runs.failed')
  return parked?.fold ?? held.log.fold
}

/** Releases a thread whose run the caller stopped: anybody may resume it. */
export async function stop(held: HeldThread, claim: Claim, wasOpen: boolean): Promise<void> {
  try {
    const said = await held.conclude(({ state }) => stopRun(state as RunState, wasOpen), true)
    if (said === undefined) await claim.release()
  } catch {
    await claim.release().catch(() => {})
  }
}

/**
 * The log can't hold what this run wants to write: that is dropped, as by a crash, and the run fails because of it. If
 * even its beginning can't be written, the thread is left alone.
 */
export async function endRefused(held: HeldThread, error: unknown): Promise<Fold> {
  const end = async () => {
    await held.discard()
    const failure = await begin(held, isUnfinished(held.log.state.run))
    if (failure) return park(failure.error)
    try {
      return await held.conclude((fold) => endOf(fold, { status: 'failed', error }, held.ending), true)
    } catch (again) {
      if (isStoreFailure(again)) throw again
      return park(again)
    }
  }
  const park = async (cause: unknown) => {
    await held.discard()
    return held.conclude((fold) => parkBehind(fold, cause, held.target, held.request.onPaused), true)
  }
  const ended = await held.letGo(end)
  return ended?.fold ?? held.log.fold
}
