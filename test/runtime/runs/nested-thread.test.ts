import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('a step that runs another thread', () => {
  it('lets that thread have steps, and is still refused steps of its own', async () => {
    await using hf = await openHoldfast('memory:')
    const inner = flow<string, string>({ name: 'inner', version: '1.0.0' }, (ctx) => ctx.step('own', () => 'inner'))
    const outer = flow<string, unknown>({ name: 'outer', version: '1.0.0' }, (ctx) =>
      ctx.step('calls', { retry: { attempts: 1 } }, async () => {
        const { status } = await hf.thread(inner, 'inner').run({ input: 'a' })
        const refused = await ctx.step('nested', () => 1).catch((error: { code: string }) => error.code)
        return [status, refused]
      }),
    )
    const outcome = await hf.thread(outer, 'outer').run({ input: 'a' })
    expect(outcome).toMatchObject({ status: 'completed', output: ['completed', 'invalid-program'] })
  })
})
