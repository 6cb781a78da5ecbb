import assert from 'node:assert/strict'
import { END, flow, graph, reduced, type RunOptions, START } from '../../../index.js'
import { entriesOf, expectStatus, gate, named, refuses, type RuntimeTest } from '../runtime-context.js'

const N = 7

const counter = graph({
  ...named('counter'),
  state: { n: reduced<number, number>(undefined, (a, b) => a + b, { initial: 0 }) },
})
  .node('more', () => ({ n: 1 }))
  .edge(START, 'more')
  .branch('more', ({ n }) => (n >= N ? END : 'more'), ['more', END])

const steps = flow<number, number>(named('steps'), async (ctx, n) => {
  let sum = 0
  for (let i = 0; i < n; i++) sum += await ctx.step('s', { key: i }, () => i)
  return sum
})

/** How many appends a run of the counter makes: one for claim and input, then what the policy says. */
const POLICIES: readonly (readonly [string, RunOptions, number])[] = [
  ['every step', {}, N + 1],
  ['every 3 steps', { frequency: { every: 3 } }, 4],
  ['every 100 steps', { frequency: { every: 100 } }, 2],
  ['its boundaries', { frequency: 'boundary' }, 2],
]

export const recordTests: readonly RuntimeTest[] = [
  ...POLICIES.map(
    ([what, options, appends]): RuntimeTest => ({
      name: `of ${what} take ${appends} appends for ${N} steps, claim, input and end included`,
      async run({ hf, calls }) {
        const { state } = expectStatus(
          await hf.thread(counter, 't').run({ ...(options as object), input: {} }),
          'completed',
        )
        assert.equal(state.n, N)
        assert.deepEqual(calls, { appends, entries: appends, transactions: 0 })
      },
    }),
  ),
  {
    name: 'of a flow take one append per step, and one each for its begin and its end',
    async run({ hf, calls }) {
      expectStatus(await hf.thread(steps, 't').run({ input: N }), 'completed')
      assert.equal(calls.appends, N + 2)
    },
  },
  {
    name: 'that are never made leave no claim and no entry, and start from the state there is',
    async run({ hf, calls }) {
      const thread = hf.thread(counter, 't')
      const outcome = expectStatus(await thread.run({ input: {}, frequency: 'none' }), 'completed')
      assert.deepEqual([outcome.state.n, outcome.checkpoint, calls.appends], [N, undefined, 0])
      assert.deepEqual((await hf.threads()).threads, [])
      await thread.run({ input: {} })
      const entries = await entriesOf(hf, 't')
      const again = expectStatus(await thread.run({ input: {}, frequency: 'none' }), 'completed')
      assert.deepEqual([again.state.n, await entriesOf(hf, 't')], [N + 1, entries])
    },
  },
  {
    name: 'that are never made refuse what needs one',
    async run({ hf }) {
      for (const program of [
        flow<number, unknown>(named('once'), (ctx) => ctx.step('pay', { effect: 'once' }, () => 1)),
        flow<number, unknown>(named('asks'), (ctx) => ctx.pause('well?')),
        flow<number, unknown>(named('hears'), (ctx) => ctx.receive('news')),
        flow<number, unknown>(named('books'), (ctx) => ctx.transaction('t', async () => 1)),
      ]) {
        const { error } = expectStatus(await hf.thread(program, 't').run({ input: 1, frequency: 'none' }), 'failed')
        assert.equal(error.code, 'invalid-option')
        assert.match(error.message, /frequency/)
      }
    },
  },
  {
    name: 'of async runs come in order and are all there when the run ends',
    async run({ hf, calls, other }) {
      for (const durability of ['async', { lag: 2 }] as const) {
        const id = typeof durability === 'string' ? durability : 'lag'
        calls.appends = 0
        const { state } = expectStatus(await hf.thread(counter, id).run({ input: {}, durability }), 'completed')
        assert.equal(state.n, N)
        assert.ok(calls.appends <= N + 1)
        assert.deepEqual(await (await other()).thread(counter, id).state(), { n: N })
      }
    },
  },
  {
    name: 'of async runs and of rare ones are all acknowledged before an effect reaches outside',
    async run({ hf, other }) {
      const reader = await other()
      for (const options of [
        { durability: 'async' },
        { frequency: 'boundary' },
        { frequency: { every: 50 } },
      ] as const) {
        const id = JSON.stringify(Object.values(options)[0]).replaceAll(/\W/g, '')
        const program = flow<number, unknown>(named('barrier'), async (ctx) => {
          for (let i = 0; i < 5; i++) await ctx.step('s', { key: i }, () => i)
          return ctx.step('call', { effect: 'idempotent' }, async () =>
            Object.keys((await reader.log(id)).fold.state['steps'] ?? {}),
          )
        })
        const { output } = expectStatus(await hf.thread(program, id).run({ input: 1, ...options }), 'completed')
        // Where they were written for its sake, its own intent travels with them.
        const before = (output as readonly string[]).filter((name) => name !== 'call')
        assert.deepEqual(before, ['s[0]', 's[1]', 's[2]', 's[3]', 's[4]'])
      }
    },
  },
  {
    name: 'of sync runs are acknowledged before the next step starts',
    async run({ hf, other }) {
      const reader = await other()
      const seen: number[] = []
      const program = flow<number, number>(named('sync'), async (ctx) => {
        for (let i = 0; i < 3; i++) {
          await ctx.step('s', { key: i }, async () => {
            seen.push(Object.keys((await reader.log('t')).fold.state['steps'] ?? {}).length)
          })
        }
        return 1
      })
      await hf.thread(program, 't').run({ input: 1 })
      assert.deepEqual(seen, [0, 1, 2])
    },
  },
  {
    name: 'of steps side by side cost no more than one append each',
    async run({ hf, calls }) {
      const together = gate()
      let begun = 0
      const program = flow<number, number[]>(named('all'), (ctx) =>
        Promise.all(
          Array.from({ length: 5 }, (_, i) =>
            ctx.step('s', { key: i }, async () => {
              if (++begun === 5) together.open()
              await together.passed
              return i
            }),
          ),
        ),
      )
      expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'completed')
      assert.ok(calls.appends <= 7, `${calls.appends} appends`)
    },
  },
  {
    name: 'are refused with policies that nobody knows, and nothing is written',
    async run({ hf }) {
      const thread = hf.thread(counter, 't')
      for (const bad of [
        { frequency: 'often' },
        { frequency: { every: 0 } },
        { durability: 'maybe' },
        { durability: { lag: 0 } },
        { frequency: 'none', durability: 'async' },
      ] as unknown as RunOptions[]) {
        await refuses(() => thread.run({ ...(bad as object), input: {} }), 'invalid-option')
      }
      assert.deepEqual((await hf.threads()).threads, [])
    },
  },
]
