// @ts-check
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../backends.mjs'
import { makeTurns } from '../turns.mjs'

/** @typedef {import('../turns.mjs').Turn} Turn */
/** @typedef {{ update: import('holdfast').Claim['update'] }} Writer */

const LEASE_MS = 60_000

/**
 * Opens a thread as a worker does: reads it and takes it.
 * @param {import('holdfast').Holdfast} hf
 * @param {string} thread
 */
export async function takeThread(hf, thread) {
  const log = await hf.log(thread)
  return log.claim({ owner: 'bench', ms: LEASE_MS })
}

/** One checkpoint. @param {Writer} writer @param {Turn} turn */
export function saveTurn(writer, { ops }) {
  return writer.update(() => [{ kind: 'step', ops }])
}

/** @param {Writer} writer @param {readonly Turn[]} turns */
export async function saveTurns(writer, turns) {
  for (const turn of turns) await saveTurn(writer, turn)
}

/** So many saves until the code that all of them take is compiled as in a process that runs all day. */
const WARM_SAVES = 60_000
const WARM_TURNS = 20

/** Saves to memory what the backends are measured with: the first of them would pay for compiling. */
export async function warmUp() {
  const { hf } = await openStore('memory:')
  const turns = makeTurns(1, WARM_TURNS)
  const threads = Array.from({ length: WARM_SAVES / WARM_TURNS }, (_, i) => `warm-${i}`)
  await inParallel(threads, 64, async (name) => saveTurns(await takeThread(hf, name), turns))
  await hf.close()
}

/**
 * The bytes that a session of these turns stores, save by save, keyframes included: what a floor has to write.
 * @param {readonly Turn[]} turns
 * @returns {Promise<Buffer[]>}
 */
export async function storedBytes(turns) {
  const { hf, driver } = await openStore('memory:')
  const claim = await takeThread(hf, 'session')
  await saveTurns(claim, turns)
  const entries = await driver.read(claim.log.key, 1, turns.length)
  await hf.close()
  return entries.map(({ header, body }) => Buffer.concat([header, body]))
}

/**
 * Works off a list with so many at a time.
 * @template T
 * @param {readonly T[]} list
 * @param {number} atOnce
 * @param {(item: T) => Promise<void>} work
 */
export async function inParallel(list, atOnce, work) {
  const left = [...list].reverse()
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (let item = left.pop(); item !== undefined; item = left.pop()) await work(item)
    }),
  )
}

const RESOLUTION_MS = 1

/**
 * How long the event loop was kept from other work meanwhile, in milliseconds.
 * @param {() => Promise<void>} work
 */
export async function loopDelayDuring(work) {
  const monitor = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  monitor.enable()
  // Its first tick only starts the clock: without one, a piece of work that blocks from its start would not be seen.
  await sleep(5 * RESOLUTION_MS)
  await work()
  // Work that never lets go of the loop is seen by the tick after it, and only by that.
  await sleep(5 * RESOLUTION_MS)
  monitor.disable()
  // It records the time between two ticks of its timer, which is the resolution when nothing is in the way.
  const beyond = (/** @type {number} */ nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  return { p99: beyond(monitor.percentile(99)), longest: beyond(monitor.max) }
}

/**
 * The same for a loop that is as busy, but in pieces of a tenth of a millisecond: what the machine alone does to it.
 * @param {number} ms
 */
export function loopDelayOfMachine(ms) {
  return loopDelayDuring(async () => {
    const end = performance.now() + ms
    while (performance.now() < end) {
      const pause = performance.now() + 0.1
      while (performance.now() < pause);
      await new Promise((resolve) => setImmediate(resolve))
    }
  })
}
