// @ts-check
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { startChaosProxy } from 'holdfast/testing'
import { alternate, compare, median, state } from '../statistics.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const TURNS = 100
const TURN = 'a turn of a conversation, about as long as people write them. '.repeat(4)
/** Long, so that no pause of this machine turns a hit into a miss. */
const TIMEOUT_MS = 5000
/** Each way. */
const DELAY_MS = 2.5

const talk = flow(
  { name: 'talk', version: '1.0.0' },
  /** @param {import('holdfast').FlowContext} ctx @param {string} said */
  (ctx, said) => ctx.step('reply', () => `${said} ${TURN}`),
)

/**
 * What a cache in Redis saves in front of Postgres, for a process that has not seen the thread before: loading it, and a
 * whole run of one step; with Postgres near, with Postgres 5 ms away, and with both 5 ms away. And how many loads of the
 * demo it serves.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const postgres = backends.find(({ name }) => name === 'Postgres')
  // The setting that a cache needs least of: one that is lost costs time.
  const redis = backends.findLast(({ name }) => name.startsWith('Redis'))
  if (postgres === undefined || redis === undefined) return
  await redis.prepare?.()
  const [url, cache] = [postgres.url('cache'), redis.url('cache')]
  await fill(url, cache, progress)
  const places = [
    { name: 'Postgres near', far: [] },
    { name: 'Postgres 5 ms away', far: ['postgres'] },
    { name: 'both 5 ms away', far: ['postgres', 'redis'] },
  ]
  for (const { name, far } of places) {
    const proxies = await Promise.all(
      [url, cache].map((each, i) => (far.includes(['postgres', 'redis'][i] ?? '') ? delay(each) : undefined)),
    )
    const plainUrl = proxies[0]?.url(url) ?? url
    const plain = await open(plainUrl)
    const cached = await open(plainUrl, proxies[1]?.url(cache) ?? cache)
    try {
      const loads = []
      const runs = []
      for (let round = 0; round <= rounds; round++) {
        progress(`${name}, round ${round} of ${rounds}`)
        const count = quick ? 50 : 200
        const load = await alternate(
          count,
          () => cached.store.borrow(KEY),
          () => plain.store.borrow(KEY),
        )
        // Each on a thread of its own, or the one would make the other's cache outdated.
        const run = await alternate(
          count / 5,
          () => cached.hf.thread(talk, 'run-cached').run({ input: 'hello' }),
          () => plain.hf.thread(talk, 'run-plain').run({ input: 'hello' }),
        )
        if (round === 0) continue
        loads.push({ ours: median(load.ours), floor: median(load.floor) })
        runs.push({ ours: median(run.ours), floor: median(run.floor) })
      }
      const about = { backend: name, unit: /** @type {const} */ ('time') }
      report(compare({ ...about, what: `load ${TURNS} turns, p50, against Postgres alone` }, loads))
      report(compare({ ...about, what: 'run of one step, p50, against Postgres alone' }, runs))
      const { hits, misses } = cached.loads
      report(
        state({ ...about, what: 'loads that the cache served, of 100', unit: 'count' }, [
          (100 * hits) / (hits + misses),
        ]),
      )
    } finally {
      await Promise.all([plain.hf.close(), cached.hf.close()])
      await Promise.all(proxies.map((proxy) => proxy?.close()))
    }
  }
  await playDemo(
    postgres.url('demo'),
    `${redis.url('demo')}&timeoutMs=${TIMEOUT_MS}`,
    quick ? 20 : 100,
    progress,
    report,
  )
  await postgres.cleanup?.()
  await redis.cleanup?.()
}

const KEY = /** @type {import('holdfast').LogKey} */ ({ tenant: 'default', thread: 'long', branch: 'main' })

/** @param {string} url @param {string} [cache] */
async function open(url, cache) {
  const driver = await openDriver(url, cache === undefined ? {} : { cache: { url: cache, timeoutMs: TIMEOUT_MS } })
  const loads = { hits: 0, misses: 0 }
  const { recent } = driver
  const counting = new Proxy(driver, {
    get(target, name) {
      if (name === 'recent' && recent) {
        return async (/** @type {Parameters<typeof recent>} */ ...given) => {
          const found = await recent(...given)
          loads[found ? 'hits' : 'misses']++
          return found
        }
      }
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  // Nothing is kept in memory: each load is that of a process which has not seen the thread.
  const store = new LogStore(counting, { cacheBytes: 0 })
  return { store, hf: new Holdfast(store), loads }
}

/** @param {string} url @param {string} cache @param {(text: string) => void} progress */
async function fill(url, cache, progress) {
  progress('writing a conversation')
  const { hf } = await open(url, cache)
  const thread = hf.thread(talk, 'long')
  for (let i = 0; i < TURNS; i++) await thread.run({ input: `turn ${i}` })
  await hf.close()
}

/** @param {string} url */
async function delay(url) {
  const { hostname, port } = new URL(url)
  const proxy = await startChaosProxy({ target: { host: hostname, port: Number(port) } })
  proxy.slow({ delayMs: DELAY_MS })
  return proxy
}

/**
 * @param {string} store @param {string} cache @param {number} sessions
 * @param {(text: string) => void} progress @param {(line: Line) => void} report
 */
async function playDemo(store, cache, sessions, progress, report) {
  progress(`the demo with ${sessions} conversations`)
  const { runDemo } = await import('../../dist/demo/run-demo.js')
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-demo-'))
  try {
    const day = { sessions, workers: 3, killEveryMs: 5000, leaseMs: 2000, latencyMs: 150, seed: 847 }
    const found = await runDemo({ ...day, store, cache, tenant: 'demo', folder })
    if (found.cache === null) throw new Error('The demo loaded nothing.')
    const { hits, loads, outdated } = found.cache
    const about = { backend: 'demo', unit: /** @type {const} */ ('count') }
    report(state({ ...about, what: `loads that the cache served, of 100 (${loads} in all)` }, [(100 * hits) / loads]))
    report(state({ ...about, what: 'outdated, of 100 that it served' }, [(100 * outdated) / Math.max(hits, 1)]))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
