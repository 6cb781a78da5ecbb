import type { Series } from './series.js'

/**
 * Where processes keep their metrics for `holdfast stats`: one item per process in this collection, overwritten now and
 * then, with a time to live, so that those of processes long gone disappear.
 */
export const METRICS_SCOPE: Readonly<Record<string, string>> = { holdfast: 'metrics' }
/** The collection in which each process keeps its metrics under its own key. */
export const METRICS_COLLECTION = 'processes'

/** Counts per bucket: `counts[i]` holds what was at most `bounds[i]`, the last one what was more. */
export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

/** Tokens of calls to one model. */
export interface ModelTokens {
  /** Cached ones included. */
  readonly input: number
  readonly output: number
  readonly cached: number
}

/** What one process has counted since it started. Names are those of its OpenTelemetry instruments. */
export interface ProcessMetrics {
  readonly process: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly at: number
  readonly counters: Readonly<Record<string, number>>
  readonly histograms: Readonly<Record<string, Histogram>>
  /** By model, as `provider/model`. */
  readonly models?: Readonly<Record<string, ModelTokens>>
  /** What it had counted at earlier points in time. Absent in reports of 0.1. */
  readonly series?: Series
}

/** What many processes have counted together. */
export interface MergedMetrics extends Required<Pick<ProcessMetrics, 'counters' | 'histograms' | 'models'>> {
  readonly processes: number
}

/** The metrics of many processes combined. Histograms with other buckets than the first of their name are left out. */
export function mergeMetrics(all: readonly ProcessMetrics[]): MergedMetrics {
  const counters: Record<string, number> = {}
  const histograms: Record<string, Histogram> = {}
  const models: Record<string, ModelTokens> = {}
  // A process that opened its store more than once reports more than once.
  const processes = new Set<string>()
  for (const one of all) {
    processes.add(`${one.process} ${one.startedAt}`)
    for (const [name, count] of Object.entries(one.counters)) counters[name] = (counters[name] ?? 0) + count
    for (const [name, histogram] of Object.entries(one.histograms)) {
      const before = histograms[name]
      if (before === undefined) histograms[name] = histogram
      else if (String(before.bounds) === String(histogram.bounds)) {
        histograms[name] = {
          bounds: before.bounds,
          counts: before.counts.map((count, i) => count + (histogram.counts[i] ?? 0)),
          sum: before.sum + histogram.sum,
        }
      }
    }
    for (const [name, { input, output, cached }] of Object.entries(one.models ?? {})) {
      const before = models[name] ?? { input: 0, output: 0, cached: 0 }
      models[name] = {
        input: before.input + input,
        output: before.output + output,
        cached: before.cached + cached,
      }
    }
  }
  return { counters, histograms, models, processes: processes.size }
}

/** The bound below which this fraction (0 to 1) of what was counted lies; undefined if nothing was counted. */
export function quantileOf({ bounds, counts }: Histogram, part: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let seen = 0
  for (const [i, count] of counts.entries()) {
    seen += count
    if (seen >= part * total) return bounds[i] ?? Number.POSITIVE_INFINITY
  }
  return undefined
}

/** Whether an item is what a process wrote: the collection can hold anything. */
export function isProcessMetrics(value: unknown): value is ProcessMetrics {
  if (!isRecord(value) || typeof value['process'] !== 'string') return false
  const { counters, histograms, models = {} } = value
  return (
    isRecord(counters) &&
    Object.values(counters).every(isNumber) &&
    isRecord(histograms) &&
    Object.values(histograms).every(isHistogram) &&
    isRecord(models) &&
    Object.values(models).every(
      (one) => isRecord(one) && isNumber(one['input']) && isNumber(one['output']) && isNumber(one['cached']),
    )
  )
}

function isHistogram(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { bounds, counts, sum } = value
  return (
    Array.isArray(bounds) && bounds.every(isNumber) && Array.isArray(counts) && counts.every(isNumber) && isNumber(sum)
  )
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number'
}
