import type { Clock } from '../../core/time/clock.js'
import type { Log } from '../../log/log.js'

const FIRST_POLL_MS = 20
const LONGEST_POLL_MS = 500

/**
 * Waits until a log changed: through news where available, and until then by polling, at short intervals first, since
 * what is waited for is often about to happen. Rejects with the signal's reason.
 * @param deadline by the monotonic clock: the last look is then
 * @param live what else it wakes up for
 */
export async function* follow(
  log: Log,
  clock: Clock,
  signal?: AbortSignal,
  deadline = Number.POSITIVE_INFINITY,
  live?: { attach(wake: () => void): void; readonly isReady: boolean },
): AsyncGenerator<void> {
  const follower = log.follow()
  live?.attach(() => follower.wake())
  let wait = FIRST_POLL_MS
  try {
    for (;;) {
      const before = log.fold.seq
      await log.refresh()
      yield
      wait = log.fold.seq === before ? Math.min(LONGEST_POLL_MS, wait * 1.5) : FIRST_POLL_MS
      const rest = () => follower.rest(wait, signal, Math.max(0, deadline - clock.monotonic()))
      if (!live?.isReady) await rest()
      // Called without a look at the log: there is one of these for every token.
      while (live?.isReady) {
        yield
        if (!follower.isBehind) await rest()
      }
    }
  } finally {
    follower.close()
  }
}
