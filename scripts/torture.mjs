// @ts-check
// Long rounds of real crashes, for hours if you like. `npm test` runs a short version of the same rounds.
//   npm run torture -- --log [--rounds 1000]                     writers of one log
//   npm run torture -- --sessions 1000 [--workers 3] [--kill-every 1500] [--lease 2000]   workers and whole programs
//     --save also writes what was counted to bench/torture.json, from where `npm run bench -- --save` takes it
//   npm run torture -- --fleet [--sessions 200] [--workers 3] [--kill-every 2000] [--lease 2000]   the demo's conversations
//   npm run torture -- --takeover [--rounds 30] [--lease 2000]   how soon a killed worker's threads go on
//   npm run torture -- --documents 5000 [--workers 3] [--concurrency 20] [--lease 2000]    a pipeline (SQLite, Postgres)
//   npm run torture -- --idle 100000                             what a worker's look costs among threads at rest
// For all: [--backend sqlite,file,postgres,redis] [--store <url>] [--seed 1] [--json]
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { printTable } from './table.mjs'

const USAGE = `npm run torture -- --log [--rounds 1000]
npm run torture -- --sessions 1000 [--workers 3] [--kill-every <ms>] [--lease <ms>] [--concurrency 20] [--save]
npm run torture -- --fleet [--sessions 200] [--workers 3] [--kill-every <ms>] [--lease <ms>]
npm run torture -- --takeover [--rounds 30] [--lease <ms>]
npm run torture -- --documents 5000 [--workers 3] [--concurrency 20] [--lease <ms>]
npm run torture -- --idle 100000
  for all: [--backend sqlite,file,postgres,redis] [--store <url>] [--seed 1] [--json]`

const { values } = parseArgs({
  options: {
    log: { type: 'boolean', default: false },
    sessions: { type: 'string' },
    fleet: { type: 'boolean', default: false },
    takeover: { type: 'boolean', default: false },
    idle: { type: 'string' },
    documents: { type: 'string' },
    backend: { type: 'string' },
    rounds: { type: 'string' },
    workers: { type: 'string', default: '3' },
    'kill-every': { type: 'string' },
    lease: { type: 'string', default: '2000' },
    concurrency: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    store: { type: 'string' },
    json: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const { documents } = values
const modes = [
  values.log,
  values.sessions !== undefined || values.fleet,
  values.takeover,
  values.idle !== undefined,
  documents !== undefined,
].filter(Boolean).length
if (values.help || modes !== 1) {
  console.log(USAGE)
  process.exit(values.help ? 0 : 2)
}

/** @param {'sessions' | 'idle' | 'documents' | 'rounds' | 'workers' | 'kill-every' | 'lease' | 'concurrency' | 'seed'} name @param {string} [otherwise] */
function count(name, otherwise) {
  const given = values[name] ?? otherwise
  const number = Number(given)
  if (Number.isSafeInteger(number) && number >= 1) return number
  console.error(`--${name} ${given} is not a positive whole number.`)
  process.exit(2)
}

// A pipeline commits its rows with its progress, which two backends can.
const asked =
  values.backend ??
  (documents !== undefined ? 'sqlite,postgres' : values.fleet ? 'sqlite,postgres,redis' : 'sqlite,file,postgres,redis')
const names = values.store ? ['given'] : asked.split(',').map((name) => name.trim())
const unknown = names.find((name) => !['given', 'sqlite', 'file', 'postgres', 'redis'].includes(name))
if (unknown !== undefined) {
  console.error(`There is no backend "${unknown}". Use sqlite, file, postgres or redis.`)
  process.exit(2)
}
const settings = {
  rounds: count('rounds', values.log ? '1000' : '30'),
  sessions: count('sessions', '200'),
  idle: count('idle', '1'),
  documents: count('documents', '1'),
  workers: count('workers'),
  killEveryMs: count('kill-every', values.fleet ? '2000' : '1500'),
  leaseMs: count('lease'),
  concurrency: count('concurrency'),
  seed: count('seed'),
}

execFileSync(process.execPath, [fileURLToPath(new URL('./build.mjs', import.meta.url))], {
  // What is printed as JSON must be nothing else.
  stdio: values.json ? ['ignore', 'ignore', 'inherit'] : 'inherit',
})
const { runMode } = await import('./torture/modes.mjs')
const { startServices } = await import('./services/index.mjs')

const folder = mkdtempSync(join(tmpdir(), 'holdfast-torture-'))
const need = /** @type {any} */ (names.filter((name) => name === 'postgres' || name === 'redis'))
const services =
  need.length > 0
    ? await startServices({ need, ci: true })
    : { env: /** @type {Record<string, string>} */ ({}), stop: async () => {} }
const mode = values.log
  ? 'log'
  : values.fleet
    ? 'fleet'
    : values.takeover
      ? 'takeover'
      : values.idle
        ? 'idle'
        : documents
          ? 'documents'
          : 'sessions'
/** @type {import('./torture/modes.mjs').ModeResult[]} */
const results = []
try {
  for (const name of names) {
    const result = await runMode(mode, { ...settings, backend: name, storeUrl: (part) => storeUrl(name, part) })
    if (result.error) console.error(`\n${name}, with --seed ${settings.seed}:`, result.error)
    else
      console.error(
        `\n${name}: ${Object.entries(result.row)
          .map(([column, value]) => `${column} ${value}`)
          .join(', ')}`,
      )
    results.push(result)
  }
} finally {
  await services.stop()
  if (results.some(({ error }) => error) || results.length < names.length) {
    console.error(`The stores are kept in ${folder}`)
  } else rmSync(folder, { recursive: true, force: true })
}
if (process.stderr.isTTY) process.stderr.write('\n')
if (values.save && mode === 'sessions') saveCounts()
if (values.json) {
  console.log(JSON.stringify(results.map(({ error, ...rest }) => ({ ...rest, ok: !error }))))
} else {
  const head = Object.keys(results.find(({ error }) => !error)?.row ?? {})
  printTable(
    ['backend', ...head, 'result'],
    results.map(({ backend, row, error }) => [
      backend,
      ...head.map((column) => row[column] ?? '-'),
      error ? 'FAILED' : 'ok',
    ]),
  )
}
process.exitCode = results.some(({ error }) => error) ? 1 : 0

/** For the budget of `npm run bench`: a round that found anything lost or repeated has failed. */
function saveCounts() {
  const counts = Object.fromEntries(
    results.map(({ backend, row, error }) => [
      backend,
      {
        sessions: error ? 0 : settings.sessions,
        kills: Number(row['kills'] ?? 0),
        effects: Number(row['effects'] ?? 0),
        faults: error ? 1 : 0,
      },
    ]),
  )
  // Backends that were not in this run keep what was counted for them: one of them takes long enough.
  const file = new URL('../bench/torture.json', import.meta.url)
  const before = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {}
  writeFileSync(file, `${JSON.stringify({ ...before, ...counts }, null, 2)}\n`)
}

/** @param {string} name @param {string} part */
function storeUrl(name, part) {
  if (values.store) return values.store
  if (name === 'sqlite') return `sqlite:${join(folder, `${part}.db`)}`
  if (name === 'file') return `file:${join(folder, part)}`
  if (name === 'postgres') return `${services.env.HOLDFAST_TEST_POSTGRES_URL}?schema=torture_${part}`
  return `${services.env.HOLDFAST_TEST_REDIS_URL}?prefix=torture_${part}`
}
