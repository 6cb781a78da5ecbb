// @ts-check
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median } from './statistics.mjs'

/**
 * One of those that are compared, in a process of its own, as it is in production: nobody pays for the garbage that
 * another one left, or for code that was compiled for both.
 * @typedef {object} Contender
 * @property {string} name
 * @property {(method: string, ...args: unknown[]) => Promise<{ ms: number, value: any }>} ask calls a method of what the
 *   module's `open` returned, and says how long that took there
 * @property {() => Promise<void>} close
 */

/**
 * @param {string} name
 * @param {string} module what exports `open(options)`, which returns the contender's methods, `close` among them
 * @param {unknown} options plain data
 * @returns {Promise<Contender>}
 */
export async function startContender(name, module, options) {
  const child = fork(fileURLToPath(new URL('contender-process.mjs', import.meta.url)), [
    JSON.stringify({ module, options }),
  ])
  /** @type {{ resolve: (reply: any) => void, reject: (error: Error) => void } | undefined} */
  let asked
  let ended = false
  const exit = new Promise((resolve) => child.once('exit', resolve))
  child.on('message', (/** @type {any} */ reply) => {
    if ('failed' in reply) asked?.reject(new Error(`${name}: ${reply.failed}`))
    else asked?.resolve(reply)
  })
  child.once('exit', (code, signal) => {
    ended = true
    asked?.reject(new Error(`The process of ${name} ended with ${signal ?? code}.`))
  })
  const answer = () =>
    new Promise((resolve, reject) => {
      asked = { resolve, reject }
      if (ended) reject(new Error(`The process of ${name} has ended.`))
    })
  const ask = (/** @type {string} */ method, /** @type {unknown[]} */ ...args) => {
    const reply = answer()
    if (!ended) child.send({ method, args })
    return reply
  }
  const leave = async () => {
    if (child.connected) child.disconnect()
    await exit
  }
  const close = async () => {
    await ask('close').catch(() => {})
    await leave()
  }
  try {
    await answer()
  } catch (error) {
    await leave()
    throw error
  }
  return { name, ask, close }
}

/** A round asks each for at least this long: what takes milliseconds is slow for the first few after a pause. */
const ROUND_MS = 1000

/**
 * Milliseconds of one call: the median of as many as fill a round, of which the slowest contenders make one.
 * @param {Contender} contender
 * @param {string} method
 * @param {(i: number) => unknown[]} args
 */
export async function askForRound({ ask }, method, args) {
  const began = performance.now()
  /** @type {number[]} */
  const times = []
  do times.push((await ask(method, ...args(times.length))).ms)
  while (performance.now() - began < ROUND_MS)
  return median(times)
}
