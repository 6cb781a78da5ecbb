import type { Clock } from '../../core/time/clock.js'
import type { Log } from '../../log/log.js'
import { HoldfastError, InvalidOptionError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { FamilyRest } from '../child/family-rest.js'
import type { RuntimeEnvironment } from '../run/environment.js'

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

/** How long to wait for a thread. */
export interface WaitOptions {
  readonly signal?: AbortSignal
  /** In milliseconds. Default: forever. */
  readonly timeoutMs?: number
}

export function checkTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || timeoutMs >= 0) return
  throw new InvalidOptionError(
    'timeoutMs',
    `must be a number of milliseconds, 0 or more, not ${String(timeoutMs)}`,
    'Pass for example 30_000.',
  )
}

/** Resolves when a thread and those that it awaits are at rest. Throws when the time is over. */
export async function waitForRest(
  { logs, clock }: RuntimeEnvironment,
  log: Log,
  { signal, timeoutMs }: WaitOptions,
): Promise<void> {
  const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() + timeoutMs
  const family = new FamilyRest(logs)
  try {
    for await (const _ of follow(log, clock, signal, deadline, family)) {
      if (await family.isAtRest(log)) return
      if (clock.monotonic() >= deadline) break
    }
  } finally {
    family.close()
  }
  const data = { thread: log.key.thread, timeoutMs }
  if (!log.exists) {
    const message = `There was no ${nameLog(log.key)} within ${timeoutMs} ms.`
    throw new NotFoundError(message, 'Check its id and tenant, or wait longer.', data)
  }
  // Not `not-found`: a caller waiting for an existing thread must not be told that it is gone.
  throw new HoldfastError('timeout', `${nameLog(log.key)} did not come to rest within ${timeoutMs} ms.`, {
    data,
    retryable: true,
    remedy: 'Wait longer, or look at what it does with thread.events().',
  })
}
