// @ts-check
// What is aimed at, row by row, in one place: suites take their limits from here, and bench/results.json its verdicts.

/** @typedef {{ atMost: number } | { atLeast: number }} Limit */
/** 'x' is a ratio. @typedef {'x' | 'ms' | '/s' | 'count'} Measure */

/**
 * @typedef {object} Goal
 * @property {string} row what is promised
 * @property {string} line the part of it that is measured
 * @property {readonly string[]} ids lines of suites; of several, the worst counts
 * @property {Limit} limit
 * @property {Measure} measure
 */

const SERVERS = ['sqlite', 'postgres', 'redis']
const NAMES = /** @type {Record<string, string>} */ ({ sqlite: 'SQLite FULL', postgres: 'Postgres', redis: 'Redis' })

/** @param {string} id @param {readonly string[]} [backends] */
const on = (id, backends = SERVERS) => backends.map((backend) => `${id}@${backend}`)

/**
 * @param {string} row
 * @param {Measure} measure
 * @param {readonly (readonly [line: string, ids: string | readonly string[], limit: Limit])[]} lines
 * @returns {Goal[]}
 */
function goals(row, measure, lines) {
  return lines.map(([line, ids, limit]) => ({ row, line, ids: [ids].flat(), limit, measure }))
}

/** One line for each backend. @param {string} row @param {string} id @param {Limit | Record<string, Limit>} limits @param {readonly string[]} [backends] @param {Measure} [measure] */
function each(row, id, limits, backends = SERVERS, measure = 'x') {
  return goals(
    row,
    measure,
    backends.map((backend) => [
      NAMES[backend] ?? backend,
      `${id}@${backend}`,
      /** @type {Limit} */ (backend in limits ? limits[/** @type {keyof typeof limits} */ (backend)] : limits),
    ]),
  )
}

/** @type {readonly Goal[]} */
export const GOALS = [
  ...goals('appends and round trips of a step', 'count', [
    ['appends of a sequential step', on('step.appends'), { atMost: 1 }],
    ['round trips of a sequential step', on('step.trips'), { atMost: 1 }],
    ['appends of a step with a once effect', on('once.appends'), { atMost: 2 }],
  ]),
  ...goals('CPU per step, memory driver, warm', 'ms', [
    ['flow, 50 results on record', 'cpu.flow50', { atMost: 0.06 }],
    ['flow, 4,000 results on record', 'cpu.flow4000', { atMost: 0.06 }],
    ['agent, 300 tool calls in one run', 'cpu.agent', { atMost: 0.2 }],
    ['run with one step', 'cpu.run', { atMost: 0.25 }],
  ]),
  ...goals('agent, 300 tool calls, steps/s against LangGraph.js', 'x', [
    ['memory, against no saver at all', 'agent.bare@memory', { atLeast: 4 }],
    ['SQLite FULL, against its saver', 'agent.saver@sqlite', { atLeast: 10 }],
    ['SQLite FULL, against its DeltaChannel', 'agent.delta@sqlite', { atLeast: 2 }],
    ['Postgres, against its saver', 'agent.saver@postgres', { atLeast: 10 }],
    ['Postgres, against its DeltaChannel', 'agent.delta@postgres', { atLeast: 2 }],
  ]),
  ...goals('flow on Postgres against DBOS', 'x', [
    ['600 steps, steps/s', 'dbos.600', { atLeast: 3 }],
    ['3,000 steps, steps/s', 'dbos.3000', { atLeast: 3 }],
    ['resuming after 3,000 steps', 'dbos.resume', { atLeast: 20 }],
  ]),
  ...each('save at turn 1,000, p50, against the floor', 'save', { atMost: 1.3 }),
  ...each('save at turn 1,000, p50, against turn 30', 'flat', { atMost: 1.2 }),
  ...goals('bytes stored at 1,000 turns, against their JSON', 'x', [
    ['a session with tools, one save a turn, as handed to the driver', 'bytes.session', { atMost: 1.2 }],
    ['plain prose, one save a turn, on the disk of SQLite', 'bytes.prose', { atMost: 1.2 }],
    ['an agent with tools, a run each turn, on the disk of SQLite', 'bytes.agent', { atMost: 1.2 }],
  ]),
  ...each('load newest at 1,000 turns, against read and parse', 'load', { atMost: 2 }),
  ...each('847 sessions of 20 turns, 64 at a time, against the floor', 'crowd', {
    sqlite: { atLeast: 4 },
    postgres: { atLeast: 2 },
    redis: { atLeast: 0.6 },
  }),
  ...goals('bytes at 1,000 turns against LangGraph.js on SQLite', 'x', [
    ['fewer than its saver', 'bytes.saver', { atLeast: 1000 }],
    ['fewer than its DeltaChannel', 'bytes.delta', { atLeast: 3 }],
  ]),
  ...each('200 turns, a run each: time of a turn at the end against LangGraph.js', 'turns.saver', { atLeast: 20 }, [
    'sqlite',
    'postgres',
  ]),
  ...goals('the demo: 847 conversations, workers killed', 'ms', [
    ['CPU per turn, all processes', 'demo.cpu', { atMost: 5 }],
  ]),
  ...goals('the demo: 847 conversations, workers killed', 'count', [
    ['conflicts per run', 'demo.conflicts', { atMost: 0.05 }],
  ]),
  ...goals('resuming, beyond loading the state', 'ms', [['the slowest backend', on('resume'), { atMost: 10 }]]),
  ...goals('takeover after kill -9', 'ms', [['p99, with a lease of 2,000 ms', 'demo.takeover', { atMost: 3000 }]]),
  ...each(
    'from enqueue until another process starts on it, p50',
    'wake',
    { sqlite: { atMost: 500 }, postgres: { atMost: 20 }, redis: { atMost: 20 } },
    SERVERS,
    'ms',
  ),
  ...each('queries of an idle worker', 'idle', { atMost: 1 }, SERVERS, '/s'),
  ...goals('50,000 sessions in killed processes, per backend', 'count', [
    ['lost or repeated', 'torture.faults', { atMost: 0 }],
    ['sessions on the backend with the fewest', 'torture.sessions', { atLeast: 50_000 }],
  ]),
  ...goals('event loop delay while saving at full speed, p99', 'ms', [
    ['the slowest backend', [...on('loop.long'), ...on('loop.crowd')], { atMost: 20 }],
  ]),
  ...goals('10,000 paused threads', 'count', [
    ['processes, timers and connections they hold', 'paused.held', { atMost: 0 }],
  ]),
]

