import { append, graph, openHoldfast, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('a node that ends while its siblings wait', () => {
  it('is recorded, also when the run was taken up again before', async () => {
    await using hf = await openHoldfast('memory:')
    const calls: string[] = []
    const waiting = graph({ name: 'waiting', version: '1.0.0', state: { log: append<string>() } })
      .node('a', () => ({ log: ['a'] }))
      .node('b', () => {
        calls.push('b')
        return { log: ['b'] }
      })
      .node('c', async (_state, ctx) => {
        await ctx.pause('first')
        await ctx.pause('second')
        return { log: ['c'] }
      })
      .edge(START, 'a')
      .edge(START, 'b')
      .edge(START, 'c')
      .pauseBefore('b')
    const thread = hf.thread(waiting, 't')
    let outcome = await thread.run({ input: {} })
    for (let i = 0; outcome.status === 'paused' && i < 5; i++) {
      for (const { id, kind } of outcome.pauses) await thread.answer(id, kind === 'before' ? { approved: true } : 'yes')
      outcome = await thread.run()
    }
    expect(outcome).toMatchObject({ status: 'completed', state: { log: ['a', 'b', 'c'] } })
    expect(calls).toStrictEqual(['b'])
  })
})
