// Builds, starts the servers that the chosen tests need, runs vitest, and prints what each area took.
//   node scripts/test.mjs [--full] [--no-build] [vitest filters and options]
// An area is a direct subfolder of test/; files beside them are the area "repo".
import { spawn } from 'node:child_process'
import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { readFileSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from './build.mjs'
import { guardFolder } from './services/guard.mjs'
import { printTable, seconds } from './table.mjs'

/** Server -> the variable through which a test reaches it; a test that names the variable gets the server. */
const SERVICES = {
  postgres: 'HOLDFAST_TEST_POSTGRES_URL',
  redis: 'HOLDFAST_TEST_REDIS_URL',
  'redis-cluster': 'HOLDFAST_TEST_REDIS_CLUSTER_URLS',
  pgbouncer: 'HOLDFAST_TEST_PGBOUNCER_URL',
  chromium: 'HOLDFAST_TEST_CHROMIUM',
  s3: 'HOLDFAST_TEST_S3_URL',
}

/** Several times what the tests leave behind until they end: below that the disk is used. */
const ROOM_BYTES = 8e9

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const ours = ['--full', '--no-build']
const args = process.argv.slice(2)
const vitestArgs = args.filter((arg) => !ours.includes(arg))
const scratch = makeScratch()
// Stores, servers and processes of the tests are put there.
process.env.TMPDIR = scratch
const started = performance.now()

let vitest
let interrupted
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    interrupted ??= signal
    stopVitest()
  })
}

process.exitCode = await main().finally(() => rmSync(scratch, { recursive: true, force: true }))

/**
 * A folder that goes with this process, in memory where there is plenty: killed processes lose nothing that the system
 * holds, and on a disk every flush of every store is waited for. The full run uses the disk.
 */
function makeScratch() {
  const folder = mkdtempSync(
    join(!args.includes('--full') && hasRoom('/dev/shm') ? '/dev/shm' : tmpdir(), 'holdfast-test-'),
  )
  guardFolder(folder)
  // As the system's: servers and processes of other users have folders in it.
  chmodSync(folder, 0o1777)
  return folder
}

function hasRoom(memory) {
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    return Math.min(bavail * bsize, freemem()) > ROOM_BYTES
  } catch {
    return false
  }
}

async function main() {
  if (!args.includes('--no-build') && !(await build(root))) {
    console.error('\nThe build failed; no test was run.')
    return 1
  }
  const built = performance.now()
  const services = await openServices()
  const ready = performance.now()
  const reportFile = join(scratch, 'report.json')
  let code
  try {
    if (!interrupted) code = await runVitest({ ...process.env, ...services.env, HOLDFAST_TEST_REPORT: reportFile })
  } finally {
    await services.stop()
  }
  if (interrupted) return { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[interrupted]
  const report = existsSync(reportFile)
    ? JSON.parse(readFileSync(reportFile, 'utf8'))
    : { files: [], unhandledErrors: 0 }
  return printReport(report, code, { build: built - started, services: ready - built }) ? 0 : 1
}

async function openServices() {
  const module = join(root, 'scripts', 'services', 'index.mjs')
  const need = neededServices()
  if (need.length === 0 || !existsSync(module)) return { env: {}, stop: async () => {} }
  const { startServices } = await import(pathToFileURL(module).href)
  return startServices({ need, log: (line) => console.log(line) })
}

/** The servers whose variables the chosen test files, or files they import, read. */
function neededServices() {
  const chosen = filters()
  const seen = new Set()
  let text = ''
  const read = (file) => {
    if (seen.has(file) || !existsSync(file)) return
    seen.add(file)
    const content = readFileSync(file, 'utf8')
    text += content
    for (const [, specifier] of content.matchAll(/from\s+'(\.[^']+)'/g)) {
      read(resolve(dirname(file), specifier.replace(/\.js$/, '.ts')))
    }
  }
  for (const file of testFiles()) {
    const path = relative(root, file).split(sep).join('/')
    if (chosen.length === 0 || chosen.some((filter) => path.includes(filter))) read(file)
  }
  return Object.keys(SERVICES).filter((service) => text.includes(SERVICES[service]))
}

/** The path filters among vitest's arguments; without one, every test file is chosen. */
function filters() {
  const paths = vitestArgs.filter((arg) => /^(\.\/)?test(\/|$)/.test(arg) || arg.endsWith('.ts'))
  return paths.map((arg) => arg.replace(/^\.\//, '').replace(/:\d+$/, ''))
}

function testFiles() {
  return readdirSync(join(root, 'test'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
}

function runVitest(env) {
  if (args.includes('--full')) env.HOLDFAST_TEST_FULL = '1'
  const bin = join(root, 'node_modules', 'vitest', 'vitest.mjs')
  // A group of its own, so that one signal reaches the workers too and none outlives this process.
  vitest = spawn(process.execPath, [bin, 'run', ...vitestArgs], {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  })
  return new Promise((done, fail) => {
    vitest.once('error', fail)
    vitest.once('exit', (code) => done(code ?? 1))
  })
}

function stopVitest() {
  if (vitest?.pid === undefined || vitest.exitCode !== null || vitest.signalCode !== null) return
  const { pid } = vitest
  const signalGroup = (signal) => {
    try {
      process.kill(-pid, signal)
    } catch {
      // Already gone.
    }
  }
  signalGroup('SIGTERM')
  setTimeout(() => signalGroup('SIGKILL'), 5_000).unref()
}

/** Prints the table and the closing line; returns whether tests ran and all of them are good. */
function printReport(report, code, { build: buildMs, services: servicesMs }) {
  const areas = new Map()
  const total = { passed: 0, failed: 0, skipped: 0 }
  for (const file of report.files) {
    const parts = relative(join(root, 'test'), file.path).split(sep)
    const name = parts.length > 1 ? parts[0] : 'repo'
    const area = areas.get(name) ?? { files: 0, ms: 0, passed: 0, failed: 0, skipped: 0 }
    areas.set(name, area)
    area.files++
    area.ms += file.ms
    for (const outcome of Object.keys(total)) {
      area[outcome] += file[outcome]
      total[outcome] += file[outcome]
    }
  }
  // An error outside any test (a rejected promise nobody awaited, a worker that died) is a failure like any other.
  let outside = report.unhandledErrors
  if (code !== 0 && total.failed + outside === 0) outside = 1
  total.failed += outside

  console.log()
  printTable(
    ['area', 'files', 'passed', 'failed', 'skipped', 'time'],
    [...areas]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, area]) => [name, area.files, area.passed, area.failed, area.skipped, seconds(area.ms)]),
  )
  if (outside > 0) console.log(`\nErrors outside of tests, shown above: ${outside}`)
  console.log(
    `\nbuild ${seconds(buildMs)}, servers ${seconds(servicesMs)}, in all ${seconds(performance.now() - started)};` +
      ` several files run at a time, so the times of areas add up to more\n`,
  )
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
  console.log(`${total.passed} passed, ${total.failed} failed${skipped}`)
  return total.failed === 0 && total.passed > 0
}
