import { flow, openHoldfast, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, FAST, setUp } from './agent-setup.js'

const { talk } = setUp()

describe('an outcome says', () => {
  it('how often its run was resumed', async () => {
    await using hf = await openHoldfast('memory:')
    const twice = flow({ name: 'twice', version: '1.0.0' }, async (ctx) => [await ctx.pause(1), await ctx.pause(2)])
    const thread = hf.thread(twice, 't')
    const seen: number[] = []
    for (let outcome = await thread.run({ input: 1 }); ; outcome = await thread.run()) {
      seen.push(outcome.resumed)
      if (outcome.status !== 'paused') break
      await thread.answer(outcome.pauses[0]?.id ?? '', true)
    }
    expect(seen).toStrictEqual([0, 1, 2])
    expect((await thread.run({ input: 2 })).resumed).toBe(0)
  })

  it('what is asked in the order of the calls, however long each took to ask', async () => {
    const late = (ms: number) =>
      tool({
        inputSchema: z.object({}),
        needsApproval: () => new Promise<boolean>((resolve) => setTimeout(() => resolve(true), ms)),
        execute: () => 1,
      })
    const { thread } = await talk([calls(['zeta'], ['beta'], ['alpha'], ['beta'])], {
      tools: { alpha: late(1), beta: late(15), zeta: late(40) },
    })
    const outcome = await thread.run({ input: 'Go' })
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    expect(outcome.pauses.map(({ question }) => (question as { readonly tool: string }).tool)).toStrictEqual([
      'zeta',
      'beta',
      'alpha',
      'beta',
    ])
    expect((await thread.pauses()).map(({ id }) => id)).toStrictEqual(outcome.pauses.map(({ id }) => id))
  })

  it('what kind of failure a model call was, and how long the provider asks to wait', async () => {
    const { thread } = await talk([{ error: { status: 429, headers: { 'retry-after': '600' } } }], {
      retry: { ...FAST, attempts: 2 },
    })
    expect(await thread.run({ input: 'Hi' })).toMatchObject({
      status: 'failed',
      error: { code: 'step-failed', kind: 'rate-limit', retryAfterMs: 600_000 },
    })
    expect(await thread.waitFor()).toMatchObject({ error: { kind: 'rate-limit', retryAfterMs: 600_000 } })
  })

  it('in words for the end user that a conversation is of another version', async () => {
    await using hf = await openHoldfast('memory:')
    const make = (version: string) => flow({ name: 'p', version }, (ctx) => ctx.pause('?'))
    await hf.thread(make('1.0.0'), 't').run({ input: 1 })
    const outcome = await hf.thread(make('2.0.0'), 't').run()
    expect(outcome).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('1.0.0'),
      message: expect.stringContaining('None of it is lost'),
    })
    expect(outcome.message).not.toMatch(/1\.0\.0|compatibleWith/)
  })
})
