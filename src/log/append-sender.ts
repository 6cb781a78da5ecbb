import { isHoldfastError, UnavailableError } from '../core/errors.js'
import { nameLog } from '../core/log-name.js'
import type { Append, AppendResult, StoredEntry } from './contract.js'
import type { LogEnvironment } from './log-environment.js'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 2000

/**
 * Sends an append until its outcome is known. After a lost acknowledgement it first looks for its own entry behind
 * the head it built on: found means done, not found means repeat. It never repeats blindly, and repeating is
 * harmless anyway, because the log no longer ends where the append expects once it landed.
 */
export async function sendAppend(environment: LogEnvironment, append: Append): Promise<AppendResult> {
  const { commit, clock, retryMs } = environment
  const deadline = clock.monotonic() + retryMs
  let mayHaveLanded = false
  for (let attempt = 0; ; attempt++) {
    try {
      const result = await commit.submit(append, attempt > 0)
      if (result.status !== 'appended' && mayHaveLanded && (await hasLanded(environment, append))) return APPENDED
      return result
    } catch (error) {
      const definite = isHoldfastError(error) && (error.data.written === 'nothing' || error.code === 'closed')
      mayHaveLanded ||= !definite
      const hopeless = isHoldfastError(error) && !error.retryable
      if (mayHaveLanded && (await lookQuietly(environment, append))) return APPENDED
      if (hopeless || clock.monotonic() >= deadline) throw error
      await clock.sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt))
    }
  }
}

const APPENDED: AppendResult = { status: 'appended' }

/** Whether the log holds our entries: the hash covers the appendId, so no other writer's entry can be taken for ours. */
async function hasLanded({ driver }: LogEnvironment, append: Append): Promise<boolean> {
  const first = append.entries[0] as StoredEntry
  const [found] = await driver.read(append.log, first.seq, 1)
  if (found === undefined) return false
  if (found.seq === first.seq) return found.hash === first.hash
  throw new UnavailableError(`Whether an append to ${nameLog(append.log)} landed can't be told: it was pruned since.`, {
    written: 'unknown',
  })
}

async function lookQuietly(environment: LogEnvironment, append: Append): Promise<boolean> {
  try {
    return await hasLanded(environment, append)
  } catch {
    // The backend still does not answer. The loop decides how long to go on.
    return false
  }
}
