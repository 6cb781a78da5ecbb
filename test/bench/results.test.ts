import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { budgetOf, GOALS, judge } from '../../bench/budget.mjs'
import { linesOf, readResults } from '../../bench/results.mjs'
import { makeFigures, withBlock } from '../../scripts/docs/figures.mjs'
import { root } from '../docs/blocks.js'

const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** What is promised: a row may be missed, and may not go. */
const ROWS = [
  'appends and round trips of a step',
  'CPU per step, memory driver, warm',
  'agent, 300 tool calls, steps/s against LangGraph.js',
  'flow on Postgres against DBOS',
  'save at turn 1,000, p50, against the floor',
  'save at turn 1,000, p50, against turn 30',
  'bytes stored at 1,000 turns, against their JSON',
  'load newest at 1,000 turns, against read and parse',
  '847 sessions of 20 turns, 64 at a time, against the floor',
  'bytes at 1,000 turns against LangGraph.js on SQLite',
  '200 turns, a run each: time of a turn at the end against LangGraph.js',
  'the demo: 847 conversations, workers killed',
  'resuming, beyond loading the state',
  'takeover after kill -9',
  'from enqueue until another process starts on it, p50',
  'queries of an idle worker',
  '50,000 sessions in killed processes, per backend',
  'event loop delay while saving at full speed, p99',
  '10,000 paused threads',
]

describe('bench/results.json', () => {
  it('has a line for every part of every row of the budget, judged by the figures beside it', () => {
    const { budget, figures } = readResults()
    expect([...new Set(budget.map(({ row }) => row))]).toEqual(ROWS)
    expect(budget).toEqual(judge(linesOf(figures)))
  })

  it('names neither the machine nor a place on it', () => {
    expect(read('bench/results.json')).not.toMatch(
      /:\/\/|\/(tmp|var|usr|opt|root|home|work|Users)\b|localhost|127\.0\.0/,
    )
  })

  it('is what README and docs say in numbers, and what their plots show', () => {
    const { files, blocks } = makeFigures(readResults())
    for (const [file, text] of files) expect(read(file), `${file}: run npm run docs:figures`).toBe(text)
    for (const [page, block] of blocks) {
      expect(withBlock(read(page), block), `${page}: run npm run docs:figures`).toBe(read(page))
    }
  })
})

describe('the budget', () => {
  const line = (id: string, ours: number, ratio?: number) => ({
    id,
    backend: 'any',
    what: 'any',
    unit: 'time' as const,
    ours,
    ...(ratio === undefined ? {} : { ratio }),
  })
  const verdictOn = (lines: Parameters<typeof judge>[0], ids: string) =>
    judge(lines)[GOALS.findIndex((goal) => goal.ids.includes(ids))]

  it('calls a line missed that was not measured', () => {
    for (const verdict of judge([])) expect(verdict).toMatchObject({ measured: null, pass: false })
  })

  it('judges ratios where there is one, at the limit as met', () => {
    expect(verdictOn([line('save@sqlite', 99, 1.3)], 'save@sqlite')).toMatchObject({ measured: 1.3, pass: true })
    expect(verdictOn([line('save@sqlite', 0.1, 1.31)], 'save@sqlite')).toMatchObject({ measured: 1.31, pass: false })
    expect(verdictOn([line('agent.saver@sqlite', 99, 9.9)], 'agent.saver@sqlite')).toMatchObject({ pass: false })
    expect(verdictOn([line('cpu.run', 0.25)], 'cpu.run')).toMatchObject({ measured: 0.25, pass: true })
    const toNothing = line('save@sqlite', 1, Number.NaN)
    expect(verdictOn([toNothing], 'save@sqlite')).toMatchObject({ measured: null, pass: false })
    const stored = JSON.parse(JSON.stringify([toNothing]))
    expect(verdictOn(stored, 'save@sqlite')).toMatchObject({ measured: null, pass: false })
  })

  it('takes the worst of several backends, and none for all when one is missing', () => {
    const all = [line('resume@sqlite', 3), line('resume@postgres', 12), line('resume@redis', 5)]
    expect(verdictOn(all, 'resume@sqlite')).toMatchObject({ measured: 12, pass: false })
    expect(verdictOn(all.slice(0, 1), 'resume@sqlite')).toMatchObject({ measured: null, pass: false })
  })

  it('gives suites the limit of a line, and nothing where nothing is promised', () => {
    expect(budgetOf('load@redis')).toEqual({ budget: { atMost: 2 } })
    expect(budgetOf('load@file')).toEqual({})
  })
})
