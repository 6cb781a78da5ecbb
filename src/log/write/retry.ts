import { isHoldfastError } from '../../core/errors.js'
import type { LogEnvironment } from '../log-environment.js'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 1000

/**
 * Repeats work that may safely be done twice until the backend answers or `retryMs` is over. `attempt` tells the work
 * whether an earlier attempt may have landed.
 */
export async function retry<Result>(
  { clock, retryMs }: Pick<LogEnvironment, 'clock' | 'retryMs'>,
  work: (attempt: number) => Promise<Result>,
): Promise<Result> {
  const deadline = clock.monotonic() + retryMs
  for (let attempt = 0; ; attempt++) {
    try {
      return await work(attempt)
    } catch (error) {
      if (!isPassing(error) || clock.monotonic() >= deadline) throw error
      await clock.sleep(backoffMs(attempt))
    }
  }
}

// A failure of the backend itself. A conflict is an answer, and stays the same however often it is asked for.
function isPassing(error: unknown): boolean {
  return isHoldfastError(error) && error.retryable && (error.code === 'unavailable' || error.code === 'storage')
}

/**
 * How long to wait after this many failures, randomized, so that those who failed together do not come back together.
 */
export function backoffMs(failures: number): number {
  return Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
}
