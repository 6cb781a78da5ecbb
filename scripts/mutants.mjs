// @ts-check
// Brings old faults back, one at a time, and shows that the tests notice: a net that catches nothing proves nothing.
//   npm run mutants [-- --only 3,7] [--seed 13] [--count 4000] [--json]
// Each mutant is a small change of a copy of dist. Most are left to the crash model (test/runtime/simulation), which
// must break a rule within so many histories; the others name the test that knows them.
import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { build } from './build.mjs'
import { MUTANTS } from './mutants/list.mjs'
import { printTable } from './table.mjs'

/** @typedef {import('./mutants/list.mjs').Mutant} Mutant */
/** @typedef {{ readonly caught: boolean, readonly by: string }} Verdict */

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seed: { type: 'string', default: '13' },
    count: { type: 'string', default: '4000' },
    json: { type: 'boolean', default: false },
  },
})

const root = fileURLToPath(new URL('..', import.meta.url))

const only = values.only?.split(',').map((item) => item.trim())
const chosen = MUTANTS.filter(({ item }) => only === undefined || only.includes(item))
if (chosen.length === 0) {
  console.error(`No mutant has the number ${values.only}. There are ${[...new Set(MUTANTS.map(({ item }) => item))]}.`)
  process.exit(2)
}
if (!build(root)) process.exit(1)

// On code that breaks a rule by itself every mutant would count as caught.
const rows = []
for (const kind of new Set(chosen.flatMap(({ by }) => ('histories' in by ? [by.histories] : [])))) {
  const { caught, by } = await judge({ item: '', what: '', changes: [], by: { histories: kind } })
  if (!caught) continue
  console.error(`The code as it is breaks a rule, so no mutant says anything: ${by}`)
  process.exit(1)
}
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
process.exitCode = missed > 0 ? 1 : 0

/** @param {number} began */
function seconds(began) {
  return Math.round((performance.now() - began) / 100) / 10
}

/**
 * A copy of what was built, changed as the mutant says, and what comes of it.
 * @param {Mutant} mutant @returns {Promise<Verdict>}
 */
async function judge(mutant) {
  const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutant-'))
  try {
    for (const name of ['dist', 'test', 'package.json', 'tsconfig.json', 'tsconfig.test.json', 'vitest.config.ts']) {
      cpSync(join(root, name), join(copy, name), { recursive: true })
    }
    for (const name of ['node_modules', 'scripts', 'src']) symlinkSync(join(root, name), join(copy, name))
    for (const change of mutant.changes) apply(copy, change)
    return 'test' in mutant.by ? await byTest(copy, mutant.by) : await byModel(copy, mutant.by.histories)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

/** @param {string} copy @param {Mutant['changes'][number]} change */
function apply(copy, { file, find, replace }) {
  const path = join(copy, 'dist', file)
  const text = readFileSync(path, 'utf8')
  // A mutant that changes nothing would be taken for one that nobody notices.
  if (text.split(find).length !== 2) {
    throw new Error(
      `dist/${file} does not hold this exactly once:\n${find}\nBring scripts/mutants/list.mjs up to date.`,
    )
  }
  writeFileSync(
    path,
    text.replace(find, () => replace),
  )
}

/** @param {string} copy @param {string} kind @returns {Promise<Verdict>} */
async function byModel(copy, kind) {
  const count = kind === 'deliveries' ? Math.ceil(Number(values.count) / 100) : Number(values.count)
  const main = join(copy, 'test/runtime/simulation/main.ts')
  const args = ['--import', 'tsx', main, '--json', '--kind', kind, '--seed', values.seed, '--count', `${count}`]
  const { output } = await run(copy, args)
  const line = output.split('\n').find((one) => one.startsWith('{'))
  if (line === undefined) return { caught: true, by: `the model, which could not go on: ${output.trim().slice(-200)}` }
  const { histories, found } = JSON.parse(line)
  if (found === undefined) return { caught: false, by: `${histories} histories (${kind}), seed ${values.seed}` }
  const rule = found.message.replace(/^Rules were broken:\n/, '').split('\n')[0]
  return { caught: true, by: `${kind}, seed ${values.seed}, history ${histories}: ${rule.slice(0, 90)}` }
}

/** @param {string} copy @param {{ readonly test: string, readonly name?: string }} by @returns {Promise<Verdict>} */
async function byTest(copy, { test, name }) {
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const filter = name === undefined ? [] : ['-t', name]
  const { code, output } = await run(copy, [vitest, 'run', '--reporter', 'dot', test, ...filter])
  const ran = /Tests\s.*\d+ (?:passed|failed)/.test(stripVTControlCharacters(output))
  if (!ran) throw new Error(`${test} ran no test:\n${output.slice(-1000)}`)
  return { caught: code !== 0, by: name === undefined ? test : `${test}: ${name}` }
}

/** @param {string} cwd @param {readonly string[]} args @returns {Promise<{ code: number | null, output: string }>} */
function run(cwd, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
