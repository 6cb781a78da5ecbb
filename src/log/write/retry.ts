import { ConflictError, HeldError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import type { LogEnvironment } from '../log-environment.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, Head, LogKey } from '../contract.js'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1000

/**
 * Repeats work that may safely be done twice until the backend answers or `retryMs` is over. `attempt` tells the work
 * whether an earlier attempt may have landed.
 */
export async function retry<Result>(
  { clock, retryMs }: Pick<LogEnvironment, 'clock' | 'retryMs'>,
  work: (attempt: number) => Promise<Result>,
): Promise<Result> {
  const deadline = clock.monotonic() + retryMs
  for (let attempt = 0; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (!isPassing(error) || clock.monotonic() >= deadline) throw error
      await clock.sleep(backoffMs(attempt))
    }
  }
}

// A failure of the backend itself. A conflict is an answer, and stays the same however often it is asked for.
function isPassing(error: unknown): boolean {
  return isHoldfastError(error) && error.retryable && (error.code === 'unavailable' || error.code === 'storage')
}

/**
 * How long to wait after this many failures, randomized, so that those who failed together do not come back together.
 */
export function backoffMs(failures: number): number {
  return Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
}

/** A claim found a lease that is still running. */
export function heldError(log: LogKey, { lease }: Head): HeldError {
  return new HeldError({ log: nameLog(log), owner: lease?.owner ?? '', remainingMs: lease?.remainingMs ?? 0 })
}

/** What a cache had of a log is not what the log holds. Whoever loaded it that way loads it again, from the store. */
export function outdatedError(log: LogKey): ConflictError {
  return new ConflictError(`${nameLog(log)} has moved on since it was cached.`, { log, outdated: true })
}

/** A fork came too late for what it forks from. */
export function originGone(log: LogKey, { requires }: Append): NotFoundError {
  return new NotFoundError('The branch to fork from is gone.', 'Fork a branch that exists.', { log, from: requires })
}

/** Whether nothing was written, and nothing will be however often it is sent. */
export function isRefusal(error: unknown): boolean {
  return isHoldfastError(error) && error.data.written === 'nothing' && !error.retryable
}
