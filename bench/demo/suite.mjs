// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { budgetOf } from '../budget.mjs'
import { state } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const SESSIONS = 847
const LEASE_MS = 2000
/** What /proc counts in, on every Linux. */
const TICKS_PER_SECOND = 100

/**
 * `npm run demo`: workers that are killed throughout, on SQLite. What it took of the processors in all its processes, how often
 * writers met, and how soon a killed worker's conversations went on.
 * @param {{ quick: boolean, folder: string, progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ quick, folder: parent, progress, report }) {
  const sessions = quick ? 10 : SESSIONS
  progress(`the demo with ${sessions} conversations`)
  const folder = mkdtempSync(join(parent, 'demo-'))
  const file = join(folder, 'agents.db')
  const day = { sessions, workers: 3, killEveryMs: 5000, leaseMs: LEASE_MS, latencyMs: 150, seed: 847 }
  try {
    const before = childrenCpuMs()
    const child = fork(
      fileURLToPath(new URL('day-process.mjs', import.meta.url)),
      [JSON.stringify({ ...day, store: `sqlite:${file}`, file, folder })],
      { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    )
    const exited = once(child, 'exit')
    const [{ report: found, counters }] = await Promise.race([
      once(child, 'message'),
      exited.then(([code]) => Promise.reject(new Error(`The demo ended with code ${code} before it reported.`))),
    ])
    await exited
    if (found.lost > 0 || found.doubled > 0) throw new Error(`The demo went wrong: ${JSON.stringify(found.problems)}`)
    const after = childrenCpuMs()
    /** @param {string} id @param {string} what @param {Line['unit']} unit @param {number} value */
    const tell = (id, what, unit, value) => report(state({ id, backend: 'demo', what, unit, ...budgetOf(id) }, [value]))
    if (before !== undefined && after !== undefined) {
      tell('demo.cpu', 'CPU per turn, all processes', 'time', (after - before) / found.turns)
    }
    const runs = counters['holdfast.runs.started'] ?? 0
    if (runs > 0) tell('demo.conflicts', 'conflicts per run', 'count', (counters['holdfast.conflicts'] ?? 0) / runs)
    if (found.takeoverMsP99 !== null) {
      tell('demo.takeover', `takeover after kill -9, p99, lease ${LEASE_MS} ms`, 'time', found.takeoverMsP99)
    }
    tell('demo.rate', 'turns per second', 'rate', found.turnsPerSecond)
    tell('demo.bytes', 'bytes per turn, size of the file', 'bytes', found.bytesPerTurn)
    tell('demo.kills', 'workers killed', 'count', found.kills)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Of children that have ended, and of theirs. Linux tells; others don't. */
function childrenCpuMs() {
  if (!existsSync('/proc/self/stat')) return undefined
  // The name of the process comes second, in parentheses, and may hold anything.
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return ((Number(fields[13]) + Number(fields[14])) * 1000) / TICKS_PER_SECOND
}