const LIMITS = new Map(GOALS.flatMap(({ ids, limit }) => ids.map((id) => [id, limit])))

/** What a suite adds to a line of this id; nothing where nothing is promised. @param {string} id @returns {{ budget?: Limit }} */
export function budgetOf(id) {
  const limit = LIMITS.get(id)
  return limit === undefined ? {} : { budget: limit }
}

/**
 * @typedef {object} Verdict
 * @property {string} row
 * @property {string} line
 * @property {string} budget
 * @property {number | null} measured null: not measured
 * @property {boolean} pass
 */

/**
 * A line for every goal: one that was not measured is not met.
 * @param {readonly import('./statistics.mjs').Line[]} lines
 * @returns {Verdict[]}
 */
export function judge(lines) {
  const found = new Map(lines.map((line) => [line.id, line]))
  return GOALS.map(({ row, line, ids, limit, measure }) => {
    const known = ids.map((id) => valueOf(found.get(id))).filter((value) => value !== undefined)
    const worst = 'atMost' in limit ? Math.max(...known) : Math.min(...known)
    const complete = known.length === ids.length
    const pass = complete && ('atMost' in limit ? worst <= limit.atMost : worst >= limit.atLeast)
    return { row, line, budget: showLimit(limit, measure), measured: complete ? round(worst) : null, pass }
  })
}

/** What is judged. A ratio to nothing is no number, also after it was stored as JSON. @param {import('./statistics.mjs').Line | undefined} line */
function valueOf(line) {
  const value = line?.ratio === undefined ? line?.ours : line.ratio
  return Number.isFinite(value) ? value : undefined
}

/** @param {Limit} limit @param {Measure} measure */
function showLimit(limit, measure) {
  const unit = measure === 'count' ? '' : measure === 'ms' ? ' ms' : measure
  return 'atMost' in limit
    ? `≤ ${limit.atMost.toLocaleString('en-US')}${unit}`
    : `≥ ${limit.atLeast.toLocaleString('en-US')}${unit}`
}

/** Three digits, or all before the point: the others are noise. @param {number} value */
export function round(value) {
  return Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(3))
}
