import { UnavailableError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, Driver, StoredEntry } from '../contract.js'

/**
 * Whether an append whose acknowledgment got lost is durably in the log. The hash covers the appendId, so no other
 * writer's entry can be taken for it. Being readable is not enough: the reason for the missing acknowledgment may be a
 * disk that failed to flush it, or replicas that do not have it.
 */
export async function hasLanded(driver: Driver, append: Append): Promise<boolean> {
  const first = append.entries[0] as StoredEntry
  const [found] = await driver.read(append.log, first.seq, 1)
  if (found?.hash === first.hash) {
    await driver.confirm?.(append.log)
    return true
  }
  if (found === undefined || found.seq === first.seq) return false
  const message = `Whether an append to ${nameLog(append.log)} landed can't be told: it was pruned since.`
  throw new UnavailableError(message, { written: 'unknown' })
}
