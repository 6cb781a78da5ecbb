import assert from 'node:assert/strict'
import { append, graph, type Holdfast, last, reduced, START, type Thread } from '../../../index.js'
import {
  aborted,
  expectStatus,
  gate,
  LONG_LEASE_MS,
  named,
  type RuntimeContext,
  type RuntimeTest,
} from '../runtime-context.js'

const shape = { paid: append<string>(), seen: append<string>(), note: last<string>() }

/** What the node beside the payment does, until the run is ended. */
type Beside = 'hangs' | 'asks' | 'fails'

function shop(beside: Beside, begun: { open(): void } = gate()) {
  return graph({ ...named('shop'), state: shape })
    .node('look', ({ paid }) => ({ seen: `paid: ${paid.join()}` }))
    .node('pay', { effect: 'once', run: () => ({ paid: 'receipt' }) })
    .node('beside', {
      retry: { attempts: 1 },
      async run(_, ctx) {
        if (beside === 'fails') throw new Error('no luck')
        if (beside === 'asks') return { note: await ctx.pause<string>('well?') }
        begun.open()
        await aborted(ctx.abortSignal)
        return { note: 'too late' }
      },
    })
    .edge(START, 'look')
    .edge('look', 'pay')
    .edge('look', 'beside')
}

type ShopThread = Thread<
  unknown,
  { readonly paid: readonly string[]; readonly seen: readonly string[]; readonly note?: string }
>

const open = (hf: Holdfast, program: unknown) => hf.thread(program as never, 't') as unknown as ShopThread

/** What the next run saw of the payment before it did anything. */
async function seenNext(context: RuntimeContext): Promise<unknown> {
  const thread = open(context.hf, shop('asks'))
  const outcome = await thread.run({ input: {} })
  return outcome.state.seen.at(-1)
}

/** Resolves when the payment is recorded. */
async function recorded(hf: Holdfast): Promise<void> {
  for await (const event of hf.inspect('t').events({ untilRest: false })) {
    if (event.type === 'step' && event.step.endsWith(':pay') && event.status === 'completed') return
  }
}

