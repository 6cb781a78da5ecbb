import { isHoldfastError, UnavailableError } from '../../core/errors.js'
import type { Append, AppendResult, Driver, StoredEntry } from '../contract.js'
import type { LogEnvironment } from '../log-environment.js'
import { backoffMs } from './retry.js'
import { nameLog } from '../../core/log-name.js'

const APPENDED: AppendResult = { status: 'appended' }

/**
 * Sends an append that failed until its outcome is known. After a lost acknowledgment it first looks for its own entry
 * after the head it built on: found means done, not found means repeat. Repeating is harmless, because the log no
 * longer ends where the append expects once it landed. If this throws, it may land after all.
 */
export async function sendAgain(
  { driver, commit, clock }: LogEnvironment,
  append: Append,
  failure: unknown,
  deadline: number,
): Promise<AppendResult> {
  let error = failure
  let mayHaveLanded = false
  for (let attempt = 0; ; attempt++) {
    const definite = isHoldfastError(error) && (error.data.written === 'nothing' || error.code === 'closed')
    mayHaveLanded ||= !definite
    // A look that fails says nothing; the loop decides how long to continue.
    if (mayHaveLanded && (await hasLanded(driver, append).catch(() => false))) return APPENDED
    if ((isHoldfastError(error) && !error.retryable) || clock.monotonic() >= deadline) throw error
    await clock.sleep(backoffMs(attempt))
    try {
      const result = await commit.submit(append, true)
      if (result.status !== 'appended' && mayHaveLanded && (await hasLanded(driver, append))) return APPENDED
      return result
    } catch (again) {
      error = again
    }
  }
}

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
