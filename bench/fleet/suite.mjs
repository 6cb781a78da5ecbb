// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Holdfast, openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
import { inParallel } from '../log/session.mjs'
import { state } from '../statistics.mjs'
import { asking, makeWoken } from './program.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('../backends.mjs').Backend} Backend */

/** At rest beside an idle worker. */
const RESTING = 500

/**
 * What workers cost and how soon they start, between processes; and what paused threads hold.
 * @param {{ backends: readonly Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, progress, report }) {
  for (const backend of backends.filter(({ id }) => id !== 'memory')) {
    await backend.prepare?.()
    try {
      progress(`${backend.name}: from enqueue until another process starts on it`)
      report(await measureWake(backend, quick ? 5 : 30))
      progress(`${backend.name}: an idle worker`)
      report(await measureIdle(backend, quick ? 50 : RESTING, quick ? 2000 : 10_000))
    } finally {
      await backend.cleanup?.()
    }
  }
  const sqlite = backends.find(({ id }) => id === 'sqlite')
  if (sqlite === undefined) return
  progress(`${sqlite.name}: paused threads`)
  report(await measurePaused(sqlite, quick ? 200 : 10_000))
  await sqlite.cleanup?.()
}

/** One after another, each when the one before is over. @param {Backend} backend @param {number} count */
async function measureWake(backend, count) {
  const url = backend.url('wake')
  const hf = await openHoldfast(url)
  const worker = fork(fileURLToPath(new URL('worker-process.mjs', import.meta.url)), [url])
  const exited = once(worker, 'exit')
  try {
    await Promise.race([
      once(worker, 'message'),
      exited.then(() => Promise.reject(new Error('The worker of the benchmark ended before it was ready.'))),
    ])
    const program = makeWoken(() => {})
    /** @type {number[]} */
    const delays = []
    // The first finds its programs uncompiled.
    for (let id = 0; id <= count; id++) {
      // At any moment between two looks.
      await sleep(50 + ((id * 37) % 200))
      const began = performance.timeOrigin + performance.now()
      const heard = once(worker, 'message')
      await hf.thread(program, `woken ${id}`).enqueue(id)
      const [{ at }] = await heard
      if (id > 0) delays.push(at - began)
    }
    const key = `wake@${backend.id}`
    const what = 'from enqueue until another process starts on it'
    return state({ id: key, backend: backend.name, what, unit: 'time', ...budgetOf(key) }, delays)
  } finally {
    if (worker.connected) worker.send('stop')
    await exited
    await hf.close()
  }
}

/** @param {Backend} backend @param {number} resting @param {number} ms */
async function measureIdle(backend, resting, ms) {
  const driver = await openDriver(backend.url('idle'))
  let calls = 0
  const counting = new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (/** @type {unknown[]} */ ...args) => {
        calls++
        return value.apply(target, args)
      }
    },
  })
  const hf = new Holdfast(new LogStore(counting))
  try {
    const program = makeWoken(() => {})
    const names = Array.from({ length: resting }, (_, i) => `resting ${i}`)
    await inParallel(names, 32, async (name) => void (await hf.thread(program, name).run({ input: 0 })))
    const worker = hf.worker({ programs: [program], handleSignals: false })
    // What it does when it starts is not what it does all day.
    await sleep(Math.min(ms, 1000))
    calls = 0
    await sleep(ms)
    const found = (calls * 1000) / ms
    await worker.stop()
    const key = `idle@${backend.id}`
    const what = `queries of an idle worker beside ${resting} threads at rest, a second`
    return state({ id: key, backend: backend.name, what, unit: 'count', ...budgetOf(key) }, [found])
  } finally {
    await hf.close()
  }
}

/** What keeps a process from ending, beyond what an open store does. @param {Backend} backend @param {number} count */
async function measurePaused(backend, count) {
  const { hf } = await openStore(backend.url('paused'))
  try {
    // Opens whatever opens on first use.
    await hf.thread(asking, 'first').run({ input: null })
    const before = await heldNow()
    const names = Array.from({ length: count }, (_, i) => `paused ${i}`)
    await inParallel(names, 64, async (name) => {
      const { status } = await hf.thread(asking, name).run({ input: null })
      if (status !== 'paused') throw new Error(`A thread that asks ended as ${status}.`)
    })
    const held = Math.max(0, (await heldNow()) - before)
    const id = 'paused.held'
    const what = `processes, timers and connections that ${count.toLocaleString('en-US')} paused threads hold`
    return state({ id, backend: backend.name, what, unit: 'count', ...budgetOf(id) }, [held])
  } finally {
    await hf.close()
  }
}

/** Once what is about to end has ended. */
async function heldNow() {
  await sleep(1500)
  return process.getActiveResourcesInfo().length
}
