// @ts-check
import { makeAppend, makeIndex } from '#src/testing/entries.js'

/** @typedef {{ idle: number, madeMs: number, emptyMs: number[], idleMs: number[], found: number }} IdlePoll */

const DUE = 5
const POLLS = 30
const HOUR = 3_600_000

/** What a worker asks for. @param {number | 'now'} now @returns {import('holdfast/driver').DueQuery} */
export function workerQuery(now) {
  return { programs: ['idle'], now, limit: 100, reserveMs: 0 }
}

/** @param {import('holdfast/driver').Driver} driver @param {number} now */
async function look(driver, now) {
  if (driver.takeDue === undefined) throw new Error('It has no index of what is due.')
  return driver.takeDue(workerQuery(now))
}

/**
 * Measures a worker's look at the index with five due threads and nobody else, then with so many more that do not concern
 * it: a third of them without a time to wake, a third asleep for an hour and more, and a third due of another program.
 * @param {import('holdfast/driver').Driver} driver @param {number} count @param {(done: number) => void} [onProgress]
 * @returns {Promise<IdlePoll>}
 */
export async function pollAmongIdle(driver, count, onProgress) {
  const now = Date.now()
  const batch = Math.min(500, driver.capabilities.maxBatch)
  /** @param {readonly (readonly [name: string, wakeAt: number | null, program?: string])[]} threads */
  const make = async (threads) => {
    const appends = threads.map(([thread, wakeAt, program = 'idle']) => {
      const status = wakeAt === null ? 'completed' : wakeAt > now ? 'waiting' : 'active'
      const metadata = { 'holdfast.program': program, 'holdfast.version': '1.0.0' }
      const index = makeIndex({ status, wakeAt, metadata, createdAt: now, updatedAt: now })
      return makeAppend(/** @type {any} */ ({ tenant: 'default', thread, branch: 'main' }), null, { index })
    })
    const results = await driver.append(appends)
    if (results.some(({ status }) => status !== 'appended')) throw new Error('A thread was there already.')
  }
  await make(Array.from({ length: DUE }, (_, i) => [`due-${i}`, now - 1000]))
  const emptyMs = await measure(driver, now)
  const began = performance.now()
  for (let i = 0; i < count; i += batch) {
    const part = Array.from({ length: Math.min(batch, count - i) }, (_, n) => i + n)
    await make(
      part.map((n) =>
        n % 3 === 0 ? [`due-elsewhere-${n}`, 0, 'other'] : [`idle-${n}`, n % 3 === 1 ? null : now + HOUR + n],
      ),
    )
    onProgress?.(Math.min(count, i + batch))
  }
  const madeMs = Math.round(performance.now() - began)
  const idleMs = await measure(driver, now)
  const { heads } = await look(driver, now)
  return { idle: count, madeMs, emptyMs, idleMs, found: heads.length }
}

/** @param {import('holdfast/driver').Driver} driver @param {number} now */
async function measure(driver, now) {
  const times = []
  for (let i = 0; i < POLLS; i++) {
    const began = performance.now()
    await look(driver, now)
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)
}
