// @ts-check
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetProcess, guardProcess } from './guard.mjs'
import { asUser } from './run-as.mjs'

/**
 * @typedef {object} ServerCommand
 * @property {string} name for messages
 * @property {string} command
 * @property {string[]} args
 * @property {string} cwd
 * @property {string} logFile standard output and error are appended here
 * @property {Record<string, string>} [env] added to a minimal environment
 * @property {import('./run-as.mjs').RunAs | undefined} [runAs]
 * @property {NodeJS.Signals} endSignal ends the server at once without harm to what it has promised to keep
 * @property {(server: { pid: number, log(): Promise<string> }) => Promise<boolean>} isReady asked until true
 * @property {number} [timeoutMs]
 */

/**
 * @typedef {object} ServerProcess
 * @property {number} pid
 * @property {() => boolean} isRunning
 * @property {(signal: NodeJS.Signals) => Promise<void>} kill sends the signal; when the signal ends the server, waits for that
 * @property {() => Promise<void>} end the endSignal, and SIGKILL if that does nothing within five seconds
 */

/** A server that did not come up; `code` is EADDRINUSE when somebody else has its port. */
export class ServerStartError extends Error {
  /**
   * @param {string} message
   * @param {string} log
   */
  constructor(message, log) {
    super(`${message}\n${lastLines(log)}`)
    this.name = 'ServerStartError'
    this.log = log
    this.code = /address already in use/i.test(log) ? 'EADDRINUSE' : 'ESERVERSTART'
  }
}

/**
 * Starts a server and waits until it answers.
 * @param {ServerCommand} options
 * @returns {Promise<ServerProcess>}
 */
export async function startServerProcess(options) {
  const { name, endSignal, logFile, timeoutMs = 30_000 } = options
  const logStart = await stat(logFile).then(
    (file) => file.size,
    () => 0,
  )
  const log = () => readFrom(logFile, logStart)
  const child = spawnDetached(options)
  /** @type {Promise<Error | undefined>} */
  const exited = new Promise((resolve) => {
    child.once('error', resolve)
    child.once('exit', () => resolve(undefined))
  })
  const isRunning = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const { pid } = child
  if (pid === undefined) {
    throw new ServerStartError(`${name}: can't run ${options.command}: ${(await exited)?.message}`, '')
  }
  guardProcess(pid, endSignal)
  void exited.then(() => forgetProcess(pid))

  /** @param {NodeJS.Signals} signal */
  async function kill(signal) {
    if (isRunning()) child.kill(signal)
    if (!endsProcess(signal)) return
    // A server that a test froze only sees the signal once it runs again.
    if (isRunning()) child.kill('SIGCONT')
    await referenced(exited)
  }
  async function end() {
    if (!isRunning()) return
    child.kill(endSignal)
    child.kill('SIGCONT')
    const impatience = new AbortController()
    const ended = await Promise.race([
      exited.then(() => true),
      sleep(5000, false, { signal: impatience.signal }).catch(() => true),
    ])
    impatience.abort()
    if (!ended) await kill('SIGKILL')
  }

  const deadline = Date.now() + timeoutMs
  while (!(await options.isReady({ pid, log }))) {
    if (!isRunning()) {
      throw new ServerStartError(`${name} ended while it started (${child.signalCode ?? child.exitCode})`, await log())
    }
    if (Date.now() > deadline) {
      await end()
      throw new ServerStartError(`${name} was not ready within ${timeoutMs} ms`, await log())
    }
    await sleep(20)
  }
  return { pid, isRunning, kill, end }
}

/** @returns {Record<string, string>} */
function minimalEnvironment() {
  const libraries = process.env['LD_LIBRARY_PATH']
  const path = process.env['PATH'] ?? '/usr/bin:/bin'
  return { PATH: path, LC_ALL: 'C', TZ: 'UTC', ...(libraries && { LD_LIBRARY_PATH: libraries }) }
}

/** @param {ServerCommand} options */
function spawnDetached({ command, args, cwd, env, runAs, logFile }) {
  const fd = openSync(logFile, 'a', 0o644)
  try {
    const child = spawn(command, args, {
      cwd,
      // Detached: Ctrl-C in the terminal goes to its foreground processes, and the tests end the servers in order.
      detached: true,
      stdio: ['ignore', fd, fd],
      // Minimal: PGDATA, PGPORT or a locale of the developer's shell would change the server under test.
      env: { ...minimalEnvironment(), ...env },
      ...asUser(runAs),
    })
    // A forgotten server must not keep the test process from ending; the guard ends the server then.
    child.unref()
    return child
  } finally {
    closeSync(fd)
  }
}

/**
 * Unreferenced children don't keep Node alive, so a wait for one needs a timer that does.
 * @template T
 * @param {Promise<T>} promise
 */
async function referenced(promise) {
  const timer = setInterval(() => {}, 1000)
  try {
    return await promise
  } finally {
    clearInterval(timer)
  }
}

/** @param {NodeJS.Signals} signal */
function endsProcess(signal) {
  return ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT'].includes(signal)
}

/**
 * @param {string} file
 * @param {number} position
 */
async function readFrom(file, position) {
  const handle = await open(file, 'r')
  try {
    const { size } = await handle.stat()
    const buffer = Buffer.alloc(Math.max(0, size - position))
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** @param {string} log */
function lastLines(log) {
  return log
    .trimEnd()
    .split('\n')
    .slice(-15)
    .map((line) => `  | ${line}`)
    .join('\n')
}
