import { END, graph, last, openHoldfast, reduced, START } from 'holdfast'
import { expect, it } from 'vitest'

it('keeps what an effect did when a branch or a reducer throws after it', async () => {
  for (const place of ['branch', 'reducer']) {
    let paid = 0
    let broken: string | undefined = place
    const program = graph({
      name: 'shop',
      version: '1.0.0',
      state: {
        receipt: reduced<string, string>(undefined, (_, update) => {
          if (broken === 'reducer') throw new Error('broken reducer')
          return update
        }),
        sent: last<boolean>(),
      },
    })
      .node('pay', {
        effect: 'once',
        run: async (_, ctx) => {
          paid++
          await ctx.store.scope({ user: 'ada' }).collection('receipts').put('r', paid)
          return { receipt: 'r' }
        },
      })
      .node('send', () => ({ sent: true }))
      .edge(START, 'pay')
      .branch('pay', () => {
        if (broken === 'branch') throw new Error('broken branch')
        return 'send' as const
      }, ['send'])
      .edge('send', END)
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(program, 'x')
    expect(await thread.run({ input: {} })).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining(`broken ${place}`) },
    })
    broken = undefined
    // Nobody is asked what became of it.
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { receipt: 'r', sent: true } })
    expect(paid).toBe(1)
    expect(await hf.store.scope({ user: 'ada' }).collection('receipts').get('r')).toMatchObject({ value: 1 })
  }
})
