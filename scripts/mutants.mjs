// @ts-check
// Brings old faults back, one at a time, and shows that the tests notice: a net that catches nothing proves nothing.
//   npm run mutants [-- --only 3,7] [--json] [--no-build]
//   npm run mutants -- --model [--seed 13] [--count 4000]
// Each mutant is a small change of a copy of build, from which dist is made anew, and names the test that knows it; that test passes without the change.
// With --model those that the crash model (test/runtime/simulation) can see are left to it instead: it must break a rule
// within so many histories.
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { build } from './build.mjs'
import { bundle } from './bundle.mjs'
import { MUTANTS } from './mutants/list.mjs'
import { startServices } from './services/index.mjs'
import { printTable } from './table.mjs'

/** @typedef {import('./mutants/list.mjs').Mutant} Mutant */
/** @typedef {{ readonly caught: boolean, readonly by: string }} Verdict */

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    model: { type: 'boolean', default: false },
    seed: { type: 'string', default: '13' },
    count: { type: 'string', default: '4000' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})

const root = fileURLToPath(new URL('..', import.meta.url))
const LIMIT_MS = 10 * 60_000

const only = values.only?.split(',').map((item) => item.trim())
const chosen = MUTANTS.filter(
  ({ item, histories }) => (only === undefined || only.includes(item)) && (!values.model || histories !== undefined),
)
if (chosen.length === 0) {
  const all = MUTANTS.filter(({ histories }) => !values.model || histories !== undefined).map(({ item }) => item)
  console.error(`No mutant${values.model ? ' for the model' : ''} has the number ${values.only}. There are ${all}.`)
  process.exit(2)
}
if (!values['no-build'] && !(await build(root))) process.exit(1)

const need = values.model ? [] : [...new Set(chosen.flatMap(({ needs }) => needs ?? []))]
const services = await startServices({ need, log: (line) => console.error(line) })
const copy = makeCopy()
try {
  process.exitCode = (await isClean()) ? await main() : 1
} finally {
  await services.stop()
}

/** On code that breaks a rule by itself every mutant would count as caught. */
async function isClean() {
  const whole = new Set(chosen.filter(({ name }) => name === undefined).map(({ test }) => test))
  const named = chosen.filter(({ test, name }) => name !== undefined && !whole.has(test))
  const names = named.map(({ name }) => `(${name})`).join('|')
  const checks = values.model
    ? [...new Set(chosen.map(({ histories }) => `${histories}`))].map((kind) => byModel(kind))
    : [byTest([...whole]), byTest([...new Set(named.map(({ test }) => test))], names)]
  for (const check of checks) {
    const { caught, by } = await check()
    if (!caught) continue
    console.error(`The code as it is fails, so no mutant says anything: ${by}`)
    return false
  }
  return true
}

async function main() {
  const rows = []
  let missed = 0
  for (const mutant of chosen) {
    const began = performance.now()
    const { caught, by } = await judge(mutant)
    if (!caught) missed++
    const row = { item: mutant.item, fault: mutant.what, caught: caught ? 'yes' : 'NO', by, seconds: seconds(began) }
    rows.push(row)
    console.error(`${row.item.padEnd(4)} ${caught ? 'caught' : 'MISSED'}  ${mutant.what}: ${by}`)
  }
  if (values.json) console.log(JSON.stringify(rows, undefined, 2))
  else
    printTable(
      ['fault', 'caught', 'seconds', 'by'],
      rows.map((row) => [`${row.item} ${row.fault}`, row.caught, row.seconds, row.by]),
    )
  console.log(`${rows.length - missed} of ${rows.length} mutants caught`)
  return missed > 0 ? 1 : 0
}

/** @param {number} began */
function seconds(began) {
  return Math.round((performance.now() - began) / 100) / 10
}

