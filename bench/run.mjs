// @ts-check
// Measures side by side with the plainest code on the same backend, and shows the ratios beside their budgets. It
// judges nothing: a busy machine is no failure.
//   npm run bench -- [--only log,store,runtime,langgraph,agent,cpu,pipeline,security,server,retention,cache] [--backend sqlite,postgres,redis,file,memory] [--rounds 5]
//                    [--quick] [--json]
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from '../scripts/build.mjs'
import { startServices } from '../scripts/services/index.mjs'
import { makeProgress, renderTable } from './report.mjs'

/** @typedef {import('./statistics.mjs').Line} Line */
/** @typedef {{ run: typeof import('./log/suite.mjs').run }} Suite */

/** Loaded when they run: they import what the build makes. @type {Record<string, () => Promise<Suite>>} */
const SUITES = {
  log: () => import('./log/suite.mjs'),
  store: () => import('./store/suite.mjs'),
  runtime: () => import('./runtime/suite.mjs'),
  langgraph: () => import('./langgraph/suite.mjs'),
  agent: () => import('./agent/suite.mjs'),
  cpu: () => import('./cpu/suite.mjs'),
  pipeline: () => import('./pipeline/suite.mjs'),
  security: () => import('./security/suite.mjs'),
  server: () => import('./server/suite.mjs'),
  retention: () => import('./retention/suite.mjs'),
  cache: () => import('./cache/suite.mjs'),
}
const BACKENDS = ['sqlite', 'postgres', 'redis', 'file', 'memory']
const USAGE = `npm run bench -- [--only ${Object.keys(SUITES).join(',')}] [--backend ${BACKENDS.join(',')}] [--rounds 5] [--quick] [--json]`

const options = readOptions()
if (options !== undefined) await main(options)

/** @typedef {{ only: string[], backend: string[], rounds: number, quick: boolean, json: boolean }} Options */

/** @returns {Options | undefined} */
function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', default: Object.keys(SUITES).join(',') },
        backend: { type: 'string', default: BACKENDS.join(',') },
        rounds: { type: 'string', default: '5' },
        quick: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) return void console.log(USAGE)
    const rounds = Number(values.rounds)
    if (!Number.isSafeInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds} is no count from 1 on.`)
    const only = choices('--only', values.only, Object.keys(SUITES))
    const backend = choices('--backend', values.backend, BACKENDS)
    return {
      only,
      backend,
      rounds: values.quick ? Math.min(rounds, 2) : rounds,
      quick: values.quick,
      json: values.json,
    }
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
async function main({ only, backend, rounds, quick, json }) {
  const progress = makeProgress()
  progress('building')
  if (!build()) throw new Error('The build failed; nothing was measured.')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  /** @type {Record<string, Line[]>} */
  const results = {}
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) {
    process.on(signal, () => {
      printResults(results)
      // Leaving so removes the folder, and the guard of the servers ends those.
      process.exit(code)
    })
  }
  const given = (/** @type {string} */ variable) => Boolean(process.env[variable])
  progress('starting servers')
  const need = /** @type {('postgres' | 'redis')[]} */ (
    backend.filter((name) => name === 'postgres' || name === 'redis')
  )
  const services = await startServices({ need })
  const began = performance.now()
  const load = loadavg()[0] ?? 0
  try {
    const { makeBackends } = await import('./backends.mjs')
    const known = /** @type {Parameters<typeof makeBackends>[0][]} */ (backend)
    const backends = (
      await Promise.all(known.map((name) => makeBackends(name, { folder, env: services.env, given })))
    ).flat()
    for (const name of only) {
      const lines = (results[name] = /** @type {Line[]} */ ([]))
      const { run } = await /** @type {() => Promise<Suite>} */ (SUITES[name])()
      await run({ backends, quick, rounds, progress, report: (line) => lines.push(line) })
    }
  } finally {
    // Also after a failure: what was measured until then was measured.
    progress('')
    printResults(results)
    await services.stop()
  }
  const machine = {
    node: process.version,
    cpus: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    servers: services.running.map(({ name, about }) => `${name} ${about}`),
    loadBefore: load,
    loadAfter: loadavg()[0] ?? 0,
    seconds: Math.round((performance.now() - began) / 1000),
  }
  console.log(
    `Node ${machine.node}, ${machine.cpus} × ${machine.cpu}; ${rounds} rounds; took ${machine.seconds} s; ` +
      `load ${machine.loadBefore.toFixed(1)} before, ${machine.loadAfter.toFixed(1)} after.`,
  )
  if (json) console.log(JSON.stringify({ machine, quick, rounds, suites: results }))
}

/** @param {Record<string, Line[]>} results */
function printResults(results) {
  for (const [name, lines] of Object.entries(results)) {
    if (lines.length > 0) console.log(`${name}\n\n${renderTable(lines, { colour: process.stdout.isTTY })}\n`)
  }
}
