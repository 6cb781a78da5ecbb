// @ts-check
import { createHash } from 'node:crypto'

/** @typedef {{ ops: readonly import('holdfast').Op[], json: number }} Turn one step of a conversation, and its raw size */

/** The commonest words first, as `prose` draws them. */
const WORDS = `
the to your and a of it is you for we in that order on I this with be have can as are not was will our at return
if or by please from an delivery has refund been they but so there when would package like after item address
days me which once my card more before email still should week account shipping size number today received
because time could help any new one also label exchange first what confirm out check were them did warehouse
original do replacement between payment business available customer store policy tomorrow already window change
wrong another amount only courier send team working ordered arrive arrived two how need until color damaged
reason choose process processed usually question photo morning evening receipt method credit balance missing box
opened unused within separate tracking shows carrier attempted neighbour signature depot collect weekend holiday
delay apologise inconvenience understand happy offer discount voucher warranty repair battery screen charger
cable jacket sleeve collar button zipper pair boots leather cotton medium large restocked supplier estimate
currently transit customs duties invoice company billing subscription cancel cancelled renew reminder
notification settings password confirmed details below attached information additional through whether without
instead however although therefore sometimes immediately approximately unfortunately`
  .trim()
  .split(/\s+/)

/**
 * Turns of about 2 KB as a support agent makes them: a question, a tool call, its result, an answer. The text is drawn
 * from a vocabulary with the frequencies of prose, so that it compresses like prose; a run of one letter would flatter
 * every number here. The same seed gives the same turns.
 * @param {number} seed
 * @param {number} count
 * @returns {Turn[]}
 */
export function makeTurns(seed, count) {
  const random = seededRandom(seed)
  return Array.from({ length: count }, (_, n) => makeTurn(random, n))
}

/**
 * @param {() => number} random
 * @param {number} n
 * @returns {Turn}
 */
function makeTurn(random, n) {
  const at = 1_790_000_000_000 + n * 41_000 + Math.floor(random() * 20_000)
  const order = `ORD-2026-${digits(random, 5)}`
  const call = `call_${token(random)}`
  // A turn has a topic: its words come back, as they do when people talk about one order.
  const topic = Array.from({ length: 70 }, () => draw(random, WORDS))
  const messages = [
    { id: `msg_${token(random)}`, role: 'user', at, content: prose(random, topic, 40) },
    {
      id: `msg_${token(random)}`,
      role: 'assistant',
      at: at + 900,
      content: prose(random, topic, 16),
      toolCalls: [{ id: call, name: 'getOrderStatus', arguments: { orderId: order, region: 'US-West' } }],
    },
    {
      id: `msg_${token(random)}`,
      role: 'tool',
      at: at + 1400,
      toolCallId: call,
      content: {
        orderId: order,
        status: pick(random, ['shipped', 'processing', 'delivered', 'returned']),
        total: Number((random() * 900).toFixed(2)),
        tracking: `1Z${digits(random, 16)}`,
        items: [item(random), item(random)],
        note: prose(random, topic, 25),
      },
    },
    { id: `msg_${token(random)}`, role: 'assistant', at: at + 3200, content: prose(random, topic, 120) },
  ]
  const usage = { inputTokens: 400 + n * 12, outputTokens: 150 + Math.floor(random() * 90) }
  return {
    ops: [
      ['push', ['messages'], messages],
      ['set', ['turn'], n],
      ['set', ['usage'], usage],
    ],
    json: Buffer.byteLength(JSON.stringify({ messages, turn: n, usage })),
  }
}

/** @param {() => number} random */
function item(random) {
  const name = `${pick(random, WORDS)} ${pick(random, WORDS)}`
  return { sku: `SKU-${digits(random, 6)}`, name, quantity: 1 + Math.floor(random() * 4) }
}

/**
 * Sentences of so many words, with a number here and there.
 * @param {() => number} random
 * @param {readonly string[]} vocabulary
 * @param {number} count
 */
function prose(random, vocabulary, count) {
  let text = ''
  for (let i = 0; i < count; i++) {
    const word = random() < 0.03 ? digits(random, 3) : draw(random, vocabulary)
    const ends = i === count - 1 || random() < 0.09
    text += `${text === '' || text.endsWith('. ') ? word[0]?.toUpperCase() + word.slice(1) : word}${ends ? '. ' : ' '}`
  }
  return text.trimEnd()
}

/** Squared: the first words of a list come up far more often than the last, as in prose. @param {() => number} random @param {readonly string[]} list */
function draw(random, list) {
  return list[Math.floor(random() ** 2 * list.length)] ?? ''
}

/** @template T @param {() => number} random @param {readonly T[]} list @returns {T} */
function pick(random, list) {
  return /** @type {T} */ (list[Math.floor(random() * list.length)])
}

/** @param {() => number} random @param {number} count */
function digits(random, count) {
  return Array.from({ length: count }, () => Math.floor(random() * 10)).join('')
}

/** An id as providers make them: random letters, which no compression shortens much. @param {() => number} random */
function token(random) {
  return createHash('sha256').update(String(random())).digest('base64url').slice(0, 16)
}

/** Mulberry32: small, and the same everywhere. @param {number} seed */
function seededRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
