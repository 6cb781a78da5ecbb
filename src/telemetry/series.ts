import type { ProcessMetrics } from './process-metrics.js'

/**
 * What a process had counted at some points of its life, oldest first: counters by name, and for histograms
 * `<name>.count` and `<name>.sum`. Values only grow.
 */
export interface Series {
  /** Milliseconds since 1970. */
  readonly at: readonly number[]
  readonly values: Readonly<Record<string, readonly number[]>>
}

/** How many points in time are kept. With more, every second one is dropped: the further back, the coarser. */
const MOST_POINTS = 60

/** Collects the points in time of one process. Limited, however long it lives. */
export class SeriesKeeper {
  #points: { readonly at: number; readonly values: Readonly<Record<string, number>> }[] = []

  add(at: number, { counters, histograms }: Pick<ProcessMetrics, 'counters' | 'histograms'>): Series {
    const values: Record<string, number> = { ...counters }
    for (const [name, { counts, sum }] of Object.entries(histograms)) {
      values[`${name}.count`] = counts.reduce((all, count) => all + count, 0)
      values[`${name}.sum`] = sum
    }
    if (this.#points.length >= MOST_POINTS) this.#points = this.#points.filter((_, i) => i % 2 === 1)
    this.#points.push({ at, values })
    return this.#read()
  }

  #read(): Series {
    const names = new Set(this.#points.flatMap(({ values }) => Object.keys(values)))
    return {
      at: this.#points.map(({ at }) => at),
      values: Object.fromEntries([...names].map((name) => [name, this.#points.map(({ values }) => values[name] ?? 0)])),
    }
  }
}

/** What all processes counted in each of several equal intervals. */
export interface MergedSeries {
  /** When the first interval begins, in milliseconds since 1970. */
  readonly from: number
  /** How long each is. */
  readonly stepMs: number
  /** Increases by name, one for each interval. */
  readonly values: Readonly<Record<string, readonly number[]>>
}

const SHORTEST_MS = 2 * 60 * 1000
const LONGEST_MS = 24 * 60 * 60 * 1000

/**
 * The series of many processes combined, up to now. Between two reports of a process, its counts are assumed to grow
 * evenly.
 */
export function mergeSeries(all: readonly ProcessMetrics[], now: number, stretches = 48): MergedSeries {
  const known = all.flatMap(({ series, startedAt }) => (isSeries(series) ? [{ ...series, startedAt }] : []))
  const began = Math.min(now, ...known.map(({ at, startedAt }) => Math.min(startedAt, at[0] ?? startedAt)))
  const length = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, now - began))
  const from = now - length
  const stepMs = length / stretches
  const values: Record<string, number[]> = {}
  for (const { at, startedAt, values: counted } of known) {
    for (const [name, counts] of Object.entries(counted)) {
      const sums = (values[name] ??= Array.from({ length: stretches }, () => 0))
      let before = countAt(from, startedAt, at, counts)
      for (let i = 0; i < stretches; i++) {
        const after = countAt(from + (i + 1) * stepMs, startedAt, at, counts)
        sums[i] = (sums[i] ?? 0) + after - before
        before = after
      }
    }
  }
  return { from, stepMs, values }
}

function countAt(time: number, startedAt: number, at: readonly number[], counts: readonly number[]): number {
  const next = at.findIndex((one) => one >= time)
  if (next === -1) return counts.at(-1) ?? 0
  const [end = 0, to = 0] = [at[next], counts[next]]
  // Reports may be older than the process by its own clock, which others set.
  const [start = 0, before = 0] = next === 0 ? [Math.min(startedAt, end), 0] : [at[next - 1], counts[next - 1]]
  if (time <= start) return before
  return end === start ? to : before + ((to - before) * (time - start)) / (end - start)
}

/** Whether this is what a process wrote: the collection can hold anything. */
function isSeries(value: unknown): value is Series {
  if (typeof value !== 'object' || value === null) return false
  const { at, values } = value as Partial<Record<'at' | 'values', unknown>>
  const isList = (list: unknown) =>
    Array.isArray(list) && list.length <= MOST_POINTS && list.every((one) => typeof one === 'number')
  return isList(at) && typeof values === 'object' && values !== null && Object.values(values).every(isList)
}
