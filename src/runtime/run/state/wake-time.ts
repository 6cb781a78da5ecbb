import { openPauses } from './read-run-state.js'
import type { RunState } from './run-state.js'

/** When a suspended run has to be looked at again, if nobody does something first. */
export function nextWake(state: RunState): number | null {
  const passed = state.run?.passed
  const times = [
    ...openPauses(state).flatMap(({ id, expiresAt }) =>
      expiresAt === undefined || passed?.[id] === 'expired' ? [] : [expiresAt],
    ),
    ...(state.run?.waiting ?? []).flatMap(({ until }) => (until === undefined ? [] : [until])),
  ]
  return times.length === 0 ? null : Math.min(...times)
}

/** When the next input comes that was left for later; `null` when there is none. */
export function nextLater({ later = [] }: RunState): number | null {
  return later.length === 0 ? null : Math.min(...later.map(({ runAt }) => runAt))
}

/**
 * When a thread that is not run has to be looked at: what its run waits for, or input that was left for later. Behind a
 * run that waits, that input waits along.
 */
export function wakeTime(state: RunState): number | null {
  const isWaiting = state.run?.status === 'running' && state.run.waiting !== undefined && !state.parked
  return isWaiting ? nextWake(state) : nextLater(state)
}
