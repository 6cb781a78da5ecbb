import { isHoldfastError } from '../../../core/errors.js'
import { isExpiry } from '../../../core/retention.js'
import type { LogKey, Tombstone } from '../../../log/contract.js'
import type { Log } from '../../../log/log.js'
import type { LogStore } from '../../../log/log-store.js'
import { StoppedError } from './stop-in-time.js'
import { createHash } from 'node:crypto'
import { type BranchId, MAIN_BRANCH } from '../../../core/ids.js'
import { parseCheckpointId } from '../../../log/entry/checkpoint-id.js'
import type { Restart } from '../state/outcome.js'
import type { ForkRecord } from '../state/run-state.js'

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

/** What to do when the newest state of a thread does not verify. */
export type OnCorrupt = 'fail' | 'lastGood' | 'restart'

export interface Opened {
  readonly log: Log
  readonly key: LogKey
  readonly restart: Restart
  /** For a log that begins next to a damaged one: what its first entry must say about it. */
  readonly begins?: ForkRecord
}

/**
 * Opens a log; a damaged one as the caller chose. Going back and starting over both leave the damaged branch as it is,
 * for someone to look at, and continue next to it. The branch is named after where the damage is, so that later runs
 * find it again. On both, effects that reach the outside world need permission: whether they happened before is not
 * known.
 */
export async function openOrRecover(
  logs: LogStore,
  key: LogKey,
  onCorrupt: OnCorrupt,
  options: { readonly atLeast?: number } = {},
): Promise<Opened> {
  try {
    return { log: await logs.borrow(key, options), key, restart: { restarted: false } }
  } catch (error) {
    if (!isHoldfastError(error, 'corrupt') || onCorrupt === 'fail') throw error
    const lastGood = error.data['lastGood']
    if (onCorrupt === 'lastGood' && typeof lastGood === 'string') return goBack(logs, key, lastGood)
    if (onCorrupt === 'lastGood') throw error
    return startAnew(logs, key, typeof lastGood === 'string' ? lastGood : undefined)
  }
}

async function goBack(logs: LogStore, key: LogKey, lastGood: string): Promise<Opened> {
  const { seq, hashStart } = parseCheckpointId(lastGood)
  const recovered = { ...key, branch: `recovered-${seq}-${hashStart}` as BranchId }
  try {
    const log = await logs.fork(key, { branch: recovered.branch, at: lastGood })
    const message = 'The newest part of your conversation could not be read, so we continue from a little earlier.'
    return { log, key: recovered, restart: { restarted: false, message } }
  } catch (error) {
    if (!isHoldfastError(error, 'conflict') && !isDamageOf(error, recovered)) throw error
    // Recovered before, and reported then: that branch continues, unless it is damaged itself by now.
    return openOrRecover(logs, recovered, 'lastGood')
  }
}

function isDamageOf(error: unknown, { branch }: LogKey): boolean {
  if (!isHoldfastError(error, 'corrupt')) return false
  return (error.data['log'] as LogKey | undefined)?.branch === branch
}

async function startAnew(logs: LogStore, key: LogKey, lastGood: string | undefined): Promise<Opened> {
  const anew = { ...key, branch: `restarted-${nameDamage(key, lastGood)}` as BranchId }
  const opened = await openOrRecover(logs, anew, 'restart')
  if (opened.log.exists || opened.key.branch !== anew.branch) return opened
  const message = 'Your earlier conversation could not be read, so we start from the beginning.'
  // What was begun before can't be read, and its keys were those of another branch: effects would happen again.
  const seq = lastGood === undefined ? -1 : parseCheckpointId(lastGood).seq
  const begins: ForkRecord = { branch: key.branch, seq, effects: 'ask', reads: 'live', restarted: true }
  return { ...opened, restart: { restarted: true, message }, begins }
}

/** Where the damage is. Where nothing verifies, two branches must not continue as one. */
function nameDamage({ branch }: LogKey, lastGood: string | undefined): string {
  if (lastGood !== undefined) {
    const { seq, hashStart } = parseCheckpointId(lastGood)
    return `${seq}-${hashStart}`
  }
  return branch === MAIN_BRANCH ? 'none' : `none-${createHash('sha256').update(branch).digest('hex').slice(0, 12)}`
}
