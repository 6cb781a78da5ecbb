// @ts-check
// Everything that README and docs say in numbers, made from bench/results.json.
import { drawBars, drawCurves } from './charts.mjs'

/** @typedef {import('../../bench/results.mjs').Results} Results */
/** @typedef {import('../../bench/statistics.mjs').Line} Line */

const COLUMNS = /** @type {const} */ (['sqlite', 'postgres', 'redis'])

/**
 * Files by their path, and blocks by the page they stand in.
 * @param {Results} results
 * @returns {{ files: Map<string, string>, blocks: Map<string, string> }}
 */
export function makeFigures(results) {
  const found = new Map(Object.values(results.figures).flatMap((lines) => lines.map((line) => [line.id, line])))
  const at = (/** @type {string} */ id) => found.get(id)
  return {
    files: new Map([
      ['docs/figures/latency.svg', conversationChart(results, 'ms')],
      ['docs/figures/bytes.svg', conversationChart(results, 'bytes')],
      ['docs/figures/steps.svg', stepsChart(at)],
    ]),
    blocks: new Map([
      ['README.md', readmeBlock(results, at)],
      ['docs/performance.md', budgetBlock(results)],
    ]),
  }
}

/** A page with its generated block anew. @param {string} text @param {string} block */
export function withBlock(text, block) {
  const parts = /^([^]*<!-- figures -->\n)[^]*?(<!-- \/figures -->[^]*)$/.exec(text)
  if (parts === null) throw new Error('The page has no block between <!-- figures --> and <!-- /figures -->.')
  return `${parts[1]}${block}${parts[2]}`
}

/** @param {Results} results @param {'ms' | 'bytes'} what */
function conversationChart({ plots }, what) {
  const panels = [
    ['sqlite', 'SQLite, every commit flushed'],
    ['postgres', 'Postgres'],
  ].map(([id, title = '']) => ({
    title,
    series: Object.entries(plots[`conversation@${id}`] ?? {}).map(([who, points]) => ({
      who: /** @type {import('./charts.mjs').Who} */ (who),
      points: points.map((point) => /** @type {const} */ ([point.turns, point[what]])),
    })),
  }))
  return drawCurves({
    title: what === 'ms' ? 'A turn of an agent, as the conversation grows' : 'Stored bytes, as the conversation grows',
    xName: 'turns',
    show: what === 'ms' ? (ms) => `${ms.toLocaleString('en-US')} ms` : showBytes,
    names: [
      ['holdfast', 'Holdfast'],
      ['saver', 'LangGraph.js, its saver'],
      ['delta', 'its DeltaChannel (beta)'],
    ],
    panels: panels.filter(({ series }) => series.length > 0),
  })
}

/** @param {number} bytes */
function showBytes(bytes) {
  return bytes >= 1e9 ? `${bytes / 1e9} GB` : bytes >= 1e6 ? `${bytes / 1e6} MB` : `${bytes / 1e3} KB`
}

/** @param {(id: string) => Line | undefined} at */
function stepsChart(at) {
  /** @param {string} title @param {readonly (readonly [id: string, who: import('./charts.mjs').Who, name: string])[]} peers */
  const group = (title, peers) => {
    const known = peers.flatMap(([id, who, name]) => {
      const line = at(id)
      return line?.floor === undefined ? [] : [{ who, name, value: line.floor, ours: line.ours }]
    })
    const ours = { who: /** @type {const} */ ('holdfast'), name: 'Holdfast', value: known[0]?.ours ?? 0 }
    return { title, bars: known.length > 0 ? [ours, ...known] : [] }
  }
  const saved = (/** @type {string} */ backend) =>
    /** @type {const} */ ([
      [`agent.saver@${backend}`, 'saver', 'LangGraph.js, its saver'],
      [`agent.delta@${backend}`, 'delta', 'LangGraph.js, its DeltaChannel'],
    ])
  const groups = [
    group('An agent that calls 300 tools, in memory', [
      ['agent.bare@memory', 'bare', 'LangGraph.js, keeping nothing'],
      ...saved('memory'),
    ]),
    group('The same on SQLite, every commit flushed', saved('sqlite')),
    group('The same on Postgres', saved('postgres')),
    group('A flow of 600 steps on Postgres', [['dbos.600', 'dbos', 'DBOS']]),
    group('A flow of 3,000 steps on Postgres', [['dbos.3000', 'dbos', 'DBOS']]),
  ]
  return drawBars({ title: 'Steps per second', unit: '/s', groups: groups.filter(({ bars }) => bars.length > 0) })
}

