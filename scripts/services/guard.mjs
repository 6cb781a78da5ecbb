// @ts-check
/**
 * The promise that no server outlives the process that started it.
 *
 * A process that is killed with SIGKILL runs no handler, so handlers can't keep this promise. A small detached
 * process holds the read end of a pipe instead: however this process ends (return, `process.exit`, a failed test,
 * Ctrl-C, SIGTERM, SIGHUP, SIGKILL, an ended worker thread), the pipe closes, and the guard ends the servers and
 * removes their folders. There is one path for all endings, so there are no signal handlers to compete with the
 * test runner's.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** @typedef {{ watch: number, started: string, signal: string }} WatchProcess */
/** @typedef {WatchProcess | { forget: number } | { folder: string } | { forgetFolder: string }} GuardMessage */

/** @type {import('node:stream').Writable | undefined} */
let pipe

/** @param {GuardMessage} message */
function tell(message) {
  pipe ??= startGuard()
  pipe.write(`${JSON.stringify(message)}\n`)
}

function startGuard() {
  const script = fileURLToPath(new URL('./guard-process.mjs', import.meta.url))
  const child = spawn(process.execPath, [script], {
    // Detached: a session of its own, so that Ctrl-C in the terminal doesn't end the guard with the guarded.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
    // NODE_OPTIONS may carry loaders or coverage hooks of the test runner.
    env: { ...process.env, NODE_OPTIONS: '', NODE_V8_COVERAGE: '' },
  })
  child.unref()
  const stdin = child.stdin
  // A guard that someone killed must not crash the tests with EPIPE.
  stdin.on('error', () => {
    pipe = undefined
  })
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
  return stdin
}

/**
 * When a process began, as the kernel tells it: a pid alone may by then belong to somebody else's process.
 * Empty where there is no /proc, and for a process that has ended but that nobody has waited for yet.
 * @param {number} pid
 */
export function processStartTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The command name, in parentheses, may itself hold spaces and parentheses; field 22 counts from its end.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? '' : (fields[19] ?? '')
  } catch {
    return ''
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal the gentlest signal that ends this kind of server at once
 */
export function guardProcess(pid, signal) {
  tell({ watch: pid, started: processStartTime(pid), signal })
}

/** @param {number} pid */
export function forgetProcess(pid) {
  tell({ forget: pid })
}

/** @param {string} folder removed when this process has ended */
export function guardFolder(folder) {
  tell({ folder })
}

/** @param {string} folder */
export function forgetFolder(folder) {
  tell({ forgetFolder: folder })
}