/** A copy of what was built, in which mutants are made and undone. */
function makeCopy() {
  const made = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  for (const name of [
    'build',
    'dist',
    'test',
    'package.json',
    'tsconfig.json',
    'tsconfig.test.json',
    'vitest.config.ts',
  ]) {
    cpSync(join(root, name), join(made, name), { recursive: true })
  }
  for (const name of ['node_modules', 'scripts', 'src']) symlinkSync(join(root, name), join(made, name))
  return made
}

/** What comes of a mutant. @param {Mutant} mutant @returns {Promise<Verdict>} */
async function judge({ changes, test, name, histories }) {
  const originals = new Map(changes.map(({ file }) => [file, readFileSync(join(copy, 'build', file), 'utf8')]))
  try {
    for (const change of changes) apply(change)
    await bundle(copy)
    return await (values.model ? byModel(`${histories}`) : byTest([test], name))()
  } finally {
    for (const [file, text] of originals) writeFileSync(join(copy, 'build', file), text)
  }
}

/** @param {Mutant['changes'][number]} change */
function apply({ file, find, replace }) {
  const path = join(copy, 'build', file)
  const text = readFileSync(path, 'utf8')
  // A mutant that changes nothing would be taken for one that nobody notices.
  if (text.split(find).length !== 2) {
    throw new Error(
      `build/${file} does not hold this exactly once:\n${find}\nBring scripts/mutants/list.mjs up to date.`,
    )
  }
  writeFileSync(
    path,
    text.replace(find, () => replace),
  )
}

/** @param {string} kind @returns {() => Promise<Verdict>} */
function byModel(kind) {
  return async () => {
    const count = kind === 'deliveries' ? Math.ceil(Number(values.count) / 100) : Number(values.count)
    const main = join(copy, 'test/runtime/simulation/main.ts')
    const args = ['--import', 'tsx', main, '--json', '--kind', kind, '--seed', values.seed, '--count', `${count}`]
    const { output } = await run(args)
    const line = output.split('\n').find((one) => one.startsWith('{'))
    if (line === undefined)
      return { caught: true, by: `the model, which could not go on: ${output.trim().slice(-200)}` }
    const { histories, found } = JSON.parse(line)
    if (found === undefined) return { caught: false, by: `${histories} histories (${kind}), seed ${values.seed}` }
    const rule = found.message.replace(/^Rules were broken:\n/, '').split('\n')[0]
    return { caught: true, by: `${kind}, seed ${values.seed}, history ${histories}: ${rule.slice(0, 90)}` }
  }
}

/** @param {readonly string[]} tests @param {string} [name] @returns {() => Promise<Verdict>} */
function byTest(tests, name) {
  return async () => {
    if (tests.length === 0) return { caught: false, by: 'no test' }
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const filter = name === undefined ? [] : ['-t', name]
    // The first failure is enough. Where one is expected, what never ends need not be waited for as long as elsewhere.
    const limit = tests.length === 1 ? ['--testTimeout', '40000'] : []
    const options = ['--reporter', 'dot', '--bail', '1', '--maxWorkers', '1', ...limit]
    const { code, output } = await run([vitest, 'run', ...options, ...tests, ...filter])
    const plain = stripVTControlCharacters(output)
    if (code === null) return { caught: true, by: `${tests}, which did not end` }
    if (!/Tests\s.*\d+ (?:passed|failed)/.test(plain)) throw new Error(`${tests} ran no test:\n${output.slice(-1000)}`)
    const failed = /FAIL\s+\S+ > (.*)/.exec(plain)?.[1]
    return { caught: code !== 0, by: failed === undefined ? `${tests}` : `${tests}: ${failed.slice(-90)}` }
  }
}

/** @param {readonly string[]} args @returns {Promise<{ code: number | null, output: string }>} */
function run(args) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, ...services.env }
    // A fault may keep a test from ever ending, or from letting go of its servers.
    const limit = { timeout: LIMIT_MS, killSignal: /** @type {const} */ ('SIGKILL') }
    const child = spawn(process.execPath, args, { cwd: copy, env, stdio: ['ignore', 'pipe', 'pipe'], ...limit })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
