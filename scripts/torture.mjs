// @ts-check
// Long rounds of real crashes, for hours if you like. `npm test` runs a short version of the same rounds.
//   npm run torture -- --log [--backend sqlite,file,postgres,redis] [--rounds 1000] [--store <url>]
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { printTable, seconds } from './table.mjs'

const { values } = parseArgs({
  options: {
    log: { type: 'boolean', default: false },
    backend: { type: 'string', default: 'sqlite,file,postgres,redis' },
    rounds: { type: 'string', default: '1000' },
    store: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help || !values.log) {
  console.log('npm run torture -- --log [--backend sqlite,file,postgres,redis] [--rounds 1000] [--store <url>]')
  process.exit(values.help ? 0 : 2)
}
const count = Number(values.rounds)
if (!Number.isSafeInteger(count) || count < 1) {
  console.error(`--rounds ${values.rounds} is not a positive whole number.`)
  process.exit(2)
}

execFileSync(process.execPath, [fileURLToPath(new URL('./build.mjs', import.meta.url))], { stdio: 'inherit' })
const { crashRound, fenceRound, openRound, raceRound } = await import('./torture/log-rounds.mjs')
const { startServices } = await import('./services/index.mjs')

const names = values.store ? ['given'] : values.backend.split(',').map((name) => name.trim())
const folder = mkdtempSync(join(tmpdir(), 'holdfast-torture-'))
const need = /** @type {any} */ (names.filter((name) => name === 'postgres' || name === 'redis'))
const services =
  need.length > 0
    ? await startServices({ need, ci: true })
    : { env: /** @type {Record<string, string>} */ ({}), stop: async () => {} }
/** @type {(string | number)[][]} */
const table = []
let failed = false
try {
  for (const name of names) {
    const started = Date.now()
    let acknowledged = 0
    let done = 0
    try {
      for (; done < count; done++) {
        const url = storeUrl(name, done)
        acknowledged += (await crashRound({ url, prefix: `r${done}` })).acknowledged
        if (done % 50 === 0) await fenceRound({ url, thread: `fenced-${done}` })
        if (done % 100 === 0) await raceRound({ url, thread: `raced-${done}`, processes: 3, count: 300 })
        if (done % 100 === 0) await openRound({ url: storeUrl(name, -1 - done) })
        progress(`${name}: ${done + 1} of ${count} kills, ${acknowledged} acknowledged entries, none lost`)
      }
      table.push([name, done, acknowledged, 0, seconds(Date.now() - started)])
    } catch (error) {
      failed = true
      table.push([name, done, acknowledged, 'FAILED', seconds(Date.now() - started)])
      console.error(`\n${name}, round ${done}:`, error)
    }
  }
} finally {
  await services.stop()
  if (failed) console.error(`The stores are kept in ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}
if (process.stderr.isTTY) process.stderr.write('\n')
printTable(['backend', 'kills', 'acknowledged', 'lost', 'took'], table)
process.exitCode = failed ? 1 : 0

/** A new store every hundred rounds, so that it grows but the rounds stay quick. @param {string} name @param {number} round */
function storeUrl(name, round) {
  const part = round < 0 ? `open${-round}` : `s${Math.floor(round / 100)}`
  if (values.store) return values.store
  if (name === 'sqlite') return `sqlite:${join(folder, `${part}.db`)}`
  if (name === 'file') return `file:${join(folder, part)}`
  if (name === 'postgres') return `${services.env.HOLDFAST_TEST_POSTGRES_URL}?schema=torture_${part}`
  if (name === 'redis') return `${services.env.HOLDFAST_TEST_REDIS_URL}?prefix=torture_${part}`
  throw new Error(`There is no backend "${name}". Use sqlite, file, postgres or redis.`)
}

/** @param {string} line */
function progress(line) {
  if (process.stderr.isTTY) process.stderr.write(`\r${line}\u001b[K`)
  else if (/: (1|\d*[05]0) of/.test(line)) console.error(line)
}
