// @ts-check
// The outside world of the sessions, in a process of its own: it keeps every call, and what really happened.
//   node service.mjs [seed]      prints "listening <url>"
//   POST /effect {kind, session, step, key, ms?, hold?}  does it and answers {receipt}. Kind 'idempotent' honours the key.
//   POST /outcome {key}                           what became of a key. One that is not known is void from then on.
//   POST /release {hold}                          answers the calls with this `hold`, which are not answered before
//   GET /ledger                                   {effects, calls, faults}
// With a seed some replies are slow, some are lost after the effect happened, some calls are lost before it, and some
// are refused.
import { writeSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithParent } from './end-with-parent.mjs'
import { seededRandom } from './random.mjs'

/** @typedef {{ kind: string, session: string, step: string, key: string, ms?: number, hold?: string }} Call */
/** @typedef {Call & { receipt: string }} HappenedEffect */

endWithParent()
const seed = process.argv[2]
const random = seed === undefined ? () => 1 : seededRandom(Number(seed))
/** @type {HappenedEffect[]} */
const effects = []
/** @type {Call[]} */
const calls = []
/** @type {Map<string, HappenedEffect>} */
const byKey = new Map()
const voided = new Set()
/** @type {Map<string, { released: Promise<void>, release: () => void }>} */
const holds = new Map()
const faults = { slow: 0, lostBefore: 0, lostAfter: 0, refused: 0 }

const server = createServer(async (request, response) => {
  const reply = (/** @type {number} */ status, /** @type {unknown} */ body) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  let text = ''
  for await (const chunk of request) text += chunk
  const asked = text === '' ? {} : JSON.parse(text)
  if (request.url === '/ledger') return reply(200, { effects, calls, faults })
  if (request.url === '/release') {
    holdNamed(asked.hold).release()
    return reply(200, {})
  }
  if (request.url === '/outcome') return answerOutcome(asked, reply)
  calls.push(asked)
  // Of faults at random there is at least this one, however few calls there are.
  const chance = seed !== undefined && calls.length === 3 ? 0.05 : random()
  if (chance < 0.02) return drop('lostBefore', response)
  if (chance < 0.04 || voided.has(asked.key)) {
    faults.refused++
    return reply(409, { refused: true })
  }
  const { receipt } = perform(asked)
  if (chance < 0.07) return drop('lostAfter', response)
  if (chance < 0.12) {
    faults.slow++
    await sleep(20 + 180 * random())
  }
  if (asked.ms) await sleep(asked.ms)
  if (asked.hold) await holdNamed(asked.hold).released
  return reply(200, { receipt })
})

/** @param {string} name */
function holdNamed(name) {
  const known = holds.get(name)
  if (known) return known
  let release = () => {}
  const released = new Promise((/** @type {(value: void) => void} */ resolve) => {
    release = resolve
  })
  const hold = { released, release }
  holds.set(name, hold)
  return hold
}

/** @param {Call} call @returns {HappenedEffect} */
function perform(call) {
  const before = call.kind === 'idempotent' ? byKey.get(call.key) : undefined
  if (before) return before
  const effect = { ...call, receipt: `${call.session}/${call.step}#${effects.length}` }
  if (call.kind !== 'read') {
    effects.push(effect)
    byKey.set(call.key, effect)
  }
  return effect
}

/** @param {{ key: string }} asked @param {(status: number, body: unknown) => void} reply */
function answerOutcome({ key }, reply) {
  const effect = byKey.get(key)
  // Whoever says "not executed" must keep to it, also when the call is still on its way.
  if (effect === undefined) voided.add(key)
  reply(200, effect === undefined ? { executed: false } : { executed: true, receipt: effect.receipt })
}

/** @param {'lostBefore' | 'lostAfter'} fault @param {import('node:http').ServerResponse} response */
function drop(fault, response) {
  faults[fault]++
  response.destroy()
}

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  writeSync(1, `listening http://127.0.0.1:${port}\n`)
})
