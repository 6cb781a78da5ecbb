// @ts-check
import { backendAt } from '../backends.mjs'
import { openOfficial, openOurs } from '../langgraph/savers.mjs'
import { makeOurs, makeTheirs } from './agents.mjs'
import { makeTalk } from './talk.mjs'

/** Whose agent talks: ours, or LangGraph's with its saver, or with that and its DeltaChannel. */
/** @typedef {'holdfast' | 'saver' | 'delta'} Who */
/** @typedef {{ turn: (n: number) => Promise<void>, bytes: () => Promise<number>, close: () => Promise<void> }} Talking */

const THREAD = 'conversation'

/**
 * Methods `warmUp` (so many turns of another conversation in another store), `turn`, `bytes` and `close`.
 * @param {{ who: Who, address: import('../backends.mjs').Address, turns: number }} options
 */
export async function open({ who, address, turns }) {
  const talk = makeTalk(turns)
  const backend = backendAt(address)
  const join = (/** @type {string} */ part) =>
    who === 'holdfast' ? talkOurs(backend, part, talk) : talkTheirs(backend, `${part}_${who}`, talk, who === 'delta')
  const talking = await join('talk')
  return {
    ...talking,
    /** @param {number} count */
    async warmUp(count) {
      const warm = await join('warm')
      for (let n = 0; n < count; n++) await warm.turn(n)
      await warm.bytes()
      await warm.close()
    },
  }
}

/** @typedef {import('../backends.mjs').Backend} Backend */
/** @typedef {readonly import('./talk.mjs').Said[]} Talk */

/** @param {Backend} backend @param {string} part @param {Talk} talk @returns {Promise<Talking>} */
async function talkOurs(backend, part, talk) {
  const { holdfast, bytes, close } = await openOurs(backend, part)
  const program = makeOurs(talk)
  return {
    async turn(n) {
      const { status } = await holdfast()
        .thread(program, THREAD)
        .run({ input: questionOf(talk, n) })
      if (status !== 'completed') throw new Error(`Our agent ended as ${status}.`)
    },
    bytes,
    close,
  }
}

/** @param {Backend} backend @param {string} part @param {Talk} talk @param {boolean} delta @returns {Promise<Talking>} */
async function talkTheirs(backend, part, talk, delta) {
  const official = await openOfficial(backend, part)
  if (official === undefined) throw new Error(`There is no official saver for ${backend.name}.`)
  const { saver, bytes, close } = official
  const theirs = makeTheirs(talk, { saver, delta })
  return {
    async turn(n) {
      const input = { messages: [{ role: 'user', content: questionOf(talk, n) }] }
      const { messages } = await theirs.invoke(input, { configurable: { thread_id: THREAD } })
      if (messages.length !== (n + 1) * 4) throw new Error(`Their agent has ${messages.length} messages.`)
    },
    bytes,
    close,
  }
}

/** @param {Talk} talk @param {number} n */
function questionOf(talk, n) {
  return /** @type {import('./talk.mjs').Said} */ (talk[n]).question
}
