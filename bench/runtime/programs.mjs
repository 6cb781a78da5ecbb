// @ts-check
import { append, END, flow, graph, last, START } from 'holdfast'

/**
 * A conversation as a loop of one node: each step appends the messages of one turn.
 * @param {readonly import('../turns.mjs').Turn[]} turns
 * @param {{ effect?: 'read' | 'once', onStep?: (turn: number) => void }} [options]
 */
export function makeConversation(turns, { effect = 'read', onStep } = {}) {
  return graph({
    name: 'conversation',
    version: '1.0.0',
    state: { turn: last(), messages: append() },
    maxSteps: 100_000,
  })
    .node('turn', {
      effect,
      run: (state) => {
        const turn = /** @type {number} */ (state.turn ?? 0)
        onStep?.(turn)
        return { turn: turn + 1, messages: messagesOf(/** @type {import('../turns.mjs').Turn} */ (turns[turn])) }
      },
    })
    .edge(START, 'turn')
    .branch('turn', (state) => (/** @type {number} */ (state.turn) < turns.length ? 'turn' : END), ['turn', END])
}

/**
 * The same as a flow: one recorded step per turn.
 * @param {readonly import('../turns.mjs').Turn[]} turns
 */
export function makeFlow(turns) {
  return flow({ name: 'conversation-flow', version: '1.0.0' }, async (ctx) => {
    for (const [key, turn] of turns.entries()) await ctx.step('turn', { key }, () => messagesOf(turn))
    return turns.length
  })
}

/** @param {import('../turns.mjs').Turn} turn @returns {unknown[]} */
function messagesOf({ ops }) {
  return ops.flatMap((op) => (op[0] === 'push' ? [...op[2]] : []))
}
