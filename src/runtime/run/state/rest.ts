import { DUE } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'
import { signalsOf } from './read-run-state.js'
import type { RunState } from './run-state.js'
import { nextLater } from './wake-time.js'

/** True while nothing could continue: all questions open, no sleep over, no signal come, and nobody cancelled. */
export function isOnlyWaiting(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run } = state
  if (run?.waiting === undefined || state.cancel) return false
  const isPassed = ([id, what]: News) => run.passed?.[id] === what
  if (!newsOf(state, now).every(isPassed)) return false
  return !run.waiting.some((wait) =>
    wait.kind === 'child'
      ? state.children?.[wait.child]?.ended !== undefined
      : wait.kind === 'signal'
        ? signalsOf(state, wait.name).length > 0 || (wait.until !== undefined && wait.until <= now)
        : wait.until <= now,
  )
}

type News = [pause: string, what: 'answered' | 'expired']

/** Questions that there is something new to say about: which, and what. */
export function newsOf({ pauses = {} }: RunState, now: number): News[] {
  return Object.entries(pauses).flatMap(([id, { used, answer, expiresAt }]): News[] => {
    if (used) return []
    if (answer !== undefined) return [[id, 'answered']]
    return expiresAt !== undefined && expiresAt <= now ? [[id, 'expired']] : []
  })
}

/**
 * True when nothing continues by itself: all runs ended, or what is left waits for someone who has not come yet. Input
 * behind a run that can't continue waits with it.
 */
export function isAtRest(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run, parked, inputs = [] } = state
  if (parked) return !isAskedFor(fold, now)
  if (run === undefined) return false
  if (run.status === 'running') return isOnlyWaiting(fold, now)
  // Somebody asked for another try, by new input, an answer or a cancellation: whoever looks for work will make it.
  if (isStuck(state)) return !isAskedFor(fold, now)
  const later = nextLater(state)
  return inputs.length === 0 && (later === null || later > now)
}

/** Whether somebody is to look at it now, and not only because it owes something to another thread. */
export function isAskedFor({ index: { wakeAt }, state }: Fold, now: number): boolean {
  if (wakeAt === null || wakeAt > now) return false
  return wakeAt === DUE || (state as RunState).errands === undefined
}

/** A run that ended and is not over: it continues when somebody resumes it. */
export function isStuck({ run }: RunState): boolean {
  return run?.status === 'failed' || run?.status === 'incompatible'
}