/** @param {Results} results @param {(id: string) => Line | undefined} at */
function readmeBlock({ machine, budget }, at) {
  /** @param {string} id @param {(line: Line) => string} show */
  const cell = (id, show) => {
    const line = at(id)
    if (line === undefined) return '–'
    return line.over ? `**${show(line)}**` : show(line)
  }
  const ratio = (/** @type {Line} */ line) => number(line.ratio ?? NaN)
  const rated = (/** @type {Line} */ line) => `${ratio(line)} (${number(line.ours)}/s)`
  const ms = (/** @type {Line} */ line) => `${number(line.ours)} ms`
  /** @param {string} what @param {string} goal @param {string} id @param {(line: Line) => string} show */
  const row = (what, goal, id, show) =>
    `| ${[what, goal, ...COLUMNS.map((backend) => cell(`${id}@${backend}`, show))].join(' | ')} |`
  const met = budget.filter(({ pass }) => pass).length
  const text = [
    `Medians of the benchmarks in the repository, on ${machine.cpus} cores and Node ${machine.node.slice(1).split('.')[0]}. The floor is the same bytes written by the plainest`,
    'code on the same backend and settings. **Bold** misses the goal.',
    '',
    '| | goal | SQLite FULL | Postgres | Redis `always` |',
    '|---|---|---|---|---|',
    row('save at turn 1,000, p50, times the floor', '1.3', 'save', ratio),
    row('save at turn 1,000, times turn 30', '1.2', 'flat', ratio),
    row('64 sessions at once, times the floor’s rate', '4 / 2 / 0.6', 'crowd', rated),
    row('load newest of 1,000 turns, times read and parse', '2', 'load', ratio),
    row('resuming, beyond loading', '10 ms', 'resume', ms),
    row('event loop delay at full speed, p99', '20 ms', 'loop.crowd', ms),
    row('agent, 300 tool calls, steps/s, times LangGraph.js with its saver', '10', 'agent.saver', rated),
    row('the same, times LangGraph.js with its DeltaChannel (beta)', '2', 'agent.delta', rated),
    row('from enqueue until another process starts on it, p50', '500 / 20 / 20 ms', 'wake', ms),
    '',
    '![Steps per second beside LangGraph.js and DBOS](docs/figures/steps.svg)',
    '',
    `[Performance](docs/performance.md) has every line of the budget (${met} of ${budget.length} met), latency and bytes against the length of`,
    'a conversation, and how it is measured.',
    ...sentences(at),
    '',
  ]
  return `${text.join('\n')}`
}

/** @param {(id: string) => Line | undefined} at */
function sentences(at) {
  const value = (/** @type {string} */ id) => at(id)?.ratio ?? at(id)?.ours
  const [saver, delta] = [value('bytes.saver'), value('bytes.delta')]
  const [rate, kills, takeover] = [value('demo.rate'), value('demo.kills'), value('demo.takeover')]
  const [sessions, killed, effects, faults] = ['sessions', 'kills', 'effects', 'faults'].map((part) =>
    value(`torture.${part}`),
  )
  return [
    ...(saver === undefined || delta === undefined
      ? []
      : [
          `For 1,000 turns of an agent on SQLite, LangGraph.js stores ${number(saver)} times our bytes with its SqliteSaver, and`,
          `${number(delta)} times with its DeltaChannel.`,
        ]),
    ...(rate === undefined || kills === undefined || takeover === undefined
      ? []
      : [
          `The demo's 847 conversations on SQLite: ${number(rate)} turns a second while ${number(kills)} workers are killed, none lost, taken over at`,
          `p99 ${number(takeover / 1000)} s with a lease of 2 s.`,
        ]),
    ...(sessions === undefined || killed === undefined || effects === undefined || faults !== 0
      ? []
      : [
          `Killed on purpose, ${number(sessions)} sessions per backend: ${number(effects)} effects under ${number(killed)} SIGKILLs, none twice, no session`,
          'lost.',
        ]),
  ]
}

/** @param {Results} results */
function budgetBlock({ machine, rounds, budget }) {
  const rows = [...new Set(budget.map(({ row }) => row))]
  const lines = rows.flatMap((row) =>
    budget
      .filter((verdict) => verdict.row === row)
      .map(({ line, budget: goal, measured, pass }, i) => {
        const shown = measured === null ? 'not measured' : number(measured)
        return `| ${i === 0 ? row : ''} | ${line} | ${goal} | ${pass ? shown : `**${shown}**`} |`
      }),
  )
  return [
    `Measured on ${machine.cpus} cores with Node ${machine.node.slice(1)} (${[machine.platform, ...machine.servers].join(', ')}), medians of ${rounds} rounds.`,
    `${budget.filter(({ pass }) => pass).length} of ${budget.length} lines are met; **bold** misses.`,
    '',
    '| what | | goal | measured |',
    '|---|---|---|---|',
    ...lines,
    '',
  ].join('\n')
}

/** Two digits, or all before the point. @param {number} value */
function number(value) {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(value >= 10 ? 3 : 2)))
}
