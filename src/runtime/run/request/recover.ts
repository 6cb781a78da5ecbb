import { createHash } from 'node:crypto'
import { isHoldfastError } from '../../../core/errors.js'
import { type BranchId, MAIN_BRANCH } from '../../../core/ids.js'
import { parseCheckpointId } from '../../../log/entry/checkpoint-id.js'
import type { LogKey } from '../../../log/contract.js'
import type { Log } from '../../../log/log.js'
import type { LogStore } from '../../../log/log-store.js'
import type { Restart } from '../state/outcome.js'
import type { ForkRecord } from '../state/run-state.js'

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
