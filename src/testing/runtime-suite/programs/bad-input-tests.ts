import assert from 'node:assert/strict'
import { END, flow, graph, last, START } from '../../../index.js'
import { entriesOf, expectStatus, named, refuses, type RuntimeTest } from '../runtime-context.js'

const state = { n: last<unknown>(undefined, { initial: 0 }) }
const none = () => {}
const base = () => graph({ ...named('bad'), state }).node('a', none)

/** What is wrong with a graph is known before it runs: `hf.thread` refuses it. */
const GRAPHS: readonly (readonly [string, () => { readonly kind: 'graph'; readonly plan: unknown }, RegExp])[] = [
  [
    'an unknown node',
    () =>
      base()
        .edge(START, 'a')
        .edge('b' as never, 'a'),
    /"b"/,
  ],
  [
    'an edge to nowhere',
    () =>
      base()
        .edge(START, 'a')
        .edge('a', 'nowhere' as never),
    /"nowhere"/,
  ],
  [
    'a branch to nowhere',
    () =>
      base()
        .edge(START, 'a')
        .branch('a', (() => END) as never, ['gone' as never]),
    /"gone"/,
  ],
  ['a node that nothing leads to', () => base().node('island', none).edge(START, 'a'), /"island"/],
  ['no beginning', () => base().edge('a', END), /START/],
  [
    'a loop with no exit',
    () => base().node('b', none).edge(START, 'a').edge('a', 'b').edge('b', 'a'),
    /"a".*loop without an exit/,
  ],
  [
    'a pause at an unknown node',
    () =>
      base()
        .edge(START, 'a')
        .pauseBefore('b' as never),
    /"b"/,
  ],
  [
    'an alias of an unknown node',
    () =>
      graph({ ...named('bad'), state, aliases: { old: 'b' } })
        .node('a', none)
        .edge(START, 'a'),
    /"b"/,
  ],
  ['a duplicate name', () => base().node('a', none), /already has a node "a"/],
  ['a name that paths are written with', () => base().node('a/b', none), /"a\/b"/],
  ['a policy that can only fail', () => base().node('b', { timeoutMs: -1, run: none }), /timeoutMs/],
]

export const badInputTests: readonly RuntimeTest[] = [
  ...GRAPHS.map(
    ([what, build, names]): RuntimeTest => ({
      name: `such as ${what} is refused when the program is built, by name, and nothing is written`,
      async run({ hf }) {
        const error = await refuses(
          async () => hf.thread(build() as never, 't').run({ input: {} } as never),
          'invalid-program',
        )
        assert.match(error.message, names)
        assert.ok(error.remedy.length > 0)
        assert.deepEqual((await hf.threads()).threads, [])
      },
    }),
  ),
  {
    name: 'such as an update for an undeclared key fails the run by name and leaves the state alone',
    async run({ hf }) {
      const program = base()
        .node('b', () => ({ m: 1 }) as never)
        .edge(START, 'b')
        .edge('b', 'a')
      const { error, state } = expectStatus(await hf.thread(program, 't').run({ input: { n: 5 } }), 'failed')
      assert.equal(error.code, 'invalid-value')
      assert.match(error.message, /\bm\b/)
      assert.deepEqual(state, { n: 5 })
      await refuses(() => hf.thread(base().edge(START, 'a'), 'u').run({ input: { m: 1 } as never }), 'invalid-value')
      assert.equal(await entriesOf(hf, 'u'), 0)
    },
  },
  {
    name: 'such as a repeated step name fails the run by name, and the step does not run twice',
    async run({ hf }) {
      let ran = 0
      const program = flow<number, unknown>(named('twice'), async (ctx) => {
        await ctx.step('pay', () => ++ran)
        await ctx.step('pay', () => ++ran)
      })
      const { error } = expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'failed')
      assert.deepEqual([error.code, ran], ['invalid-program', 1])
      assert.match(error.message, /"pay".*key/)
    },
  },
  {
    name: 'such as a step inside of a step fails the run by name',
    async run({ hf }) {
      const program = flow<number, unknown>(named('inside'), (ctx) =>
        ctx.step('outer', { retry: { attempts: 1 } }, () => ctx.step('inner', () => 1)),
      )
      const { error } = expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'failed')
      assert.match(error.message, /"outer" uses ctx\.step inside/)
    },
  },
  {
    name: 'such as a value that cannot be stored is refused with its path',
    async run({ hf }) {
      const bad = { list: [1, () => 1] }
      const program = flow<unknown, unknown>(named('stores'), (ctx, where) => {
        if (where === 'result') return ctx.step('s', () => bad)
        if (where === 'step input') return ctx.step('s', { input: bad }, () => 1)
        if (where === 'question') return ctx.pause(bad)
        return bad
      })
      for (const where of ['result', 'step input', 'question', 'output']) {
        const { error } = expectStatus(await hf.thread(program, where).run({ input: where }), 'failed')
        assert.match(error.message, /list\[1\]/, where)
      }
      const update = base()
        .node('b', () => ({ n: bad }))
        .edge(START, 'b')
        .edge('b', 'a')
      const failed = expectStatus(await hf.thread(update, 'update').run({ input: { n: 1 } }), 'failed')
      assert.match(failed.error.message, /list\[1\]/)
      assert.deepEqual(failed.state, { n: 1 })
      await refuses(() => hf.thread(program, 'input').run({ input: bad }), 'invalid-value')
      assert.equal(await entriesOf(hf, 'input'), 0)
      await hf
        .thread(
          flow<number, unknown>(named('waits'), (ctx) => ctx.receive('x')),
          'signal',
        )
        .run({ input: 1 })
      const entries = await entriesOf(hf, 'signal')
      await refuses(() => hf.inspect('signal').signal('x', bad), 'invalid-value')
      assert.equal(await entriesOf(hf, 'signal'), entries)
    },
  },
  {
    name: 'such as names, keys, times and policies that cannot be is refused, and nothing is written',
    async run({ hf }) {
      const program = flow<number, unknown>(named('fine'), () => 1)
      const thread = hf.thread(program, 't')
      await refuses(() => thread.run({ input: 1, key: '' }), 'invalid-value')
      await refuses(() => thread.run({ key: 'k' } as never), 'invalid-option')
      await refuses(() => thread.run({ input: 1, leaseMs: 0 }), 'invalid-option')
      await refuses(async () => hf.thread(program, ''), 'invalid-id')
      assert.deepEqual((await hf.threads()).threads, [])
      for (const bad of [
        flow<number, unknown>(named('bad'), (ctx) => ctx.step('a/b', () => 1)),
        flow<number, unknown>(named('bad'), (ctx) => ctx.sleep(Number.NaN)),
        flow<number, unknown>(named('bad'), (ctx) => ctx.step('s', { retry: { attempts: 0 } }, () => 1)),
        flow<number, unknown>(named('bad'), (ctx) => ctx.pause('q', { expiresInMs: -1 })),
        flow<number, unknown>(named('bad'), (ctx) => ctx.step('s', { effect: 'twice' as never }, () => 1)),
        flow<number, unknown>(named('bad'), (ctx) => ctx.step('s', { timeoutMs: -5 }, () => 1)),
      ]) {
        const { error } = expectStatus(await hf.thread(bad, 'bad').run({ input: 1 }), 'failed')
        assert.match(error.code ?? '', /^invalid-/, error.message)
        await hf.erase('bad')
      }
    },
  },
]
