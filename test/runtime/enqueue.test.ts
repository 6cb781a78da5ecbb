import { describe, expect, it } from 'vitest'
import { flow, graph, last, openHoldfast, START } from 'holdfast'

const double = flow<{ n: number }, number>({ name: 'double', version: '1.0.0' }, (ctx, { n }) =>
  ctx.step('double', () => n * 2),
)

describe('input left for a worker', () => {
  it('runs nothing by itself, and is taken by a worker, once per key', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(double, 't')
    await thread.enqueue({ n: 21 }, { key: 'm-1' })
    await thread.enqueue({ n: 21 }, { key: 'm-1' })
    expect((await hf.threads({ status: 'active' })).threads).toHaveLength(1)
    expect((await thread.history()).map(({ kind }) => kind)).toEqual(['input'])
    await using _ = hf.worker({ programs: [double], pollMs: 10, handleSignals: false })
    expect(await thread.waitFor({ timeoutMs: 10_000 })).toMatchObject({ status: 'completed', output: 42 })
    expect(await thread.run({ input: { n: 21 }, key: 'm-1' })).toMatchObject({ status: 'completed', output: 42 })
    expect((await hf.threads({ status: 'completed' })).threads).toHaveLength(1)
  })

  it('waits behind a question, which keeps its place', async () => {
    await using hf = await openHoldfast('memory:')
    const ask = flow<string, unknown>({ name: 'ask', version: '1.0.0' }, (ctx, input) => ctx.pause({ about: input }))
    const thread = hf.thread(ask, 't')
    const first = await thread.run({ input: 'one' })
    await thread.enqueue('two')
    expect((await hf.pauses()).pauses).toHaveLength(1)
    if (first.status !== 'paused') throw new Error(first.status)
    await thread.answer(first.pauses[0]?.id ?? '', 'yes')
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ question: { about: 'two' } }] })
  })

  it('is refused when it does not fit, with nothing written', async () => {
    await using hf = await openHoldfast('memory:')
    const count = graph({ name: 'count', version: '1.0.0', state: { n: last<number>() } })
      .node('a', () => ({}))
      .edge(START, 'a')
    await expect(hf.thread(count, 't').enqueue({ m: 1 } as never)).rejects.toMatchObject({ code: 'invalid-value' })
    expect((await hf.threads()).threads).toHaveLength(0)
    await hf.thread(double, 'd').run({ input: { n: 1 } })
    await expect(hf.thread(count, 'd').enqueue({ n: 1 })).rejects.toMatchObject({ code: 'incompatible' })
  })
})
