import { flow, isHoldfastError, openHoldfast, type PauseOptions } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function asking(options: PauseOptions) {
  const clock = virtualClock()
  const hf = await openHoldfast('memory:', { clock })
  open.push(hf)
  let looks = 0
  const program = flow({ name: 'asks', version: '1.0.0' }, async (ctx) => {
    await ctx.step('look', () => ++looks)
    return ctx.pause({ ask: 'How much?' }, options)
  })
  const thread = hf.thread(program, 'thread-1')
  const paused = await thread.run({ input: null })
  if (paused.status !== 'paused') throw new Error(paused.status)
  return { hf, clock, thread, program, pause: paused.pauses[0]?.id as string, looked: () => looks }
}

const even = z.object({ amount: z.number().refine((amount) => amount % 2 === 0, 'must be even') })

describe('an answer that fits the JSON Schema and not the program’s own check', () => {
  it('leaves the question open, with the reason, and the next answer is taken', async () => {
    const { hf, thread, pause, looked } = await asking({ schema: even })
    await thread.answer(pause, { amount: 3 }, { by: 'ada' })
    expect(await thread.run()).toMatchObject({
      status: 'paused',
      pauses: [{ id: pause, refused: { by: 'ada', reason: expect.stringContaining('must be even') } }],
    })
    expect(await hf.threads()).toMatchObject({ threads: [{ status: 'waiting_human' }] })
    expect((await hf.pauses()).pauses).toMatchObject([{ id: pause, refused: { by: 'ada' } }])
    await thread.answer(pause, { amount: 4 })
    expect(await thread.run()).toMatchObject({ status: 'completed', output: { amount: 4 } })
    expect(looked()).toBe(1)
  })

  it('is told as an event, and replays', async () => {
    const { hf, thread, pause, program } = await asking({ schema: even })
    await thread.answer(pause, { amount: 3 })
    const events = []
    for await (const event of thread.stream({})) if (event.type === 'pause') events.push(event)
    expect(events).toMatchObject([{ pause, refused: expect.stringContaining('must be even') }])
    await thread.answer(pause, { amount: 4 })
    await thread.run()
    expect(await hf.thread(program, 'thread-1').replay()).toMatchObject({ status: 'identical' })
  })

  it('is still the first answer until the program has looked at it', async () => {
    const { thread, pause } = await asking({ schema: even })
    await thread.answer(pause, { amount: 3 })
    const second = await thread.answer(pause, { amount: 4 }).catch((error: unknown) => error)
    expect(isHoldfastError(second, 'pause-closed')).toBe(true)
  })

  it('fails the run where it is the program’s own answer to a question that expired', async () => {
    const { thread, clock } = await asking({ schema: even, expiresInMs: 1, onExpire: { answer: { amount: 3 } } })
    await clock.advance(2)
    expect(await thread.run()).toMatchObject({ status: 'failed', error: { code: 'invalid-value' } })
  })
})

describe('an answer that JSON has no word for', () => {
  const jsonSchema = {
    type: 'object',
    properties: {
      amount: { type: 'number', maximum: 100 },
      size: { maximum: 100 },
      note: { type: 'string' },
      any: {},
      more: { type: 'object', additionalProperties: false },
    },
    additionalProperties: false,
  } as const

  it.each([
    ['NaN above a maximum', { amount: Number.NaN }, '$.amount', /NaN/],
    ['NaN with no type', { size: Number.NaN }, '$.size', /NaN/],
    ['Infinity', { amount: Number.POSITIVE_INFINITY }, '$.amount', /Infinity/],
    ['a Date as a closed object', { more: new Date() }, '$.more', /a Date/],
    ['a Date as the whole answer', new Date(), '$', /a Date/],
    ['a bigint', { amount: 5n }, '$.amount', /a bigint/],
    ['bytes', { note: new Uint8Array(3) }, '$.note', /bytes/],
    ['a Date in a list', { any: 1, note: [new Date()] }, '$.note', /type/],
  ])('is refused by name: %s', async (_, value, path, message) => {
    const { thread, pause } = await asking({ jsonSchema })
    const error = await thread.answer(pause, value).catch((thrown: unknown) => thrown)
    if (!isHoldfastError(error, 'invalid-value')) throw error
    expect(error.data.path).toBe(path)
    expect(error.message).toMatch(message)
  })

  it('is taken where the schema says nothing', async () => {
    const { thread, pause } = await asking({ jsonSchema })
    const value = { any: { at: new Date(5), cents: 5n, bytes: new Uint8Array([1]), none: Number.NaN } }
    await thread.answer(pause, value)
    expect(await thread.run()).toMatchObject({ output: value })
  })
})
