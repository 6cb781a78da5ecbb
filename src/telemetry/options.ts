import { InvalidOptionError } from '../core/errors.js'

/** What is counted and traced of a store that this process opens, and where it goes. */
export interface TelemetryOptions {
  /**
   * How often this process reports its figures to the store, for `holdfast stats`, in milliseconds. Default 10,000.
   * `false`: not at all.
   */
  readonly flushEveryMs?: number | false
}

const DEFAULT_FLUSH_MS = 10_000
/** Shorter than this, reports would be a load of their own. */
const LEAST_FLUSH_MS = 100
const MOST_FLUSH_MS = 3_600_000

/** Before anything is opened. */
export function checkTelemetry(options: TelemetryOptions): Required<Pick<TelemetryOptions, 'flushEveryMs'>> {
  const { flushEveryMs = DEFAULT_FLUSH_MS } = options
  const fits = typeof flushEveryMs === 'number' && flushEveryMs >= LEAST_FLUSH_MS && flushEveryMs <= MOST_FLUSH_MS
  if (flushEveryMs !== false && !fits) {
    throw new InvalidOptionError(
      'telemetry.flushEveryMs',
      `must be ${LEAST_FLUSH_MS} to ${MOST_FLUSH_MS}`,
      'Pass milliseconds, or false to report nothing.',
    )
  }
  return { flushEveryMs }
}
