import { COUNTER_NAMES, type CounterName, HISTOGRAM_NAMES, HISTOGRAMS, type HistogramName } from './names.js'
import type { Histogram, ModelTokens, ProcessMetrics } from './process-metrics.js'

const COUNTER_AT = Object.fromEntries(COUNTER_NAMES.map((name, i) => [name, i])) as Readonly<
  Record<CounterName, number>
>

/** Models beyond these are counted only in the totals: names may come from users. */
const MOST_MODELS = 100

/**
 * What has been counted since it was created. Counting touches numbers in existing arrays: it is done for every append,
 * and must leave nothing for the garbage collector.
 */
export class Figures {
  /** Grows with every change, so that whoever passes the metrics on sees whether there is news. */
  changes = 0
  readonly #counters = new Float64Array(COUNTER_NAMES.length)
  readonly #histograms: Readonly<Record<HistogramName, Buckets>>
  readonly #models = new Map<string, { input: number; output: number; cached: number }>()

  constructor() {
    const made = HISTOGRAM_NAMES.map((name) => [name, new Buckets(HISTOGRAMS[name].bounds)])
    this.#histograms = Object.fromEntries(made) as Record<HistogramName, Buckets>
  }

  count(name: CounterName, by: number): void {
    const at = COUNTER_AT[name]
    this.#counters[at] = (this.#counters[at] as number) + by
    this.changes++
  }

  record(name: HistogramName, value: number): void {
    this.#histograms[name].add(value)
    this.changes++
  }

  model(name: string, { input, output, cached }: ModelTokens): void {
    let sums = this.#models.get(name)
    if (sums === undefined) {
      if (this.#models.size >= MOST_MODELS) return
      sums = { input: 0, output: 0, cached: 0 }
      this.#models.set(name, sums)
    }
    sums.input += input
    sums.output += output
    sums.cached += cached
  }

  /** How often this was measured. */
  measured(name: HistogramName): number {
    return this.#histograms[name].total
  }

  /** Counters that are not zero, histograms that are not empty. */
  snapshot(): Pick<ProcessMetrics, 'counters' | 'histograms' | 'models'> {
    const counters: Record<string, number> = {}
    for (const [i, name] of COUNTER_NAMES.entries()) {
      const count = this.#counters[i] as number
      if (count !== 0) counters[name] = count
    }
    const histograms: Record<string, Histogram> = {}
    for (const name of HISTOGRAM_NAMES) {
      if (this.#histograms[name].total > 0) histograms[name] = this.#histograms[name].snapshot()
    }
    if (this.#models.size === 0) return { counters, histograms }
    const models = Object.fromEntries([...this.#models].map(([name, sums]) => [name, { ...sums }]))
    return { counters, histograms, models }
  }
}

class Buckets {
  total = 0
  #sum = 0
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  add(value: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > (bounds[at] as number)) at++
    this.#counts[at] = (this.#counts[at] as number) + 1
    this.total++
    this.#sum += value
  }

  snapshot(): Histogram {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: Math.round(this.#sum * 1000) / 1000 }
  }
}
