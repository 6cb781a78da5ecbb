import assert from 'node:assert/strict'
import { append, END, flow, graph, last, merge, reduced, START } from '../../../index.js'
import { count, entriesOf, expectStatus, named, quick, refuses, type RuntimeTest } from '../runtime-context.js'

const keys = {
  step: last<string>(undefined, { initial: '' }),
  total: reduced(count, (old: number, more) => old + more, { initial: 0 }),
  log: append<string>(),
  profile: merge<{ name?: string; age?: number }>(undefined, { initial: {} }),
  never: last<string>(),
}

const shop = graph({ ...named('shop'), state: keys })
  .node('first', ({ total }) => ({ step: 'first', total: 2, log: `saw ${total}`, profile: { name: 'Ada' } }))
  .node('second', ({ total, log }) => ({
    step: 'second',
    total: total * 10,
    log: ['a', 'b'],
    profile: { age: log.length },
  }))
  .edge(START, 'first')
  .edge('first', 'second')
  .edge('second', END)

export const stateTests: readonly RuntimeTest[] = [
  {
    name: 'joins updates to the state by the reducer of each key, from the input on',
    async run({ hf }) {
      const outcome = await hf.thread(shop, 't').run({ input: { total: 1, log: 'begin' } })
      const { state, output } = expectStatus(outcome, 'completed')
      assert.deepEqual(state, {
        step: 'second',
        total: 33,
        log: ['begin', 'saw 1', 'a', 'b'],
        profile: { name: 'Ada', age: 2 },
      })
      assert.deepEqual(output, state)
      // Inferred end to end: this line fails to compile if `total` is no number.
      assert.equal(state.total + 1, 34)
      assert.equal(state.never, undefined)
    },
  },
  {
    name: 'shows the same state to every process that reads the thread',
    async run({ hf, other }) {
      const { state } = await hf.thread(shop, 't').run({ input: {} })
      assert.deepEqual(await (await other()).thread(shop, 't').state(), state)
      assert.equal(await hf.thread(shop, 'nobody').state(), undefined)
    },
  },
  {
    name: 'keeps the state of a finished run and goes on from it with new input',
    async run({ hf }) {
      const thread = hf.thread(shop, 't')
      await thread.run({ input: { total: 1 } })
      const { state } = await thread.run({ input: { total: 5 } })
      assert.equal(state.total, (33 + 5 + 2) * 11)
      assert.equal(state.log.length, 6)
    },
  },
  {
    name: 'refuses an input that does not fit, with the path, and writes nothing',
    async run({ hf }) {
      const thread = hf.thread(shop, 't')
      const error = await refuses(() => thread.run({ input: { total: -1 } }), 'invalid-value')
      assert.equal(error.data['path'], 'input.total')
      assert.equal(await entriesOf(hf, 't'), 0)
    },
  },
  {
    name: 'fails a run whose update does not fit, with the path, and leaves the state as it was',
    async run({ hf }) {
      const bad = graph({ ...named('bad'), state: keys })
        .node('good', () => ({ total: 1 }))
        .node('bad', { retry: quick, run: () => ({ total: -5, log: 'lost' }) })
        .edge(START, 'good')
        .edge('good', 'bad')
      const { error, state } = expectStatus(await hf.thread(bad, 't').run({ input: {} }), 'failed')
      assert.equal(error.code, 'invalid-value')
      assert.match(error.message, /update of node "bad"\.total/)
      assert.deepEqual([state.total, state.log], [1, []])
    },
  },
  {
    name: 'keeps dates, bytes and big numbers of states, inputs and results as they are',
    async run({ hf, other }) {
      const value = { at: new Date(5), bytes: new Uint8Array([1, 2]), big: 12345678901234567890n }
      const program = flow<typeof value, unknown>(named('values'), async (ctx, input) => [
        input,
        await ctx.step('same', { input }, () => input),
      ])
      const { output } = expectStatus(await hf.thread(program, 't').run({ input: value, key: 'k' }), 'completed')
      assert.deepEqual(output, [value, value])
      const read = await (await other()).thread(program, 't').run({ input: value, key: 'k' })
      assert.deepEqual(expectStatus(read, 'completed').output, [value, value])
    },
  },
]
