import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('an input whose run was cancelled', () => {
  it('is not taken again when it is given again with its key', async () => {
    await using hf = await openHoldfast('memory:')
    let calls = 0
    const thread = hf.thread(
      flow<string, unknown>({ name: 'asks', version: '1.0.0' }, async (ctx) => {
        calls++
        return ctx.pause('Go on?')
      }),
      't',
    )
    expect((await thread.run({ input: 'a', key: 'k' })).status).toBe('paused')
    await thread.cancel()
    expect(await thread.run({ input: 'a', key: 'k' })).toMatchObject({ status: 'failed', error: { code: 'cancelled' } })
    expect(calls).toBe(1)
  })

  it('is not taken again either when new input had cancelled it', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(
      flow<string, unknown>({ name: 'asks', version: '1.0.0' }, (ctx, input) => ctx.pause(`Go on with ${input}?`)),
      't',
    )
    await thread.run({ input: 'a', key: 'a' })
    await thread.run({ input: 'b', key: 'b', onPaused: 'cancel' })
    const again = await thread.run({ input: 'a', key: 'a' })
    expect(again).toMatchObject({ status: 'failed', error: { code: 'cancelled' } })
  })
})
