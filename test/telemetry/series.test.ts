import { mergeSeries } from 'holdfast'
import type { ProcessMetrics } from 'holdfast/types'
import { SeriesKeeper } from '#src/telemetry/series.js'
import { describe, expect, it } from 'vitest'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function reportOf(startedAt: number, points: readonly (readonly [at: number, runs: number])[]): ProcessMetrics {
  const keeper = new SeriesKeeper()
  let series: ProcessMetrics['series']
  for (const [at, runs] of points) series = keeper.add(at, { counters: { runs }, histograms: {} })
  return { process: 'p', startedAt, at: 0, counters: {}, histograms: {}, ...(series ? { series } : {}) }
}

const sum = (values: readonly number[] = []) => values.reduce((all, one) => all + one, 0)

describe('the figures of processes over time', () => {
  it('stay bounded however long a process lives, and lose nothing of what was counted in all', () => {
    const points = Array.from({ length: 10_000 }, (_, i) => [i * 1000, i] as const)
    const report = reportOf(0, points)
    expect(report.series?.at.length).toBeLessThanOrEqual(60)
    expect(report.series?.at.at(-1)).toBe(9_999_000)
    const { values } = mergeSeries([report], 9_999_000)
    expect(sum(values['runs'])).toBeCloseTo(9999, 6)
    // Counted evenly, so shown evenly, although later moments are kept more closely than early ones.
    for (const one of values['runs'] ?? []) expect(one).toBeCloseTo(9999 / 48, 6)
  })

  it('are added up by when they were counted', () => {
    const early = reportOf(0, [[HOUR, 10]])
    const late = reportOf(HOUR, [
      [HOUR, 0],
      [2 * HOUR, 30],
    ])
    const { from, stepMs, values } = mergeSeries([early, late], 2 * HOUR, 2)
    expect([from, stepMs]).toEqual([0, HOUR])
    expect(values['runs']).toEqual([10, 30])
  })

  it('count how often and how long something was measured', () => {
    const keeper = new SeriesKeeper()
    const histograms = { save: { bounds: [1, 2], counts: [3, 1, 0], sum: 5.5 } }
    expect(keeper.add(1, { counters: {}, histograms })).toEqual({
      at: [1],
      values: { 'save.count': [4], 'save.sum': [5.5] },
    })
  })

  it('leave out what is older than a day, and what no process can have written', () => {
    const day = 24 * HOUR
    const old = reportOf(0, [
      [day, 100],
      [2 * day, 124],
    ])
    expect(sum(mergeSeries([old], 2 * day).values['runs'])).toBeCloseTo(24, 6)
    const wrong = ['x', { at: 1 }, { at: [1], values: { runs: ['a'] } }, { at: Array(1000).fill(1), values: {} }]
    for (const series of wrong) {
      expect(mergeSeries([{ ...reportOf(0, []), series } as never], day).values).toEqual({})
    }
    expect(mergeSeries([], day)).toMatchObject({ stepMs: (2 * MINUTE) / 48, values: {} })
  })
})
