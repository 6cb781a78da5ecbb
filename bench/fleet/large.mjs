// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { makeAppend, makeIndex } from '#src/testing/entries.js'
import { state } from '../statistics.mjs'
import { machineMs, makePrograms } from './program.mjs'
import { measureIdle, reportThroughput } from './suite.mjs'
import { startWorker } from './worker-child.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('../backends.mjs').Backend} Backend */

const AT_REST = 100_000
const FOREIGN = 20_000
const PAGE = 100

/**
 * What large stores cost: a worker among a hundred thousand threads, behind the backlog of a program that it does not have, and
 * with fifteen thousand threads due. Takes minutes for each backend.
 * @param {{ backends: readonly Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, progress, report }) {
  const scale = quick ? 100 : 1
  for (const backend of backends.filter(({ id }) => ['sqlite', 'postgres', 'redis'].includes(id))) {
    await backend.prepare?.()
    try {
      progress(`${backend.name}: ${AT_REST / scale} threads at rest`)
      await reportCrowd(backend, AT_REST / scale, report)
      progress(`${backend.name}: idle workers`)
      for (const resting of [0, AT_REST / scale]) {
        report(await measureIdle(backend, resting, quick ? 2000 : 20_000, makeResting))
      }
      progress(`${backend.name}: a foreign backlog`)
      await reportBacklog(backend, FOREIGN / scale, report)
      progress(`${backend.name}: many short threads`)
      await reportThroughput(backend, { threads: 15_000 / scale, workers: 1, places: 20 }, report)
    } finally {
      await backend.cleanup?.()
    }
  }
}

/** Threads that are at rest, or due, as the index has them. @param {string} url @param {number} count @param {{ program: string, wakeAt: number | null }} what */
async function makeThreads(url, count, { program, wakeAt }) {
  const driver = await openDriver(url)
  const batch = Math.min(500, driver.capabilities.maxBatch)
  const now = Date.now()
  for (let i = 0; i < count; i += batch) {
    const appends = Array.from({ length: Math.min(batch, count - i) }, (_, n) => {
      const metadata = { 'holdfast.program': program, 'holdfast.version': '1.0.0', number: i + n }
      const status = wakeAt === null ? 'completed' : 'active'
      const index = makeIndex({ status, wakeAt, metadata, createdAt: now + i + n, updatedAt: now + i + n })
      const log = /** @type {any} */ ({ tenant: 'default', thread: `${program}-${i + n}`, branch: 'main' })
      return makeAppend(log, null, { index })
    })
    for (const { status } of await driver.append(appends)) if (status !== 'appended') throw new Error(status)
  }
  await driver.close()
}

/** @param {string} url @param {number} count */
const makeResting = (url, count) => makeThreads(url, count, { program: 'woken', wakeAt: null })

/** @param {Backend} backend @param {number} count @param {(line: Line) => void} report */
async function reportCrowd(backend, count, report) {
  const url = backend.url('crowd')
  await makeResting(url, count)
  const among = `among ${count.toLocaleString('en-US')} threads at rest`
  const tell = (
    /** @type {string} */ id,
    /** @type {string} */ what,
    /** @type {Line['unit']} */ unit,
    /** @type {number} */ value,
  ) =>
    report(state({ id: `crowd.${id}@${backend.id}`, backend: backend.name, what: `${what} ${among}`, unit }, [value]))

  const child = fork(fileURLToPath(new URL('start-process.mjs', import.meta.url)), [url])
  const [{ ms, rss }] = await once(child, 'message')
  await once(child, 'exit')
  tell('start', 'opening a store and the first look of a worker', 'time', ms)
  tell('memory', 'memory of a process with a worker', 'bytes', rss)

  const hf = await openHoldfast(url)
  const timed = async (/** @type {() => Promise<unknown>} */ work) => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  /** @type {string | undefined} */
  let cursor
  const next = async () => {
    const page = await hf.threads({ limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
    if (page.threads.length !== Math.min(PAGE, count)) throw new Error(`A page has ${page.threads.length} threads.`)
    cursor = page.cursor
  }
  tell('page', `the first page of ${PAGE} threads`, 'time', await timed(next))
  if (cursor !== undefined) tell('next', `the next page of ${PAGE} threads`, 'time', await timed(next))
  const one = await timed(async () => {
    const { threads } = await hf.threads({ metadata: { number: Math.floor(count / 2) } })
    if (threads.length !== 1) throw new Error(`${threads.length} threads have this number.`)
  })
  tell('metadata', 'one thread by its metadata', 'time', one)
  tell('sweep', 'a sweep that finds nothing', 'time', await timed(() => hf.sweep()))
  await hf.close()
}

/** Its own thread starts behind the backlog of a program that it lacks. @param {Backend} backend @param {number} count @param {(line: Line) => void} report */
async function reportBacklog(backend, count, report) {
  const url = backend.url('backlog')
  const hf = await openHoldfast(url)
  await makeThreads(url, count, { program: 'foreign', wakeAt: 0 })
  const worker = await startWorker(url)
  try {
    const { woken } = makePrograms(() => {}).programs
    const delays = []
    for (let i = 0; i < 10; i++) {
      const heard = worker.heard()
      const began = machineMs()
      await hf.thread(woken, `own ${i}`).enqueue(i)
      delays.push((await heard).at - began)
    }
    const what = `from enqueue until the first step, beside ${count.toLocaleString('en-US')} due threads of a program that the worker lacks`
    report(state({ id: `backlog@${backend.id}`, backend: backend.name, what, unit: 'time' }, delays))
  } finally {
    await worker.stop()
    await hf.close()
  }
}
