// @ts-check
// Measures side by side with the plainest code on the same backend, and with LangGraph.js and DBOS, and shows the ratios
// beside their budgets. It judges nothing: a busy machine is no failure.
//   npm run bench -- [--only log,runtime,agent,…] [--backend sqlite,postgres,redis,file,memory] [--rounds 5] [--quick]
//                    [--json] [--no-build]
//   npm run bench -- --save    measures what bench/budget.mjs has goals for, writes bench/results.json, and draws the
//                              figures of README and docs from it; with --only, just these suites anew
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../scripts/build.mjs'
import { writeFigures } from '../scripts/docs-figures.mjs'
import { startServices } from '../scripts/services/index.mjs'
import { makeProgress, renderTable } from './report.mjs'
import { saveResults } from './results.mjs'

/** @typedef {import('./statistics.mjs').Line} Line */
/** @typedef {{ run: typeof import('./conversation/suite.mjs').run }} Suite */

/** Loaded when they run: they import what the build makes, and peers that may not be installed. @type {Record<string, () => Promise<Suite>>} */
const SUITES = {
  log: () => import('./log/suite.mjs'),
  runtime: () => import('./runtime/suite.mjs'),
  cpu: () => import('./cpu/suite.mjs'),
  agent: () => import('./agent/suite.mjs'),
  conversation: () => import('./conversation/suite.mjs'),
  dbos: () => import('./dbos/suite.mjs'),
  fleet: () => import('./fleet/suite.mjs'),
  demo: () => import('./demo/suite.mjs'),
  store: () => import('./store/suite.mjs'),
  langgraph: () => import('./langgraph/suite.mjs'),
  pipeline: () => import('./pipeline/suite.mjs'),
  security: () => import('./security/suite.mjs'),
  server: () => import('./server/suite.mjs'),
  retention: () => import('./retention/suite.mjs'),
  cache: () => import('./cache/suite.mjs'),
}
/** Those that the budget has lines for, and the settings that it names. */
const BUDGETED = ['log', 'runtime', 'cpu', 'agent', 'conversation', 'dbos', 'fleet', 'demo']
const BUDGETED_BACKENDS = ['sqlite', 'postgres', 'redis', 'memory']
const BACKENDS = ['sqlite', 'postgres', 'redis', 'file', 'memory']
/** A suite that takes longer than this hangs: it is given up, and the others are measured. */
const MOST_SUITE_MS = 10 * 60_000
const USAGE = `npm run bench -- [--only ${Object.keys(SUITES).join(',')}] [--backend ${BACKENDS.join(',')}] [--rounds 5] [--quick] [--json] [--no-build]
npm run bench -- --save [--only ${BUDGETED.join(',')}] [--rounds 5]`

const options = readOptions()
if (options !== undefined) await main(options)

/** @typedef {{ only: string[], backend: string[], rounds: number, quick: boolean, json: boolean, save: boolean, built: boolean }} Options */

/** @returns {Options | undefined} */
function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string' },
        backend: { type: 'string' },
        rounds: { type: 'string', default: '5' },
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        save: { type: 'boolean', default: false },
        'no-build': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) return void console.log(USAGE)
    const rounds = Number(values.rounds)
    if (!Number.isSafeInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds} is no count from 1 on.`)
    const { quick, json, save } = values
    if (save && (quick || values.backend !== undefined)) {
      throw new Error('--save measures in full what the budget names: leave --quick and --backend out.')
    }
    const suites = save ? BUDGETED : Object.keys(SUITES)
    const only = choices('--only', values.only ?? suites.join(','), suites)
    const backend = choices('--backend', values.backend ?? BACKENDS.join(','), BACKENDS)
    return { only, backend, rounds: quick ? Math.min(rounds, 2) : rounds, quick, json, save, built: values['no-build'] }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${USAGE}`)
    process.exitCode = 2
    return undefined
  }
}

/** @param {string} option @param {string} text @param {readonly string[]} known */
function choices(option, text, known) {
  const chosen = text.split(',').map((name) => name.trim())
  const unknown = chosen.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`${option} does not know "${unknown}".`)
  return known.filter((name) => chosen.includes(name))
}

