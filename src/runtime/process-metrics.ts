import type { Value } from '../codec/value.js'

/**
 * Where processes leave their figures for `holdfast stats`: one item per process in this collection, written anew now
 * and then, with a time to live, so that those of processes long gone disappear.
 */
export const METRICS_SCOPE: Readonly<Record<string, string>> = { holdfast: 'metrics' }
/** The collection in which each process keeps its figures under a key of its own. */
export const METRICS_COLLECTION = 'processes'

/** Counts per bucket: `counts[i]` holds what was at most `bounds[i]`, the last one what was more. */
export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly number[]
  readonly sum: number
}

/** What one process has counted since it began. Names are those of its OpenTelemetry instruments. */
export interface ProcessMetrics {
  readonly process: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly at: number
  readonly counters: Readonly<Record<string, number>>
  readonly histograms: Readonly<Record<string, Histogram>>
}

/** The figures of many processes as one. Histograms of other buckets than the first of their name are left out. */
export function mergeMetrics(
  all: readonly ProcessMetrics[],
): Pick<ProcessMetrics, 'counters' | 'histograms'> & { readonly processes: number } {
  const counters: Record<string, number> = {}
  const histograms: Record<string, Histogram> = {}
  for (const one of all) {
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
  }
  return { counters, histograms, processes: all.length }
}

/** The bound below which this part (0 to 1) of what was counted lies; undefined when nothing was. */
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
export function isProcessMetrics(value: unknown): value is ProcessMetrics & Value {
  const metrics = value as Partial<ProcessMetrics> | null
  return (
    typeof metrics === 'object' &&
    metrics !== null &&
    typeof metrics.process === 'string' &&
    typeof metrics.counters === 'object' &&
    metrics.counters !== null &&
    typeof metrics.histograms === 'object' &&
    metrics.histograms !== null &&
    Object.values(metrics.histograms).every(
      (one) => Array.isArray(one?.bounds) && Array.isArray(one.counts) && typeof one.sum === 'number',
    )
  )
}
