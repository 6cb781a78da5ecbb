import { isHoldfastError } from '../core/errors.js'
import type { BranchId } from '../core/ids.js'
import { parseCheckpointId } from '../log/checkpoint-id.js'
import type { LogKey } from '../log/contract.js'
import type { Log } from '../log/log.js'
import type { LogStore } from '../log/log-store.js'
import type { Restart } from './outcome.js'

/** What to do when the newest state of a thread does not verify. */
export type OnCorrupt = 'fail' | 'lastGood' | 'restart'

export interface Opened {
  readonly log: Log
  readonly key: LogKey
  readonly restart: Restart
}

/**
 * Opens a log; a damaged one by the caller's choice. Going back and starting anew both leave the damaged branch as it
 * is, for someone to look at, and go on beside it. The branch is named by where the damage is, so that later runs find
 * it again.
 */
export async function openOrRecover(logs: LogStore, key: LogKey, onCorrupt: OnCorrupt): Promise<Opened> {
  try {
    return { log: await logs.borrow(key), key, restart: { restarted: false } }
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
    const message = 'The newest part of your conversation could not be read, so we go on from a little earlier.'
    return { log, key: recovered, restart: { restarted: false, message } }
  } catch (error) {
    if (!isHoldfastError(error, 'conflict')) throw error
    // Recovered before, and said so then: that branch goes on.
    return { log: await logs.open(recovered), key: recovered, restart: { restarted: false } }
  }
}

async function startAnew(logs: LogStore, key: LogKey, lastGood: string | undefined): Promise<Opened> {
  const at =
    lastGood === undefined ? 'none' : `${parseCheckpointId(lastGood).seq}-${parseCheckpointId(lastGood).hashStart}`
  const anew = { ...key, branch: `restarted-${at}` as BranchId }
  const log = await logs.open(anew)
  const message = 'Your earlier conversation could not be read, so we start from the beginning.'
  return { log, key: anew, restart: log.exists ? { restarted: false } : { restarted: true, message } }
}
