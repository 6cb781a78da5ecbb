// @ts-check
import { Worker } from 'node:worker_threads'
import { appendTaskOf, packAppends } from '#src/drivers/sqlite/parcel/append-parcel.js'
import { transferOf } from '#src/drivers/sqlite/parcel/parcel.js'
import { openStore } from '../backends.mjs'
import { saveTurn, takeThread } from '../log/session.mjs'
import { compare } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('#src/log/contract.js').Append} Append */

/**
 * What it costs to hand a batch of appends to SQLite's thread: packed by hand as the driver does it, against leaving it
 * to structured clone. CPU of both threads; nothing is stored. Runs once however many backends are asked for.
 * @param {{ quick: boolean, rounds: number, progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ quick, rounds, progress, report }) {
  const appends = await makeAppends(64)
  const worker = new Worker(new URL('./receiver.mjs', import.meta.url))
  try {
    for (const size of [1, 8, 64]) {
      const batch = appends.slice(0, size)
      const count = Math.ceil((quick ? 2000 : 20_000) / size)
      const times = []
      for (let round = 0; round < 2 + rounds; round++) {
        progress(`parcels of ${size}, round ${round + 1} of ${2 + rounds}`)
        const ours = await spend(worker, count, () => {
          const parcel = packAppends(batch)
          return [{ parcel }, transferOf(parcel)]
        })
        const floor = await spend(worker, count, () => [{ tasks: batch.map(appendTaskOf) }, []])
        // The first rounds compile.
        if (round >= 2) times.push({ ours: ours / size, floor: floor / size })
      }
      const what = `hand ${size === 1 ? 'one append' : `${size} appends`} to the thread, CPU each`
      report(compare({ backend: 'SQLite', what, unit: 'time' }, times))
    }
  } finally {
    await worker.terminate()
  }
}

/**
 * CPU milliseconds of the process for one message, both threads together.
 * @param {Worker} worker
 * @param {number} count
 * @param {() => readonly [unknown, ArrayBuffer[]]} make
 */
async function spend(worker, count, make) {
  const before = process.cpuUsage()
  for (let i = 0; i < count; i++) {
    const answered = new Promise((resolve) => worker.once('message', resolve))
    const [message, transfer] = make()
    worker.postMessage(message, transfer)
    await answered
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / count
}

/** What a driver is asked to append: a turn of a conversation each. @param {number} count @returns {Promise<Append[]>} */
async function makeAppends(count) {
  const { hf, driver } = await openStore('memory:')
  /** @type {Append[]} */
  const appends = []
  const append = driver.append.bind(driver)
  driver.append = (batch) => {
    appends.push(...batch)
    return append(batch)
  }
  const claim = await takeThread(hf, 'parcels')
  appends.length = 0
  for (const turn of makeTurns(1, count)) await saveTurn(claim, turn)
  await hf.close()
  return appends
}
