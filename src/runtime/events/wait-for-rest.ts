import { HoldfastError, InvalidOptionError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Log } from '../../log/log.js'
import { FamilyRest } from '../child/family-rest.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { follow } from './follow.js'

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