/** @param {Options} options */
async function main({ only, backend, rounds, quick, json, save, built }) {
  const progress = makeProgress()
  progress('building')
  if (!built && !build()) throw new Error('The build failed; nothing was measured.')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  /** @type {import('./results.mjs').Measured} */
  const measured = { figures: {}, plots: {}, seconds: {} }
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) {
    process.on(signal, () => {
      printResults(measured.figures)
      // Leaving so removes the folder, and the guard of the servers ends those.
      process.exit(code)
    })
  }
  progress('starting servers')
  const wanted = backend.filter((name) => !save || BUDGETED_BACKENDS.includes(name))
  const need = /** @type {('postgres' | 'redis')[]} */ (
    wanted.filter((name) => name === 'postgres' || name === 'redis')
  )
  const services = await startServices({ need })
  const machine = {
    node: process.version,
    cpus: cpus().length,
    platform: `${process.platform} ${process.arch}`,
    servers: services.running.map(({ name, about }) => `${name} ${/[\d.]+/.exec(about)?.[0] ?? ''}`.trim()),
  }
  const load = loadavg()[0] ?? 0
  let hangs = false
  /** @type {ReturnType<typeof saveResults> | undefined} */
  let verdict
  try {
    const backends = await openBackends(wanted, folder, services.env)
    const chosen = save ? backends.filter(({ id }) => BUDGETED_BACKENDS.includes(id)) : backends
    for (const name of only) {
      const began = performance.now()
      // A Map is no floor: on memory only loops are compared.
      const fitting = save && name !== 'agent' ? chosen.filter(({ id }) => id !== 'memory') : chosen
      const outcome = await measure(name, { backends: fitting, quick, rounds, progress }, measured)
      measured.seconds[name] = Math.round((performance.now() - began) / 1000)
      hangs ||= outcome === 'hangs'
      if (!process.stderr.isTTY) console.error(`${name}: ${outcome}, ${measured.seconds[name]} s`)
      // After each: what was measured stays when a later one is interrupted.
      if (save) verdict = saveResults({ ...measured, machine, rounds, load: Number(load.toFixed(1)) })
    }
  } finally {
    progress('')
    printResults(measured.figures)
    await services.stop()
  }
  const seconds = Object.values(measured.seconds).reduce((sum, one) => sum + one, 0)
  console.log(
    `Node ${machine.node}, ${machine.cpus} cores; ${rounds} rounds; took ${seconds} s; ` +
      `load ${load.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after.`,
  )
  if (verdict) {
    writeFigures()
    console.log(`bench/results.json is written: ${verdict.met} lines of the budget met, ${verdict.missed} missed.`)
  }
  if (json) console.log(JSON.stringify({ machine, quick, rounds, suites: measured.figures }))
  // What hangs would keep this process from ending.
  if (hangs) process.exit(1)
}

/** @param {readonly string[]} names @param {string} folder @param {Record<string, string>} env */
async function openBackends(names, folder, env) {
  const { makeBackends } = await import('./backends.mjs')
  const known = /** @type {Parameters<typeof makeBackends>[0][]} */ (names)
  const given = (/** @type {string} */ variable) => Boolean(process.env[variable])
  return (await Promise.all(known.map((name) => makeBackends(name, { folder, env, given })))).flat()
}

/**
 * One suite. What fails is said and left out: the others are measured all the same.
 * @param {string} name
 * @param {Omit<Parameters<Suite['run']>[0], 'report' | 'plot'>} options
 * @param {import('./results.mjs').Measured} measured
 * @returns {Promise<'done' | 'left out' | 'hangs'>}
 */
async function measure(name, options, measured) {
  const lines = (measured.figures[name] = /** @type {Line[]} */ ([]))
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve('hangs'), MOST_SUITE_MS)
  })
  const work = async () => {
    const { run } = await /** @type {() => Promise<Suite>} */ (SUITES[name])()
    const plot = (/** @type {string} */ id, /** @type {any} */ points) => (measured.plots[id] = points)
    await run({ ...options, report: (line) => lines.push(line), plot })
    return 'done'
  }
  try {
    const outcome = /** @type {'done' | 'hangs'} */ (await Promise.race([work(), late]))
    if (outcome === 'hangs') {
      console.error(`${name} is given up after ${MOST_SUITE_MS / 60_000} minutes; what it measured until then counts.`)
    }
    return outcome
  } catch (error) {
    const isMissing = error instanceof Error && /** @type {any} */ (error).code === 'ERR_MODULE_NOT_FOUND'
    if (isMissing) console.error(`${name} is left out: ${error.message}. Run npm ci to measure it.`)
    else {
      console.error(`${name} is left out from here on:`, error)
      process.exitCode = 1
    }
    return 'left out'
  } finally {
    clearTimeout(timer)
  }
}

/** @param {Record<string, readonly Line[]>} results */
function printResults(results) {
  for (const [name, lines] of Object.entries(results)) {
    if (lines.length > 0) console.log(`${name}\n\n${renderTable(lines, { colour: process.stdout.isTTY })}\n`)
  }
}
