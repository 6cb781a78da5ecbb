import assert from 'node:assert/strict'
import { append, graph, last, START, send } from '../../../index.js'
import { dies, expectStatus, named, quick, type RuntimeTest, takeOver } from '../runtime-context.js'

const text = { text: last<string>(undefined, { initial: '' }), notes: append<string>() }

function inner(onSecond: () => unknown, ran: string[] = []) {
  return graph({ ...named('inner'), state: { text: last<string>(undefined, { initial: '' }), own: append<string>() } })
    .node('one', ({ text }) => {
      ran.push('one')
      return { text: `${text}1`, own: 'one' }
    })
    .node('two', {
      retry: { attempts: 1 },
      run: async ({ text, own }) => {
        await onSecond()
        ran.push('two')
        return { text: `${text}2`, own: [...own, 'two'] }
      },
    })
    .edge(START, 'one')
    .edge('one', 'two')
}

function outer(onSecond: () => unknown, ran: string[] = []) {
  return graph({ ...named('outer'), state: text })
    .node('before', ({ text }) => {
      ran.push('before')
      return { text: `${text}b` }
    })
    .node('sub', inner(onSecond, ran))
    .node('after', ({ text }) => ({ text: `${text}a`, notes: 'after' }))
    .edge(START, 'before')
    .edge('before', 'sub')
    .edge('sub', 'after')
}

export const subgraphTests: readonly RuntimeTest[] = [
  {
    name: 'shares the keys that both declare and keeps the others to the subgraph',
    async run({ hf }) {
      const { state } = expectStatus(
        await hf
          .thread(
            outer(() => {}),
            't',
          )
          .run({ input: { text: '>' } }),
        'completed',
      )
      assert.deepEqual(state, { text: '>b12a', notes: ['after'] })
    },
  },
  {
    name: 'checkpoints the state of a subgraph with its parent and resumes in its middle',
    async run({ hf, mortal }) {
      const ran: string[] = []
      const { hf: victim, die } = mortal()
      const dying = outer(() => {
        die()
        throw new Error('died')
      }, ran)
      await dies(victim.thread(dying, 't').run({ input: { text: '>' } }))
      await takeOver(hf, 't')
      const { state } = expectStatus(
        await hf
          .thread(
            outer(() => {}, ran),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual([ran, state.text], [['before', 'one', 'two'], '>b12a'])
    },
  },
  {
    name: 'goes on at the failed node of a subgraph when the cause is mended',
    async run({ hf }) {
      const ran: string[] = []
      let broken = true
      const program = outer(() => {
        if (broken) throw new Error('not yet')
      }, ran)
      const thread = hf.thread(program, 't')
      const { error } = expectStatus(await thread.run({ input: {} }), 'failed')
      assert.equal(error.step, '1:sub/1:two')
      broken = false
      assert.equal(expectStatus(await thread.run(), 'completed').state.text, 'b12a')
      assert.deepEqual(ran, ['before', 'one', 'two'])
    },
  },
  {
    name: 'maps states as the node says, and nests subgraphs in subgraphs',
    async run({ hf, mortal }) {
      const ran: string[] = []
      const program = (onSecond: () => unknown) => {
        const middle = graph({ ...named('middle'), state: { text: last<string>(undefined, { initial: '' }) } })
          .node('deep', inner(onSecond, ran))
          .node('wrap', ({ text }) => ({ text: `(${text})` }))
          .edge(START, 'deep')
          .edge('deep', 'wrap')
        return graph({ ...named('top'), state: text })
          .node('mapped', middle, {
            input: (state) => ({ text: state.text.toUpperCase() }),
            output: (sub) => ({ notes: sub.text }),
          })
          .edge(START, 'mapped')
      }
      const { hf: victim, die } = mortal()
      const dying = program(() => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: { text: 'x' } }))
      await takeOver(hf, 't')
      const { state } = expectStatus(
        await hf
          .thread(
            program(() => {}),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual([state, ran], [{ text: 'x', notes: ['(X12)'] }, ['one', 'two']])
    },
  },
  {
    name: 'runs one subgraph per item of a fan-out, each with a state of its own',
    async run({ hf }) {
      const program = graph({ ...named('fan'), state: text })
        .node(
          'sub',
          inner(() => {}),
          {
            input: (_state, item) => ({ text: item as string }),
            output: (sub) => ({ notes: `${sub.text}/${sub.own.length}` }),
          },
        )
        .branch(START, () => ['a', 'b', 'c'].map((item) => send('sub', item)), ['sub'])
      const { state } = expectStatus(await hf.thread(program, 't').run({ input: {} }), 'completed')
      assert.deepEqual(state.notes, ['a12/3', 'b12/3', 'c12/3'])
    },
  },
  {
    name: 'pauses inside of a subgraph and goes on there with the answer',
    async run({ hf }) {
      const ran: string[] = []
      const asking = graph({ ...named('asking'), state: { text: last<string>(undefined, { initial: '' }) } })
        .node('count', () => {
          ran.push('count')
        })
        .node('ask', async ({ text }, ctx) => ({ text: `${text}${await ctx.pause<string>('how?')}` }))
        .edge(START, 'count')
        .edge('count', 'ask')
      const program = graph({ ...named('asks'), state: text })
        .node('sub', asking)
        .node('beside', { retry: quick, run: () => ({ notes: 'beside' }) })
        .edge(START, 'sub')
        .edge(START, 'beside')
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: { text: 'so ' } }), 'paused')
      assert.deepEqual(
        pauses.map(({ question }) => question),
        ['how?'],
      )
      await thread.answer(pauses[0]?.id ?? '', 'thus')
      const { state } = expectStatus(await thread.run(), 'completed')
      assert.deepEqual([state, ran], [{ text: 'so thus', notes: ['beside'] }, ['count']])
    },
  },
]
