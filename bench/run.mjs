// @ts-check
// Measures side by side with the plainest code on the same backend, and with LangGraph.js and DBOS, and shows the ratios
// beside their budgets. It judges nothing: a busy machine is no failure.
//   npm run bench -- [--only log,runtime,agent,…] [--backend sqlite,postgres,redis,file,memory] [--rounds 5] [--quick]
//                    [--json] [--no-build]
//   npm run bench -- --save    measures what bench/budget.mjs has goals for, writes bench/results.json, and draws the
//                              figures of README and docs from it; with --only, just these suites anew
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from '../scripts/build.mjs'
import { writeFigures } from '../scripts/docs-figures.mjs'
import { startServices } from '../scripts/services/index.mjs'
import { makeProgress, renderTable } from './report.mjs'
import { saveResults } from './results.mjs'
import { BUDGETED, ON_REQUEST, SUITES } from './suites.mjs'

/** @typedef {import('./statistics.mjs').Line} Line */

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
    const usual = suites.filter((name) => !ON_REQUEST.includes(name))
    const only = choices('--only', values.only ?? usual.join(','), suites)
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
  if (!built && !(await build())) throw new Error('The build failed; nothing was measured.')
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
  // Those that were set before: they name servers that are not ours.
  const given = ['HOLDFAST_TEST_POSTGRES_URL', 'HOLDFAST_TEST_REDIS_URL'].filter((name) => process.env[name])
  const need = /** @type {('postgres' | 'redis')[]} */ (
    backend.filter((name) => name === 'postgres' || name === 'redis')
  )
  const services = await startServices({ need })
  const machine = {
    node: process.version,
    cpus: cpus().length,
    platform: `${process.platform} ${process.arch}`,
    servers: services.running.map(({ name, about }) => `${name} ${/[\d.]+/.exec(about)?.[0] ?? ''}`.trim()),
  }
  const load = loadavg()[0] ?? 0
  /** @type {ReturnType<typeof saveResults> | undefined} */
  let verdict
  try {
    for (const suite of only) {
      const began = performance.now()
      const order = { suite, backends: backend, folder, servers: services.env, given, quick, budgeted: save, rounds }
      const outcome = await measure(order, measured, progress)
      measured.seconds[suite] = Math.round((performance.now() - began) / 1000)
      if (outcome === 'done' && measured.figures[suite]?.length === 0) {
        console.error(`${suite} measured nothing: no backend that it needs is here.`)
      }
      if (!process.stderr.isTTY) console.error(`${suite}: ${outcome}, ${measured.seconds[suite]} s`)
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
}

/**
 * One suite. What fails or hangs is said and left out: the others are measured all the same.
 * @param {import('./suite-process.mjs').Order} order
 * @param {import('./results.mjs').Measured} measured
 * @param {(text: string) => void} progress
 * @returns {Promise<'done' | 'left out' | 'given up'>}
 */
function measure(order, measured, progress) {
  const { suite } = order
  const lines = (measured.figures[suite] = /** @type {Line[]} */ ([]))
  const child = fork(fileURLToPath(new URL('suite-process.mjs', import.meta.url)), [JSON.stringify(order)])
  return new Promise((resolve) => {
    /** @type {'done' | 'left out' | 'given up' | undefined} */
    let outcome
    const timer = setTimeout(() => {
      outcome = 'given up'
      console.error(`${suite} is given up after ${MOST_SUITE_MS / 60_000} minutes; what it measured until then counts.`)
      child.kill('SIGKILL')
    }, MOST_SUITE_MS)
    child.on('message', (message) => {
      const news = /** @type {import('./suite-process.mjs').News} */ (message)
      if ('progress' in news) progress(news.progress)
      else if ('line' in news) lines.push(news.line)
      else if ('plot' in news) measured.plots[news.plot] = news.points
      else {
        outcome = 'done' in news ? 'done' : 'left out'
        if ('missing' in news) console.error(`${suite} is left out: ${news.missing}. Run npm ci to measure it.`)
        if ('failed' in news) fail(`${suite} is left out from here on: ${news.failed}`)
        child.disconnect()
      }
    })
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      if (outcome === undefined) fail(`${suite} is left out from here on: its process ended with ${signal ?? code}.`)
      resolve(outcome ?? 'left out')
    })
  })
}

/** @param {string} message */
function fail(message) {
  console.error(message)
  process.exitCode = 1
}

/** @param {Record<string, readonly Line[]>} results */
function printResults(results) {
  for (const [name, lines] of Object.entries(results)) {
    if (lines.length > 0) console.log(`${name}\n\n${renderTable(lines, { colour: process.stdout.isTTY })}\n`)
  }
}
