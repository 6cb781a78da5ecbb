// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast } from 'holdfast'
import { makePrograms } from './program.mjs'
import { startWorker } from './worker-child.mjs'

const QUEUED_AT_ONCE = 500
const LOOK_MS = 5

/**
 * Short threads that are all due when the workers begin. Returns how many a second were started, and the CPU that the workers
 * took for each.
 * @param {string} url @param {{ threads: number, workers: number, places: number }} options
 */
export async function measureThroughput(url, { threads, workers, places }) {
  const hf = await openHoldfast(url)
  const { short } = makePrograms(() => {}).programs
  const items = Array.from({ length: threads }, (_, i) => ({ program: short, thread: `t-${i}`, input: i }))
  for (let i = 0; i < threads; i += QUEUED_AT_ONCE) {
    for (const { error } of await hf.enqueue(items.slice(i, i + QUEUED_AT_ONCE))) if (error) throw error
  }
  await hf.close()
  const starting = Array.from({ length: workers }, () => startWorker(url, { places }))
  // From when the first is there: starting a process is no part of it.
  await Promise.race(starting)
  const began = performance.now()
  const fleet = await Promise.all(starting)
  while (fleet.reduce((sum, { started }) => sum + started(), 0) < threads) await sleep(LOOK_MS)
  const ms = performance.now() - began
  const cpu = await Promise.all(fleet.map(({ stop }) => stop()))
  const cpuMs = cpu.reduce((/** @type {number} */ sum, one) => sum + (one ?? 0), 0)
  return { perSecond: (threads * 1000) / ms, cpuMs: cpuMs / threads }
}
