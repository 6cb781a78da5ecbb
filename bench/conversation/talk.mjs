// @ts-check
import { z } from 'zod'
import { makeTurns } from '../turns.mjs'

/**
 * What is said in a turn: a question, a tool call with its result, an answer. About 2 KB.
 * @typedef {{ question: string, thought: string, orderId: string, found: Record<string, unknown>, answer: string }} Said
 */

/** @param {number} count @returns {Said[]} */
export function makeTalk(count) {
  return makeTurns(11, count).map(({ ops }, n) => {
    const [, , messages] = /** @type {['push', unknown, any[]]} */ (/** @type {unknown} */ (ops[0]))
    const [user, call, result, answer] = messages
    // By its number everybody finds the turn, whoever asks.
    return {
      question: `${n}: ${user.content}`,
      thought: call.content,
      orderId: String(n),
      found: { ...result.content, orderId: String(n) },
      answer: answer.content,
    }
  })
}

export const inputSchema = z.object({ orderId: z.string() })
export const INSTRUCTIONS = 'You help customers with their orders.'

/** The turn that a question belongs to. @param {readonly Said[]} talk @param {string} question */
export function turnOf(talk, question) {
  return /** @type {Said} */ (talk[Number.parseInt(question, 10)])
}
