import { flow, type Holdfast, isHoldfastError, openHoldfast } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let hf: Holdfast
let pause: string

beforeEach(async () => {
  hf = await openHoldfast('memory:')
  const ask = flow({ name: 'ask', version: '1.0.0' }, (ctx) => ctx.pause('well?'))
  await hf.thread(ask, 'thread-1').run({ input: null })
  pause = (await hf.inspect('thread-1').pauses())[0]?.id as string
})
afterEach(() => hf.close())

describe('who it was', () => {
  const names = [
    'ada\nanswer  p-1 by root',
    'ada\u001b[2J',
    'ada\u202eadmin',
    'ada\u200b',
    'ada\u{e0041}',
    '\ud800',
    'x'.repeat(257),
    ' ',
    '',
    5,
    { toString: () => 'ada' },
  ]

  it.each(names.map((by) => [JSON.stringify(by), by]))('is refused as %s, by all who take it', async (_, by) => {
    const thread = hf.inspect('thread-1')
    const given = { by: by as string }
    for (const take of [
      () => thread.answer(pause, true, given),
      () => thread.defer(pause, { until: new Date(Date.now() + 60_000), ...given }),
      () => thread.cancel(given),
    ]) {
      const error = await take().catch((thrown: unknown) => thrown)
      if (!isHoldfastError(error, 'invalid-value')) throw error
      expect(error.data.field).toBe('by')
    }
    const [refused] = await hf.answer([{ thread: 'thread-1', pause, value: true }], given)
    expect(isHoldfastError(refused?.error, 'invalid-value')).toBe(true)
    expect(await thread.pauses()).toHaveLength(1)
  })

  it('may be any name that can be read', async () => {
    await hf.inspect('thread-1').answer(pause, true, { by: 'Ada Lovelace <ada@example.com> 日本' })
    const late = await hf
      .inspect('thread-1')
      .answer(pause, false)
      .catch((error: unknown) => error)
    expect(String(late)).toContain('by Ada Lovelace <ada@example.com> 日本')
  })
})
