// @ts-check
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { compare, quantile, state } from '../statistics.mjs'

const { push } = ops

/** @typedef {import('../statistics.mjs').Line} Line */

const PER_THREAD = 50
const AT_ONCE = 32
const DAY = 24 * 60 * 60 * 1000
const TURN = 'a turn of a conversation, about as long as people write them. '.repeat(4)

/**
 * A store of a million checkpoints (a tenth with --quick), half of them of threads that have expired: how long a sweep takes,
 * and what it does to those who append beside it, against the same appends without a sweep.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, progress, report }) {
  const threads = (quick ? 100_000 : 1_000_000) / PER_THREAD
  for (const backend of backends) {
    if (backend.name === 'memory' || backend.name.startsWith('file')) continue
    await backend.prepare?.()
    const url = backend.url('retention')
    const [filling, appending, sweeping] = [await open(url), await open(url), await open(url)]
    try {
      await fill(filling, threads, (done) => progress(`${backend.name}: ${done * PER_THREAD} checkpoints written`))
      progress(`${backend.name}: appending`)
      const alone = await appendUntil(appending, 'alone', (count) => count >= 1000)
      progress(`${backend.name}: appending beside a sweep`)
      let swept = false
      const began = performance.now()
      const sweep = sweeping.sweep().finally(() => {
        swept = true
      })
      const beside = await appendUntil(appending, 'beside', (count) => swept && count >= 100)
      const { threads: removed, entries } = await sweep
      const took = performance.now() - began
      if (removed !== threads / 2) throw new Error(`The sweep removed ${removed} of ${threads / 2} expired threads.`)
      const where = { backend: backend.name }
      report(state({ ...where, what: `sweep ${entries} of ${threads * PER_THREAD} checkpoints`, unit: 'time' }, [took]))
      for (const [name, share] of /** @type {const} */ ([
        ['p50', 0.5],
        ['p99', 0.99],
      ])) {
        const times = { ours: quantile(beside, share), floor: quantile(alone, share) }
        report(compare({ ...where, what: `append beside a sweep, ${name}`, unit: 'time' }, [times]))
      }
    } finally {
      for (const hf of [filling, appending, sweeping]) await hf.close()
    }
    await backend.cleanup?.()
  }
}

/** @param {string} url */
async function open(url) {
  return new Holdfast(new LogStore(await openDriver(url), { cacheBytes: 0 }))
}

/** @param {Holdfast} hf @param {number} threads @param {(done: number) => void} progress */
async function fill(hf, threads, progress) {
  let next = 0
  const write = async () => {
    while (next < threads) {
      const i = next++
      if (i % 1000 === 0) progress(i)
      const log = await hf.log(`t-${i}`)
      const expiresAt = Date.now() + (i % 2 === 0 ? -DAY : DAY)
      const turn = (/** @type {number} */ n) => ({ kind: 'step', ops: [push('said', `${n} ${TURN}`)] })
      const last = {
        ...turn(PER_THREAD),
        index: { status: 'completed', expiresAt, metadata: { 'holdfast.program': 'p' } },
      }
      await log.update(() => [...Array.from({ length: PER_THREAD - 1 }, (_, n) => turn(n)), last])
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, write))
}

/** How long each append took. @param {Holdfast} hf @param {string} name @param {(count: number) => boolean} isOver */
async function appendUntil(hf, name, isOver) {
  const log = await hf.log(name)
  const times = []
  while (!isOver(times.length)) {
    const began = performance.now()
    await log.update(() => [{ kind: 'step', ops: [push('said', TURN)] }])
    times.push(performance.now() - began)
  }
  return times
}
