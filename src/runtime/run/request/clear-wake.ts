import type { Log } from '../../../log/log.js'
import { errandsOf } from '../../child/errands.js'
import { ownBranch } from '../../history/inherit.js'
import type { Request } from './request.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'
import { isOnlyWaiting } from '../state/rest.js'
import { wakeTime } from '../state/wake-time.js'

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
