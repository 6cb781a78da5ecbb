import { recordedEvents } from '#src/runtime/events/events.js'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import { hurriedClock } from '#src/testing/hurried-clock.js'
import fc from 'fast-check'
import { append, graph, Holdfast, last, openHoldfast, START } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'

const KINDS = ['done', 'asks', 'fails', 'hangs'] as const
const HOWS = ['cancel', 'cancel without the program', 'new input'] as const

interface Spec {
  readonly kinds: readonly (typeof KINDS)[number][]
  readonly inSubgraph: boolean
  readonly how: (typeof HOWS)[number]
  readonly frequency: 'step' | 'boundary'
}

const spec: fc.Arbitrary<Spec> = fc.record({
  kinds: fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 5 }),
  inSubgraph: fc.boolean(),
  how: fc.constantFrom(...HOWS),
  frequency: fc.constantFrom('step' as const, 'boundary' as const),
})

const state = { done: append<string>(), seen: append<{ readonly done: readonly string[] }>() }

/** First looks at what is there, then runs all kinds side by side; the second time all of them are done at once. */
function program({ kinds, inSubgraph }: Spec, world: { readonly begun: () => void; second: boolean }) {
  const looking = graph({ name: 'outer', version: '1.0.0', state })
    .node('look', ({ done }) => ({ seen: { done } }))
    .edge(START, 'look')
  const names = kinds.map((_, i) => `n${i}`)
  const withNodes = <Made>(made: Made): Made =>
    kinds.reduce(
      (all, kind, i) =>
        (all as unknown as typeof looking).node(`n${i}`, {
          retry: { attempts: 1 },
          async run(_, ctx) {
            const does = world.second ? 'done' : kind
            if (does === 'fails') throw new Error('fails')
            if (does === 'asks') await ctx.pause('well?')
            if (does === 'hangs') {
              world.begun()
              await new Promise((_, reject) =>
                ctx.abortSignal.addEventListener('abort', () => reject(ctx.abortSignal.reason)),
              )
            }
            return { done: [`n${i} of ${ctx.runId}`] }
          },
        }) as unknown as Made,
      made,
    )
  if (!inSubgraph) return names.reduce((made, name) => made.edge('look', name as never), withNodes(looking))
  const inner = withNodes(graph({ name: 'inner', version: '1.0.0', state: { done: state.done } }))
  const sub = names.reduce((made, name) => made.edge(START, name as never), inner)
  return looking.node('sub', sub).edge('look', 'sub')
}

/** The results that a run has on record. */
async function recorded(hf: Holdfast, run: string): Promise<readonly string[]> {
  const found = new Set<string>()
  for await (const { body } of (await hf.log('t')).entries()) {
    for (const event of recordedEvents(body)) {
      if (event.type === 'run' && event.run !== run) return [...found].sort()
      if (event.type !== 'step' || event.status !== 'completed') continue
      const [, node] = /(?:^|\/)\d+:(n\d)$/.exec(event.step) ?? []
      if (node) found.add(`${node} of ${run}`)
    }
  }
  return [...found].sort()
}

describe('the results of a run that is ended', () => {
  it('are all in the state that the next one begins with, whoever ended it and however', () =>
    fc.assert(
      fc.asyncProperty(spec, async (drawn) => {
        // It hears at once that it is interrupted, and its lease does not run out meanwhile: then another would end it.
        await using hf = new Holdfast(new LogStore(await openDriver('memory:'), { clock: hurriedClock() }))
        const hanging = drawn.kinds.filter((kind) => kind === 'hangs').length
        let left = hanging
        let all = () => {}
        const hang = new Promise<void>((resolve) => {
          all = resolve
        })
        const world = { begun: () => --left === 0 && all(), second: false }
        const thread = hf.thread(program(drawn, world), 't')
        const running = thread.run({ input: {}, leaseMs: 20_000, frequency: drawn.frequency })
        if (hanging > 0) await hang
        else await running
        const { run: begun, inputs } = (await hf.log('t')).fold.state as RunState
        const run = begun?.id ?? inputs?.[0]?.id ?? ''
        if (drawn.how === 'cancel') await thread.cancel()
        // New input waits for a failed run, which is resumed first.
        else if (drawn.how === 'cancel without the program' || drawn.kinds.includes('fails'))
          await hf.inspect('t').cancel()
        world.second = true
        const next = hf.thread(program(drawn, world), 't')
        const after = await next.run({
          input: { seen: [] },
          onPaused: 'cancel',
          busy: drawn.how === 'new input' ? 'interrupt' : 'queue',
        })
        await running
        const { done = [] } = after.state.seen.at(-1) ?? {}
        expect([...done].sort()).toEqual(await recorded(hf, run))
        expect(after.state.done).toHaveLength(done.length + drawn.kinds.length)
      }),
      randomly(rounds(20)),
    ))

  const toEuros = ({ cents, ...rest }: Record<string, unknown>) =>
    cents === undefined ? rest : { ...rest, euros: (cents as number) / 100 }
  const paying = (version: 1 | 2) =>
    graph({
      name: 'paying',
      version: '1.0.0',
      state:
        version === 1
          ? { cents: last<number>(), note: last<string>() }
          : { euros: last<number>(), note: last<string>() },
      stateVersion: version,
      ...(version === 1 ? {} : { migrations: { 2: { state: toEuros, update: toEuros } } }),
    } as never)
      .node('pay', () => ({ cents: 500 }) as never)
      .node('ask', async (_, ctx) => ({ note: await ctx.pause<string>('well?') }) as never)
      .edge(START, 'pay')
      .edge(START, 'ask')

  it('are led to the version of the program that comes next', async () => {
    await using hf = await openHoldfast('memory:')
    await hf.thread(paying(1), 't').run({ input: {} })
    await hf.inspect('t').cancel()
    const thread = hf.thread(paying(2), 't')
    expect(await thread.state()).toMatchObject({ euros: 5 })
    expect((await thread.run({ input: { note: 'x' } as never })).state).toMatchObject({ euros: 5, note: 'x' })
  })

  it('do not undo what a fork sets, with the program or without', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(paying(1), 't')
    await thread.run({ input: {} })
    await hf.inspect('t').cancel()
    const [newest] = await thread.history()
    const forks = [
      await thread.at(newest?.id ?? '').fork({ set: { cents: 7 } as never }),
      hf.thread(paying(1), 't', {
        branch: (
          await hf
            .inspect('t')
            .look(newest?.id ?? '')
            .fork({ set: { cents: 7 } })
        ).branch,
      }),
    ]
    for (const fork of forks) expect(await fork.state()).toEqual({ cents: 7 })
  })

  it('are compared by a replay with what the program makes of them', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(paying(1), 't')
    await thread.run({ input: {} })
    await hf.inspect('t').cancel()
    expect(await thread.replay()).toMatchObject({ status: 'incomplete' })
    await thread.run({ input: { note: 'x' } as never })
    await thread.cancel()
    expect(await thread.replay()).toMatchObject({ status: 'incomplete' })
  })
})
