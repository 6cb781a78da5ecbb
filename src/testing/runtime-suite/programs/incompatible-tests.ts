import assert from 'node:assert/strict'
import { flow, graph, last, START } from '../../../index.js'
import { entriesOf, expectStatus, named, type RuntimeTest } from '../runtime-context.js'

const state = { n: last<number>(undefined, { initial: 0 }) }

/** A graph that waits at a node of this name. */
function waitsAt(
  node: string,
  options: { version?: string; compatibleWith?: string; aliases?: Record<string, string> } = {},
) {
  return graph({ name: 'changing', version: '1.0.0', state, ...options })
    .node('first', () => ({ n: 1 }))
    .node(node, async (_state, ctx) => ({ n: await ctx.pause<number>('n?') }))
    .edge(START, 'first')
    .edge('first', node)
}

interface Change {
  readonly name: string
  readonly input?: unknown
  readonly skips?: boolean
}

/** A flow that fails after its first step, and may come back in another form. */
function changing({ name, input, skips }: Change, fails: boolean) {
  return flow<number, number>(named('changing'), async (ctx) => {
    if (!skips) await ctx.step(name, { input }, () => 1)
    if (fails) throw new Error('later')
    return 2
  })
}

export const incompatibleTests: readonly RuntimeTest[] = [
  {
    name: 'by a renamed node are refused with the reason and the way out, unless an alias names it',
    async run({ hf }) {
      const { pauses } = expectStatus(await hf.thread(waitsAt('old'), 't').run({ input: {} }), 'paused')
      await hf.inspect('t').answer(pauses[0]?.id ?? '', 7)
      const entries = await entriesOf(hf, 't')
      const refused = expectStatus(await hf.thread(waitsAt('new'), 't').run(), 'incompatible')
      assert.match(refused.reason, /node "old"/)
      assert.match(refused.remedy, /aliases/)
      assert.deepEqual([refused.canResume, await entriesOf(hf, 't')], [false, entries])
      const renamed = await hf.thread(waitsAt('new', { aliases: { old: 'new' } }), 't').run()
      assert.equal(expectStatus(renamed, 'completed').state.n, 7)
    },
  },
  {
    name: 'by a node that a subgraph lost end as incompatible, and go on when it is back',
    async run({ hf }) {
      const program = (node: string) =>
        graph({ ...named('parent'), state })
          .node('sub', waitsAt(node))
          .edge(START, 'sub')
      const { pauses } = expectStatus(await hf.thread(program('old'), 't').run({ input: {} }), 'paused')
      await hf.inspect('t').answer(pauses[0]?.id ?? '', 7)
      const entries = await entriesOf(hf, 't')
      const refused = expectStatus(await hf.thread(program('new'), 't').run(), 'incompatible')
      assert.match(refused.reason, /node "old"/)
      assert.equal(await entriesOf(hf, 't'), entries)
      assert.equal(expectStatus(await hf.thread(program('old'), 't').run(), 'completed').state.n, 7)
    },
  },
  {
    name: 'by a version that does not continue the one that began are refused, and finished by that one',
    async run({ hf }) {
      const { pauses } = expectStatus(await hf.thread(waitsAt('ask'), 't').run({ input: {} }), 'paused')
      await hf.inspect('t').answer(pauses[0]?.id ?? '', 7)
      const entries = await entriesOf(hf, 't')
      const refused = expectStatus(await hf.thread(waitsAt('ask', { version: '2.0.0' }), 't').run(), 'incompatible')
      assert.match(refused.reason, /1\.0\.0.*2\.0\.0/)
      assert.equal(await entriesOf(hf, 't'), entries)
      const compatible = waitsAt('ask', { version: '2.0.0', compatibleWith: '>=1.0.0' })
      assert.equal(expectStatus(await hf.thread(compatible, 't').run(), 'completed').state.n, 7)
    },
  },
  {
    name: 'by another program are refused',
    async run({ hf }) {
      await hf.thread(changing({ name: 'a' }, false), 't').run({ input: 1 })
      const stranger = flow<number, number>(named('stranger'), () => 1)
      const refused = expectStatus(await hf.thread(stranger, 't').run({ input: 1 }), 'incompatible')
      assert.match(refused.reason, /"changing".*"stranger"/)
    },
  },
  ...[
    {
      what: 'a step that comes back with another input',
      change: { name: 'a', input: 2 },
      reason: /"a".*another input/,
    },
    { what: 'a step that is not revisited', change: { name: 'a', skips: true }, reason: /"a".*did not come back/ },
    { what: 'a step that was renamed', change: { name: 'b', input: 1 }, reason: /"a".*did not come back/ },
  ].map(
    ({ what, change, reason }): RuntimeTest => ({
      name: `by ${what} are reported, never silently repeated or dropped`,
      async run({ hf }) {
        const original: Change = { name: 'a', input: 1 }
        expectStatus(await hf.thread(changing(original, true), 't').run({ input: 1 }), 'failed')
        const refused = expectStatus(await hf.thread(changing(change, false), 't').run(), 'incompatible')
        assert.match(refused.reason, reason)
        // What a step of another name did is recorded, and then the original does not fit anymore either.
        if (change.name !== original.name) return
        assert.equal(expectStatus(await hf.thread(changing(original, false), 't').run(), 'completed').output, 2)
      },
    }),
  ),
  ...(['idempotent', 'transaction'] as const).map(
    (effect): RuntimeTest => ({
      name: `by an effect (${effect}) that was renamed are reported before it happens again`,
      async run({ hf }) {
        if (effect === 'transaction' && !hf.capabilities.transactions) return
        const charged: string[] = []
        const program = (name: string, fails: boolean) =>
          flow<number, number>(named('charging'), async (ctx) => {
            const charge = () => void charged.push(name)
            const input = { input: 1 }
            const charging =
              effect === 'transaction'
                ? ctx.transaction(name, input, async () => charge())
                : ctx.step(name, { ...input, effect }, charge)
            await Promise.all([charging, ctx.step('beside', () => 1)])
            await ctx.step('thank', () => 1)
            if (fails) throw new Error('later')
            return 2
          })
        expectStatus(await hf.thread(program('charge', true), 't').run({ input: 1 }), 'failed')
        const refused = expectStatus(await hf.thread(program('charge card', false), 't').run(), 'incompatible')
        assert.match(refused.reason, /"charge" is recorded.*"charge card".*not started/)
        assert.deepEqual(charged, ['charge'])
        assert.equal(expectStatus(await hf.thread(program('charge', false), 't').run(), 'completed').output, 2)
        assert.deepEqual(charged, ['charge'])
      },
    }),
  ),
  {
    name: 'by reads between recorded steps go on, and effects beside them wait for all effects that are recorded',
    async run({ hf }) {
      const done: string[] = []
      const program = (later: boolean) =>
        flow<number, number>(named('growing'), async (ctx) => {
          const step = (name: string, effect: 'read' | 'once' = 'read') =>
            ctx.step(name, { effect }, () => void done.push(name))
          const slow = async () => {
            await step('a')
            // Code between steps may take its time.
            if (later) await new Promise((resolve) => setTimeout(resolve, 50))
            if (later) await step('new read')
            await step('b', 'once')
          }
          await Promise.all([later ? step('new effect', 'once') : undefined, slow()])
          if (!later) throw new Error('later')
          return 2
        })
      expectStatus(await hf.thread(program(false), 't').run({ input: 1 }), 'failed')
      assert.equal(expectStatus(await hf.thread(program(true), 't').run(), 'completed').output, 2)
      assert.deepEqual(done, ['a', 'b', 'new read', 'new effect'])
    },
  },
  {
    name: 'of the state lead through migrations, and are refused without them',
    async run({ hf }) {
      await hf.thread(waitsAt('ask'), 't').run({ input: {} })
      const program = (migrations: Record<number, (old: { readonly [key: string]: unknown }) => never>) =>
        graph({
          ...named('changing'),
          stateVersion: 2,
          migrations,
          state: { total: last<number>(undefined, { initial: 0 }) },
        })
          .node('first', () => {})
          .node('ask', async (_state, ctx) => ({ total: await ctx.pause<number>('n?') }))
          .edge(START, 'first')
          .edge('first', 'ask')
      const refused = expectStatus(await hf.thread(program({}), 't').run(), 'incompatible')
      assert.match(refused.reason, /no migration leads from 1 to 2/)
      const [pause] = await hf.inspect('t').pauses()
      await hf.inspect('t').answer(pause?.id ?? '', 7)
      const migrated = program({ 2: ({ n }) => ({ total: (n as number) * 10 }) as never })
      const { state } = expectStatus(await hf.thread(migrated, 't').run(), 'completed')
      assert.deepEqual(state, { total: 7 })
    },
  },
]
