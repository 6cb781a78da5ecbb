// @ts-check
import { LogStore } from 'holdfast'

/** @typedef {{ idle: number, madeMs: number, emptyMs: number[], idleMs: number[], found: number }} IdlePoll */

const DUE = 5
const POLLS = 30
const HOUR = 3_600_000

/** What a worker asks for. @param {number} now @returns {import('holdfast').HeadQuery} */
export function workerQuery(now) {
  return { wakeBefore: now, lease: 'free', order: 'updated', direction: 'asc', limit: 100 }
}

/**
 * Measures a worker's look at the index with five due threads and nobody else, then with so many more at rest: half of
 * them without a time to wake, half asleep for an hour and more.
 * @param {import('holdfast').Driver} driver @param {number} count @param {(done: number) => void} [onProgress]
 * @returns {Promise<IdlePoll>}
 */
export async function pollAmongIdle(driver, count, onProgress) {
  const store = new LogStore(driver)
  const now = Date.now()
  const key = (/** @type {string} */ thread) =>
    /** @type {import('holdfast').LogKey} */ (/** @type {unknown} */ ({ tenant: 'default', thread, branch: 'main' }))
  /** @param {string} thread @param {number | null} wakeAt */
  const make = async (thread, wakeAt) => {
    const status = wakeAt === null ? 'completed' : wakeAt > now ? 'waiting' : 'active'
    await (await store.open(key(thread))).update(() => [{ kind: 'input', index: { status, wakeAt } }])
  }
  for (let i = 0; i < DUE; i++) await make(`due-${i}`, now - 1000)
  const emptyMs = await measure(driver, now)
  const began = performance.now()
  for (let i = 0; i < count; i += 500) {
    const part = Array.from({ length: Math.min(500, count - i) }, (_, n) => i + n)
    await Promise.all(part.map((n) => make(`idle-${n}`, n % 2 === 0 ? null : now + HOUR + n)))
    onProgress?.(Math.min(count, i + 500))
  }
  const madeMs = Math.round(performance.now() - began)
  const idleMs = await measure(driver, now)
  const { heads } = await driver.heads(workerQuery(now))
  return { idle: count, madeMs, emptyMs, idleMs, found: heads.length }
}

/** @param {import('holdfast').Driver} driver @param {number} now */
async function measure(driver, now) {
  const times = []
  for (let i = 0; i < POLLS; i++) {
    const began = performance.now()
    await driver.heads(workerQuery(now))
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)
}
