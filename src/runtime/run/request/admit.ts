import { isHoldfastError } from '../../../core/errors.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { Log } from '../../../log/log.js'
import { observeClaim } from '../../events/observe.js'
import { ownBranch } from '../../history/inherit.js'
import { claimThread } from './gap.js'
import type { Claimed } from '../hold/held-thread.js'
import type { Request } from './request.js'
import type { RunState } from '../state/run-state.js'
import { situate, type Situation } from './situation.js'
import { errandsOf } from '../../child/errands.js'
import { isOnlyWaiting, isUnfinished, wakeTime } from '../state/read-run-state.js'

const DEFAULT_LEASE_MS = 10_000

/** Claims the thread if there is something to run. Neither: another process holds it. */
export async function admit(
  request: Request,
  log: Log,
  onClaimed: () => void,
): Promise<{ readonly situation?: Situation; readonly claimed?: Claimed }> {
  const { environment, options, place, key } = request
  const { leaseMs = DEFAULT_LEASE_MS, owner = environment.owner } = options
  let since = log.fold
  let openSince: number | undefined
  let situation: Situation | undefined
  const decide = (fold: Fold) => {
    openSince = (ownBranch(fold, 0).fold.state as RunState).openSince
    since = fold
    situation = situate(key, fold, request.intent)
    if (situation.do === 'claim') request.checkContext(fold, situation)
    if (situation.do === 'claim' && situation.isSuspect && !place.reserve()) throw new NotNowError()
    if (situation.do === 'claim' || situation.do === 'settle') return situation.drafts
    throw new NothingToRun()
  }
  try {
    const made = await claimThread(log, { owner, ms: leaseMs, decide })
    onClaimed()
    observeClaim(environment, since, log.fold)
    const known = situation as Situation | undefined
    if (known?.do === 'claim') return { claimed: { claim: made, target: known.target, openSince } }
    await made.release()
    return known ? { situation: known } : {}
  } catch (error) {
    place.leave()
    if (error instanceof NothingToRun) return situation ? { situation } : {}
    if (isHoldfastError(error, 'held')) return {}
    const isWorker = options.makeRoom !== undefined
    if (isWorker && isHoldfastError(error, 'not-found') && log.exists) await clearWake(request, log)
    throw error
  }
}

/** It must run alone, and another that must is in progress in this process. */
export class NotNowError extends Error {}

/** Ends a claim before it is made. */
class NothingToRun extends Error {}

/**
 * A worker was given a thread that has nothing to run, such as a copy of one that input was left with for later: it is due
 * no longer. Otherwise every worker would be given it again and again, and it would count as waiting forever.
 */
export async function clearWake(request: Request, log: Log): Promise<void> {
  await log.update((found) => {
    const { now } = request
    const { wakeAt } = found.index
    if (wakeAt === null || wakeAt > now) return undefined
    const { fold } = ownBranch(found, now)
    const state = fold.state as RunState
    if (state.cancel !== undefined || errandsOf(fold.state).length > 0) return undefined
    const { run, inputs = [] } = state
    const isIdle = isUnfinished(run) ? run.status === 'running' && isOnlyWaiting(fold, now) : inputs.length === 0
    const next = wakeTime(state)
    if (!isIdle || (next !== null && next <= now)) return undefined
    return [{ kind: 'signal', ops: [], index: { wakeAt: next } }]
  })
}
