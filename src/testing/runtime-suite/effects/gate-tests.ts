import assert from 'node:assert/strict'
import { append, graph, type Holdfast, START } from '../../../index.js'
import { expectStatus, named, refuses, type RuntimeTest } from '../runtime-context.js'

const state = { trail: append<string>() }

function gated(ran: string[] = []) {
  return graph({ ...named('gated'), state })
    .node('a', () => {
      ran.push('a')
      return { trail: 'a' }
    })
    .node('b', () => {
      ran.push('b')
      return { trail: 'b' }
    })
    .edge(START, 'a')
    .edge('a', 'b')
}

function approved(ran: unknown[] = []) {
  return graph({ ...named('approved'), state })
    .node('pay', {
      approval: {
        needed: (_state, input) => input !== 'free',
        question: ({ trail }) => ({ pay: trail }),
        answer: {
          type: 'object',
          properties: { approved: { type: 'boolean' }, amount: { type: 'number' } },
          required: ['approved'],
        },
        approved: (_input, answer) => (answer as { amount?: number }).amount ?? 1,
        denied: () => ({ trail: 'denied' }),
      },
      effect: 'once',
      run: (_state, { input }) => {
        ran.push(input)
        return { trail: `paid ${String(input)}` }
      },
    })
    .edge(START, 'pay')
}

async function answerFirst(hf: Holdfast, answer: unknown): Promise<void> {
  const [pause] = await hf.inspect('t').pauses()
  await hf.inspect('t').answer(pause?.id ?? '', answer)
}

export const gateTests: readonly RuntimeTest[] = [
  {
    name: 'before a node ask until it is approved, and leave it out when it is not',
    async run({ hf }) {
      for (const approved of [true, false]) {
        const ran: string[] = []
        const thread = hf.thread(gated(ran).pauseBefore('b'), 't')
        const { pauses } = expectStatus(await thread.run({ input: {} }), 'paused')
        assert.deepEqual([pauses[0]?.kind, pauses[0]?.question, ran], ['before', { node: 'b' }, ['a']])
        await refuses(() => thread.answer(pauses[0]?.id ?? '', 'yes'), 'invalid-value')
        await answerFirst(hf, { approved, update: { trail: ['a person'] } })
        const { state } = expectStatus(await thread.run(), 'completed')
        assert.deepEqual(ran, approved ? ['a', 'b'] : ['a'])
        assert.deepEqual(state.trail, approved ? ['a', 'b'] : ['a', 'a person'])
        await hf.erase('t')
      }
    },
  },
  {
    name: 'after a node show its update, which runs only once, and take a correction',
    async run({ hf }) {
      const ran: string[] = []
      const thread = hf.thread(gated(ran).pauseAfter('a'), 't')
      const { pauses } = expectStatus(await thread.run({ input: {} }), 'paused')
      assert.deepEqual(pauses[0]?.question, { node: 'a', update: { trail: ['a'] } })
      await answerFirst(hf, { approved: true, update: { trail: ['corrected'] } })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['corrected', 'b'])
      assert.deepEqual(ran, ['a', 'b'])
    },
  },
  {
    name: 'after a node drop its update when it is not approved',
    async run({ hf }) {
      const thread = hf.thread(gated().pauseAfter('a'), 't')
      await thread.run({ input: {} })
      await answerFirst(hf, { approved: false })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['b'])
    },
  },
  {
    name: 'of an approval show what is asked, run with what was approved, and record no intent before',
    async run({ hf }) {
      const ran: unknown[] = []
      const thread = hf.thread(approved(ran), 't')
      const { pauses } = expectStatus(await thread.run({ input: { trail: 'order' } }), 'paused')
      assert.deepEqual([pauses[0]?.kind, pauses[0]?.question, ran], ['approval', { pay: ['order'] }, []])
      assert.equal((await hf.log('t')).fold.state['steps'], undefined)
      await answerFirst(hf, { approved: true, amount: 7 })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['order', 'paid 7'])
      assert.deepEqual(ran, [7])
    },
  },
  {
    name: 'of an approval that was denied make the update for that, and the node does not run',
    async run({ hf }) {
      const ran: unknown[] = []
      const thread = hf.thread(approved(ran), 't')
      await thread.run({ input: {} })
      await answerFirst(hf, { approved: false })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['denied'])
      assert.deepEqual(ran, [])
    },
  },
  {
    name: 'that kept a node from running do not ask for its approval as well',
    async run({ hf }) {
      const ran: unknown[] = []
      const thread = hf.thread(approved(ran).pauseBefore('pay'), 't')
      const { pauses } = expectStatus(await thread.run({ input: {} }), 'paused')
      assert.equal(pauses[0]?.kind, 'before')
      await answerFirst(hf, { approved: false })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, [])
      assert.deepEqual(ran, [])
    },
  },
  {
    name: 'at a node of a subgraph hold the subgraph there',
    async run({ hf }) {
      const ran: string[] = []
      const program = graph({ ...named('outer'), state })
        .node('sub', gated(ran).pauseBefore('b').pauseAfter('b'))
        .edge(START, 'sub')
      const thread = hf.thread(program, 't')
      const first = expectStatus(await thread.run({ input: {} }), 'paused')
      assert.deepEqual([first.pauses[0]?.kind, ran], ['before', ['a']])
      await answerFirst(hf, { approved: true })
      const second = expectStatus(await thread.run(), 'paused')
      assert.deepEqual([second.pauses[0]?.kind, ran], ['after', ['a', 'b']])
      await answerFirst(hf, { approved: true })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['a', 'b'])
      assert.deepEqual(ran, ['a', 'b'])
    },
  },
]
