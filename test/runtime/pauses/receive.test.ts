import { flow, openHoldfast } from 'holdfast'
import { expect, it } from 'vitest'

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await Promise.resolve()
}

it('hands a signal that is there to the program, whatever else is noted while it is taken', async () => {
  // However long the write takes that takes the signal: one of these falls into it.
  for (let later = 0; later < 20; later++) {
    await using hf = await openHoldfast('memory:')
    const heard: unknown[] = []
    const program = flow<string, unknown>({ name: 'asks', version: '1.0.0' }, async (ctx, input) => {
      if (input === 'begin') return 'begun'
      const asked = (async () => {
        await turns(later)
        return ctx.pause('well?')
      })()
      heard.push(await ctx.receive('news'))
      return asked
    })
    const thread = hf.thread(program, 't')
    await thread.run({ input: 'begin' })
    await thread.signal('news', 'it works')
    const asked = await thread.run({ input: 'listen' })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await thread.answer(asked.pauses[0]?.id ?? '', 'yes')
    await thread.run()
    expect(heard, `${later} turns later`).toEqual(['it works', 'it works'])
  }
})
