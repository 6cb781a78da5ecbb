// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openStore } from '../backends.mjs'
import { budgetOf } from '../budget.mjs'
import { inParallel } from '../log/session.mjs'
import { quantile, state } from '../statistics.mjs'
import { measureHandover } from './handover.mjs'
import { measureDelays, measureTokens } from './latency.mjs'
import { asking, makePrograms, TOKENS } from './program.mjs'
import { measureThroughput } from './throughput.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('../backends.mjs').Backend} Backend */

/** At rest beside an idle worker. */
const RESTING = 500
const LEASE_MS = 2000
/** Where live events reach other processes. */
const SPEAKS = new Set(['postgres', 'redis'])

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
      await reportDelays(backend, quick ? 5 : 30, report)
      if (SPEAKS.has(backend.id)) {
        progress(`${backend.name}: tokens`)
        await reportTokens(backend, quick ? 1 : 3, report)
      }
      progress(`${backend.name}: an idle worker`)
      report(await measureIdle(backend, quick ? 50 : RESTING, quick ? 2000 : 10_000))
      if (backend.id === 'file') continue
      progress(`${backend.name}: workers that leave`)
      await reportHandovers(backend, quick, report)
      for (const workers of [1, 2, 4]) {
        progress(`${backend.name}: short threads, ${workers} workers`)
        await reportThroughput(backend, { threads: quick ? 200 : 3000, workers, places: 20 }, report)
      }
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

/** @param {Backend} backend @param {number} count @param {(line: Line) => void} report */
async function reportDelays(backend, count, report) {
  const delays = await measureDelays(backend.url('wake'), count)
  const what = { wake: 'enqueue', answer: 'an answer', signal: 'a signal' }
  for (const kind of /** @type {const} */ (['wake', 'answer', 'signal'])) {
    const id = `${kind}@${backend.id}`
    const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
    const told = `from ${what[kind]} until another process starts on it`
    report(state({ ...about, id, what: told, ...budgetOf(id) }, delays[kind]))
    report(state({ ...about, id: `${kind}.p99@${backend.id}`, what: `${told}, p99` }, [quantile(delays[kind], 0.99)]))
  }
}

/** @param {Backend} backend @param {boolean} quick @param {(line: Line) => void} report */
async function reportHandovers(backend, quick, report) {
  /** @param {string} id @param {string} what @param {number[]} values */
  const tell = (id, what, values) => {
    const key = `${id}@${backend.id}`
    report(state({ id: key, backend: backend.name, what, unit: 'time', ...budgetOf(key) }, values))
  }
  const told = 'from SIGTERM of a worker until another takes the next step of its threads'
  const stopped = await measureHandover(backend.url('handover'), {
    signal: 'SIGTERM',
    rounds: quick ? 1 : 10,
    leaseMs: LEASE_MS,
  })
  tell('handover', told, stopped)
  tell('handover.max', `${told}, longest`, [Math.max(...stopped)])
  const after = `from kill -9 of a worker until another takes the next step of its threads, lease ${LEASE_MS} ms`
  const killed = await measureHandover(backend.url('takeover'), {
    signal: 'SIGKILL',
    rounds: quick ? 1 : 10,
    leaseMs: LEASE_MS,
  })
  tell('takeover', after, killed)
  tell('takeover.p99', `${after}, p99`, [quantile(killed, 0.99)])
}

/** @param {Backend} backend @param {number} runs @param {(line: Line) => void} report */
async function reportTokens(backend, runs, report) {
  const { delays, cpu, share } = await measureTokens(backend.url('tokens'), runs)
  const tell = (/** @type {string} */ id, /** @type {string} */ what, /** @type {number[]} */ values) =>
    report(state({ id: `tokens.${id}@${backend.id}`, backend: backend.name, what, unit: 'time' }, values))
  tell('delay', 'from a token in one process until another hears it', delays)
  tell('delay.p99', 'from a token in one process until another hears it, p99', [quantile(delays, 0.99)])
  tell('heard', `CPU of the process that emits ${TOKENS} tokens, with a listener elsewhere`, cpu.heard)
  tell('unheard', `CPU of the process that emits ${TOKENS} tokens, without one`, cpu.unheard)
  const what = 'part of the tokens that the listener heard'
  report(state({ id: `tokens.share@${backend.id}`, backend: backend.name, what, unit: 'count' }, [share]))
}

/**
 * @param {Backend} backend @param {{ threads: number, workers: number, places: number }} load
 * @param {(line: Line) => void} report
 */
export async function reportThroughput(backend, load, report) {
  const { threads, workers, places } = load
  const part = `due${threads}w${workers}`
  const { perSecond, cpuMs } = await measureThroughput(backend.url(part), load)
  const many = workers === 1 ? `one worker with ${places} places` : `${workers} workers with ${places} places each`
  const what = `of ${threads.toLocaleString('en-US')} short threads that are due, ${many}`
  const id = `${part}@${backend.id}`
  report(state({ id, backend: backend.name, what: `threads per second ${what}`, unit: 'rate' }, [perSecond]))
  report(state({ id: `${id}.cpu`, backend: backend.name, what: `CPU per thread ${what}`, unit: 'time' }, [cpuMs]))
}

/**
 * @param {Backend} backend @param {number} resting @param {number} ms
 * @param {(url: string, count: number) => Promise<void>} [make] makes those at rest, quicker than by running them
 */
export async function measureIdle(backend, resting, ms, make) {
  const url = backend.url(`idle${resting}`)
  await make?.(url, resting)
  const driver = await openDriver(url)
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
    const { woken: program } = makePrograms(() => {}).programs
    const names = Array.from({ length: make === undefined ? resting : 0 }, (_, i) => `resting ${i}`)
    await inParallel(names, 32, async (name) => void (await hf.thread(program, name).run({ input: 0 })))
    const worker = hf.worker({ programs: [program], handleSignals: false })
    // What it does when it starts is not what it does all day.
    await sleep(Math.min(ms, 1000))
    calls = 0
    await sleep(ms)
    const found = (calls * 1000) / ms
    await worker.stop()
    // The budget is for a store of the usual size.
    const key = make === undefined ? `idle@${backend.id}` : `idle${resting}@${backend.id}`
    const what = `queries of an idle worker beside ${resting.toLocaleString('en-US')} threads at rest, a second`
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
