// @ts-check
import { randomBytes } from 'node:crypto'
import { flow, Holdfast, redactCommon } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { alternate, compare, quantile } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'
import { saveTurn, takeThread } from '../log/session.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

const masters = { k1: randomBytes(32) }

/**
 * What is measured against a store without any of it.
 * @type {readonly { what: string, options: import('holdfast').LogStoreOptions, atMost?: number }[]}
 */
const KINDS = [
  { what: 'save with HMAC, p50', options: { keys: { current: 'k1', masters, encrypt: false } }, atMost: 1.15 },
  { what: 'save encrypted, p50', options: { keys: { current: 'k1', masters } }, atMost: 1.3 },
  { what: 'save anchored, p50', options: { anchors: { write: async () => {} } } },
]

/**
 * What keys, anchors and redaction cost per save of one turn, against the same save without.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const turns = makeTurns(1, quick ? 100 : 300)
  for (const backend of backends) {
    await backend.prepare?.()
    for (const [number, { what, options, atMost }] of KINDS.entries()) {
      // Stores of their own: a tenant with keys takes nothing without.
      const ours = await open(backend.url(`secure-${number}`), options)
      const plain = await open(backend.url(`plain-${number}`), {})
      const p50 = []
      try {
        for (let round = 0; round <= rounds; round++) {
          progress(`${backend.name}: ${what}, ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`)
          const [mine, other] = [await takeThread(ours, `save-${round}`), await takeThread(plain, `save-${round}`)]
          const turn = (/** @type {number} */ i) => /** @type {import('../turns.mjs').Turn} */ (turns[i])
          const times = await alternate(
            turns.length,
            (i) => saveTurn(mine, turn(i)),
            (i) => saveTurn(other, turn(i)),
          )
          if (round > 0) p50.push({ ours: quantile(times.ours, 0.5), floor: quantile(times.floor, 0.5) })
        }
      } finally {
        await ours.close()
        await plain.close()
      }
      const budget = atMost === undefined ? {} : { budget: { atMost } }
      report(compare({ backend: backend.name, what, unit: 'time', ...budget }, p50))
    }
    report(await measureRedaction({ backend, turns: turns.slice(0, 100), rounds, progress }))
    await backend.cleanup?.()
  }
}

const keep = flow({ name: 'keep', version: '1.0.0' }, (ctx, input) => ctx.step('keep', () => input))

/**
 * A run of one step whose input and result are a turn, with the usual redactions and without.
 * @param {{ backend: import('../backends.mjs').Backend, turns: readonly import('../turns.mjs').Turn[], rounds: number,
 *   progress: (text: string) => void }} options
 */
async function measureRedaction({ backend, turns, rounds, progress }) {
  const ours = await open(backend.url('redacted'), { redact: redactCommon() })
  const plain = await open(backend.url('unredacted'), {})
  const p50 = []
  try {
    for (let round = 0; round <= rounds; round++) {
      progress(`${backend.name}: redaction, ${round === 0 ? 'warming up' : `round ${round} of ${rounds}`}`)
      const run = (/** @type {Holdfast} */ hf) => (/** @type {number} */ i) =>
        hf.thread(keep, `${round}-${i}`).run({ input: turns[i]?.ops })
      const times = await alternate(turns.length, run(ours), run(plain))
      if (round > 0) p50.push({ ours: quantile(times.ours, 0.5), floor: quantile(times.floor, 0.5) })
    }
  } finally {
    await ours.close()
    await plain.close()
  }
  return compare({ backend: backend.name, what: 'run of one step with redactCommon, p50', unit: 'time' }, p50)
}

/** @param {string} url @param {import('holdfast').LogStoreOptions} options */
async function open(url, options) {
  return new Holdfast(new LogStore(await openDriver(url), options))
}
