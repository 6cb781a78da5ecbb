// The one gate, cheapest check first; stops at the first failure.
//   node scripts/verify.mjs [arguments for the tests]
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { printTable, seconds } from './table.mjs'

const CHECKS = [
  { name: 'format', run: ['biome', 'format'] },
  { name: 'lint', run: ['oxlint', '--deny-warnings'] },
  { name: 'layers', run: ['node', 'scripts/check-layers.mjs'] },
  { name: 'build', run: ['node', 'scripts/build.mjs'] },
  { name: 'types', run: ['tsc', '-p', 'tsconfig.test.json'] },
  { name: 'types of pages', run: ['tsc', '-p', 'examples/chat/pages'] },
  { name: 'unused', run: ['knip'] },
  { name: 'exports: publint', run: ['publint', '--strict'] },
  { name: 'exports: attw', run: ['attw', '--pack', '.', '--profile', 'esm-only'] },
  { name: 'tests', run: ['node', 'scripts/test.mjs', '--no-build', ...process.argv.slice(2)] },
]

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const bin = join(root, 'node_modules', '.bin')
const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
const rows = []
let failed

for (const { name, run } of CHECKS) {
  if (failed) {
    rows.push([name, 'not run', ''])
    continue
  }
  console.log(`\n── ${name}`)
  const started = performance.now()
  const [command, ...args] = run
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: 'inherit' })
  if (error) console.error(error.message)
  if (status !== 0) failed = name
  rows.push([name, status === 0 ? 'ok' : 'FAILED', seconds(performance.now() - started)])
}

console.log()
printTable(['check', 'result', 'time'], rows)
if (failed) {
  console.error(`\n${failed} failed`)
  process.exitCode = 1
}
