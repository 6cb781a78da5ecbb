import type { Clock } from '../../core/clock.js'
import type { Log } from '../../log/log.js'

const FIRST_POLL_MS = 20
const LONGEST_POLL_MS = 500

/** Waits before a log is looked at again, at most this many milliseconds. Rejects with the signal's reason. */
export type Rest = (ms: number, signal: AbortSignal | undefined) => Promise<void>

/**
 * Waits until a log changed, by looking at its head again and again: shorter at first, since what is waited for is
 * often about to happen. Rejects with the signal's reason.
 */
export async function* follow(
  log: Log,
  clock: Clock,
  signal?: AbortSignal,
  rest: Rest = (ms) => clock.sleep(ms, signal),
): AsyncGenerator<void> {
  let wait = FIRST_POLL_MS
  for (;;) {
    const before = log.fold.seq
    await log.refresh()
    yield
    wait = log.fold.seq === before ? Math.min(LONGEST_POLL_MS, wait * 1.5) : FIRST_POLL_MS
    await rest(wait, signal)
  }
}
