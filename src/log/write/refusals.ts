import { ConflictError, HeldError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, Head, LogKey } from '../contract.js'

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
