import { describeGiven } from '../core/wording/choices.js'
import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import type { MeterProviderLike, TracerProviderLike } from './otel-api.js'

/** What is counted and traced for a store that this process opens, and where it goes. */
export interface TelemetryOptions {
  /** Where spans go. Default: the provider that is registered with `@opentelemetry/api`. `false`: no spans. */
  readonly tracerProvider?: TracerProviderLike | false
  /** Where metrics go. Default: the provider that is registered with `@opentelemetry/api`. `false`: no metrics. */
  readonly meterProvider?: MeterProviderLike | false
  /** Puts messages, tool arguments and results into spans. Default false: they are the users' own words. */
  readonly recordContent?: boolean
  /**
   * How often this process reports its metrics to the store, for `holdfast stats`, in milliseconds. Default 10,000.
   * `false`: not at all.
   */
  readonly flushEveryMs?: number | false
}

const OPTIONS: OptionNames<TelemetryOptions> = {
  tracerProvider: true,
  meterProvider: true,
  recordContent: true,
  flushEveryMs: true,
}

const DEFAULT_FLUSH_MS = 10_000
/** Shorter than this, reports would be a load of their own. */
const LEAST_FLUSH_MS = 100
const MOST_FLUSH_MS = 3_600_000

/** Refuses what can't be meant, before anything is opened. Returns how often to report. */
export function checkTelemetry(options: TelemetryOptions): number | false {
  checkOptionNames('openHoldfast({ telemetry })', options, OPTIONS)
  const { flushEveryMs = DEFAULT_FLUSH_MS, tracerProvider, meterProvider, recordContent = false } = options
  const isTime = typeof flushEveryMs === 'number' && flushEveryMs >= LEAST_FLUSH_MS && flushEveryMs <= MOST_FLUSH_MS
  if (flushEveryMs !== false && !isTime) {
    const problem = `must be a number from ${LEAST_FLUSH_MS} to ${MOST_FLUSH_MS}, not ${describeGiven(flushEveryMs)}`
    throw new InvalidOptionError('telemetry.flushEveryMs', problem, 'Pass milliseconds, or false to report nothing.')
  }
  if (tracerProvider && typeof tracerProvider.getTracer !== 'function') {
    throw new InvalidOptionError('telemetry.tracerProvider', 'has no getTracer', 'Pass a tracer provider of the SDK.')
  }
  if (meterProvider && typeof meterProvider.getMeter !== 'function') {
    throw new InvalidOptionError('telemetry.meterProvider', 'has no getMeter', 'Pass a meter provider of the SDK.')
  }
  // Private data must not be recorded because of a value that merely looks true.
  if (typeof recordContent !== 'boolean') {
    throw new InvalidOptionError(
      'telemetry.recordContent',
      `must be true or false, not ${describeGiven(recordContent)}`,
      'Leave it out for false.',
    )
  }
  return flushEveryMs
}
