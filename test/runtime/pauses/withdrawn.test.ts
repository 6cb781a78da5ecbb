import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

const named = { name: 'p', version: '1.0.0' }

describe('a question that answered itself', () => {
  it('is taken back, and does not keep the run awake', async () => {
    await using hf = await openHoldfast('memory:')
    let asked = 0
    const pay = flow<string, string>(named, async (ctx) => {
      await ctx.step(
        'pay',
        {
          effect: 'reconcilable',
          reconcile: () => (asked++ === 0 ? { outcome: 'unknown' } : { outcome: 'executed', result: 'paid' }),
        },
        () => {
          throw new Error('no reply')
        },
      )
      await ctx.sleep(3_600_000)
      return 'done'
    })
    const thread = hf.thread(pay, 't')
    const outcome = await thread.run({ input: 'a' })
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    await thread.answer(outcome.pauses[0].id, { outcome: 'not-executed' })
    expect(await thread.run({ signal: AbortSignal.timeout(5000) })).toMatchObject({ status: 'paused', pauses: [] })
  })
})
