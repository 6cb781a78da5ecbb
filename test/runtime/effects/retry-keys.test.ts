import { flow, NotExecutedError, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('a step that failed for certain', () => {
  it('has a new key when its run is taken up again', async () => {
    await using hf = await openHoldfast('memory:')
    const keys: string[] = []
    const pay = flow<string, string>({ name: 'pays', version: '1.0.0' }, (ctx) =>
      ctx.step('pay', { effect: 'idempotent', retry: { attempts: 1 } }, ({ idempotencyKey }) => {
        keys.push(idempotencyKey)
        // The other side remembers a refusal with its key.
        if (keys.indexOf(idempotencyKey) < keys.length - 1 || keys.length === 1) throw new NotExecutedError('refused')
        return 'paid'
      }),
    )
    const thread = hf.thread(pay, 't')
    expect((await thread.run({ input: 'a' })).status).toBe('failed')
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'paid' })
    expect(new Set(keys).size).toBe(2)
  })
})
