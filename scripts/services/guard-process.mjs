// @ts-check
/**
 * The other end of guard.mjs: reads what to watch from standard input, and cleans up when the input ends.
 * Started by guard.mjs, never by hand.
 */
import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { processStartTime } from './guard.mjs'

const graceMs = 3000

/** @type {Map<number, { started: string, signal: NodeJS.Signals }>} */
const processes = new Map()
/** @type {Set<string>} */
const folders = new Set()

for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  // Whoever ends the tests by process name or by terminal also reaches the guard; it leaves when its work is done.
  process.on(name, () => {})
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line)
  if ('watch' in message) processes.set(message.watch, { started: message.started, signal: message.signal })
  if ('forget' in message) processes.delete(message.forget)
  if ('folder' in message) folders.add(message.folder)
  if ('forgetFolder' in message) folders.delete(message.forgetFolder)
}

for (const [pid, { signal }] of running()) {
  send(pid, signal)
  // A server that a test had frozen with SIGSTOP only sees the signal once it runs again.
  send(pid, 'SIGCONT')
}
const deadline = Date.now() + graceMs
while (running().length > 0 && Date.now() < deadline) await sleep(20)
for (const [pid] of running()) send(pid, 'SIGKILL')

for (const folder of folders) {
  // A wrong path here would be costly: only folders that the services made themselves.
  if (!basename(folder).startsWith('holdfast-')) continue
  // Retried: the children of a killed Postgres write for a moment longer.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }).catch(() => {})
}

function running() {
  return [...processes].filter(([pid, { started }]) => isAlive(pid) && processStartTime(pid) === started)
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals} signal
 */
function send(pid, signal) {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended between the look and the signal.
  }
}