export const keptResultTests: readonly RuntimeTest[] = [
  {
    name: 'reaches the state of a run that is cancelled while a sibling is under way',
    async run(context) {
      const { hf, watchful, other } = context
      const begun = gate()
      const running = open(watchful(), shop('hangs', begun)).run({ input: {}, leaseMs: LONG_LEASE_MS })
      await begun.passed
      await recorded(hf)
      await (await other()).inspect('t').cancel()
      const { state, error } = expectStatus(await running, 'failed')
      assert.equal(error.code, 'cancelled')
      assert.deepEqual(state.paid, ['receipt'])
      assert.deepEqual(
        (await hf.inspect('t').waitFor()).state['paid'],
        ['receipt'],
        'also for those without the program',
      )
      assert.equal(await seenNext(context), 'paid: receipt')
    },
  },
  ...(['asks', 'fails'] as const).flatMap((beside) =>
    (['its program', 'a process without it'] as const).map(
      (by): RuntimeTest => ({
        name: `reaches the state of a run whose sibling ${beside} when ${by} cancels it`,
        async run(context) {
          const { hf, other } = context
          const thread = open(hf, shop(beside))
          assert.deepEqual((await thread.run({ input: {}, key: 'k' })).state.paid, [])
          if (by === 'its program') await thread.cancel()
          else await (await other()).inspect('t').cancel()
          assert.deepEqual((await thread.state())?.paid, ['receipt'])
          assert.deepEqual((await thread.run({ input: {}, key: 'k' })).state.paid, ['receipt'], 'and its outcome')
          assert.deepEqual((await thread.run()).state.paid, ['receipt'])
          assert.equal(await seenNext(context), 'paid: receipt')
          assert.deepEqual((await hf.inspect('t').pauses()).length, 1)
          const { paid } = (await hf
            .inspect('t')
            .look((await thread.history())[0]?.id ?? '')
            .state()) as never
          assert.deepEqual(paid, ['receipt'], 'once')
        },
      }),
    ),
  ),
  {
    name: 'reaches the state when new input drops a paused run',
    async run({ hf }) {
      const thread = open(hf, shop('asks'))
      expectStatus(await thread.run({ input: {} }), 'paused')
      const { state } = expectStatus(await thread.run({ input: { note: 'x' }, onPaused: 'cancel' }), 'paused')
      assert.deepEqual([state.paid, state.seen.at(-1)], [['receipt'], 'paid: receipt'])
    },
  },
  {
    name: 'reaches the state when new input interrupts a run',
    async run({ hf, watchful, other }) {
      const begun = gate()
      const running = open(watchful(), shop('hangs', begun)).run({ input: {}, leaseMs: LONG_LEASE_MS })
      await begun.passed
      await recorded(hf)
      const next = open(await other(), shop('asks')).run({ input: { note: 'x' }, busy: 'interrupt' })
      expectStatus(await running, 'failed')
      const { state } = expectStatus(await next, 'paused')
      assert.deepEqual([state.paid, state.seen.at(-1)], [['receipt'], 'paid: receipt'])
    },
  },
  {
    name: 'reaches the state from within a subgraph that was under way',
    async run({ hf, other }) {
      const inner = graph({ ...named('inner'), state: { paid: append<string>(), note: last<string>() } })
        .node('first', () => ({ paid: 'first' }))
        .node('second', () => ({ paid: 'second' }))
        .node('ask', async (_, ctx) => ({ note: await ctx.pause<string>('well?') }))
        .edge(START, 'first')
        .edge('first', 'second')
        .edge('first', 'ask')
      const program = graph({ ...named('outer'), state: shape })
        .node('look', ({ paid }) => ({ seen: `paid: ${paid.join()}` }))
        .node('sub', inner)
        .edge(START, 'look')
        .edge('look', 'sub')
      const thread = open(hf, program)
      expectStatus(await thread.run({ input: {} }), 'paused')
      await (await other()).inspect('t').cancel()
      assert.deepEqual((await thread.state())?.paid, ['first', 'second'])
      const { state } = expectStatus(await thread.run({ input: {} }), 'paused')
      assert.equal(state.seen.at(-1), 'paid: first,second')
      await thread.cancel()
      // What the first run brought went in, and came back with what is new.
      assert.deepEqual((await thread.state())?.paid, ['first', 'second', 'first', 'second'])
    },
  },
  {
    name: 'that a person refused does not reach the state, one that was not looked at does',
    async run({ hf, other }) {
      const program = graph({ ...named('reviewed'), state: shape })
        .node('pay', () => ({ paid: 'pay' }))
        .node('tip', () => ({ paid: 'tip' }))
        .node('fee', () => ({ paid: 'fee' }))
        .edge(START, 'pay')
        .edge(START, 'tip')
        .edge(START, 'fee')
        .pauseAfter('pay', 'tip', 'fee')
      const thread = open(hf, program)
      const { pauses } = expectStatus(await thread.run({ input: {} }), 'paused')
      const of = (name: string) => pauses.find(({ step }) => step.includes(name))?.id ?? ''
      await thread.answer(of('tip'), { approved: false })
      await thread.answer(of('fee'), { approved: true, update: { note: 'by hand' } })
      await (await other()).inspect('t').cancel()
      const state = await thread.state()
      assert.deepEqual([state?.paid, state?.note], [['pay', 'fee'], 'by hand'])
    },
  },
  {
    name: 'that its reducer refuses waits for a mended program, and keeps no other back',
    async run({ hf, other }) {
      const withReducer = (sum: (old: number, update: number) => number) =>
        graph({ ...named('sums'), state: { ...shape, sum: reduced<number, number>(undefined, sum, { initial: 0 }) } })
          .node('pay', () => ({ paid: 'receipt', sum: 5 }))
          .node('ask', async (_, ctx) => ({ note: await ctx.pause<string>('well?') }))
          .edge(START, 'pay')
          .edge(START, 'ask')
      const broken = open(
        hf,
        withReducer(() => {
          throw new Error('broken')
        }),
      )
      expectStatus(await broken.run({ input: {} }), 'paused')
      await (await other()).inspect('t').cancel()
      const { state } = expectStatus(await broken.run({ input: { note: 'x' } }), 'paused')
      assert.deepEqual(state.paid, ['receipt'])
      await broken.cancel()
      const mended = open(
        hf,
        withReducer((old, update) => old + update),
      )
      const next = expectStatus(await mended.run({ input: { note: 'y' } }), 'paused')
      assert.deepEqual([next.state.paid, (next.state as { sum?: number }).sum], [['receipt', 'receipt'], 10])
    },
  },
]
