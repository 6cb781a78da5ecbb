import { isHoldfastError } from '../../../core/errors.js'
import { isExpiry } from '../../../core/retention.js'
import type { Tombstone } from '../../../log/contract.js'
import type { Log } from '../../../log/log.js'
import type { LogStore } from '../../../log/log-store.js'
import { StoppedError } from './stop-in-time.js'

const MOST_TRIES = 10

/**
 * Works on a log, and gives it back. What a cache returned counts only if an append of the work landed: otherwise the
 * result of the work is dropped, and it is repeated on what the store itself says.
 */
export async function onLog<Result>(
  logs: LogStore,
  open: (options: { readonly atLeast: number }) => Promise<Log>,
  work: (log: Log) => Promise<Result>,
  atLeast = 0,
): Promise<Result> {
  const log = await open({ atLeast })
  try {
    const result = await work(log)
    if (log.isConfirmed) {
      logs.giveBack(log)
      return result
    }
  } catch (error) {
    if (log.isConfirmed || !mayBeOutdated(error)) throw error
  }
  logs.disbelieve(log)
  return onLog(logs, open, work, Infinity)
}

/** A failure of the store has nothing to do with the state that was read, and is not retried from the beginning. */
function mayBeOutdated(error: unknown): boolean {
  if (error instanceof StoppedError) return false
  return !(isHoldfastError(error) && ['unavailable', 'storage', 'closed'].includes(error.code))
}

/**
 * A thread may expire between the moment it is read and the moment it is claimed. Nothing has begun then, so the
 * request starts over: the result is the same as a moment later. Once it is claimed it can't expire.
 */
export async function againIfExpired<Result>(
  work: () => Promise<Result>,
  isClaimed: () => boolean = () => false,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (isClaimed() || tries === MOST_TRIES || !isGone(error)) throw error
    }
  }
}

/** The thread that was read is gone: it expired, and was perhaps created again since. */
function isGone(error: unknown): boolean {
  if (isHoldfastError(error, 'conflict')) return error.data['incarnation'] !== undefined
  if (!isHoldfastError(error, 'not-found')) return false
  const { tombstone, createdAt } = error.data as { readonly tombstone?: Tombstone; readonly createdAt?: number }
  // The tombstone is removed when the thread is created again.
  return createdAt !== undefined || isExpiry(tombstone?.reason)
}
