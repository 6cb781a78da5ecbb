import { COUNTER_NAMES, COUNTERS, type CounterName, HISTOGRAM_NAMES, HISTOGRAMS, type HistogramName } from './names.js'
import type { Attributes, CounterLike, HistogramLike, MeterProviderLike } from './otel-api.js'
import { quietly, SCOPE } from './tracing.js'

/** The bounds that the conventions ask for. */
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864]
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]

/**
 * OpenTelemetry instruments for everything that is counted, at one meter provider. Counting never throws: an append
 * that landed would look like one that failed.
 */
export class Instruments {
  readonly provider: MeterProviderLike
  readonly #counters: Readonly<Record<CounterName, CounterLike>>
  readonly #histograms: Readonly<Record<HistogramName, HistogramLike>>
  readonly #tokens: HistogramLike
  readonly #operations: HistogramLike

  constructor(provider: MeterProviderLike) {
    this.provider = provider
    const meter = provider.getMeter(SCOPE)
    this.#counters = Object.fromEntries(
      COUNTER_NAMES.map((name) => [name, meter.createCounter(name, COUNTERS[name])]),
    ) as Record<CounterName, CounterLike>
    this.#histograms = Object.fromEntries(
      HISTOGRAM_NAMES.map((name) => {
        const { unit, description, bounds } = HISTOGRAMS[name]
        return [name, meter.createHistogram(name, { unit, description, advice: advise(bounds) })]
      }),
    ) as Record<HistogramName, HistogramLike>
    this.#tokens = meter.createHistogram('gen_ai.client.token.usage', {
      unit: '{token}',
      description: 'Number of input and output tokens used.',
      advice: advise(TOKENS),
    })
    this.#operations = meter.createHistogram('gen_ai.client.operation.duration', {
      unit: 's',
      description: 'GenAI operation duration.',
      advice: advise(SECONDS),
    })
  }

  count(name: CounterName, by: number, attributes?: Attributes): void {
    // Not `quietly`: this is done for every append, and must leave nothing for the garbage collector.
    try {
      this.#counters[name].add(by, attributes)
    } catch {}
  }

  record(name: HistogramName, value: number): void {
    try {
      this.#histograms[name].record(value)
    } catch {}
  }

  tokens(type: 'input' | 'output', count: number, attributes: Attributes): void {
    quietly(() => this.#tokens.record(count, { ...attributes, 'gen_ai.token.type': type }))
  }

  operation(seconds: number, attributes: Attributes): void {
    quietly(() => this.#operations.record(seconds, attributes))
  }
}

function advise(bounds: readonly number[]) {
  return { explicitBucketBoundaries: [...bounds] }
}
