import { flow, type FlowProgram, Holdfast, openHoldfast } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { decodeHeader } from '#src/codec/header.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { describe, expect, it } from 'vitest'

const MINUTE = 60_000

/** Asks two questions, one after the other; a later version puts the first in other words, and has to ask it again. */
const order = (version: string, first: string): FlowProgram<number, string> =>
  flow({ name: 'order', version }, async (ctx) => {
    await ctx.pause(first, { key: 'first' })
    await ctx.pause('And then?', { key: 'second', expiresInMs: MINUTE, onExpire: { answer: 'late' } })
    return 'done'
  })

const before = order('1.0.0', 'Ready?')
const after = order('1.1.0', 'Are you ready?')

/** A run that stands at its first question again, while the second, which it does not come to, is open. */
async function standBack(hf: Holdfast) {
  const old = hf.thread(before, 't')
  const asked = await old.run({ input: 1 })
  if (asked.status !== 'paused') throw new Error(asked.status)
  await old.answer(asked.pauses[0].id, true)
  const again = await old.run({})
  if (again.status !== 'paused') throw new Error(again.status)
  const second = again.pauses[0].id
  const thread = hf.thread(after, 't')
  expect(await thread.run({})).toMatchObject({ status: 'paused' })
  return { thread, second }
}

describe('a question that the program does not come to any more', () => {
  it('lets those who wait for the run hear that it waits, once it is answered', async () => {
    await using hf = await openHoldfast('memory:')
    const { thread, second } = await standBack(hf)
    await thread.answer(second, 'then')
    expect(await thread.run({})).toMatchObject({ status: 'paused' })
    expect(await thread.waitFor()).toMatchObject({ status: 'paused' })
    const { seq } = (await hf.log('t')).fold
    // Whoever has more input is told that the run waits, and does not drive it over and over.
    expect(await thread.run({ input: 2, busy: 'queue' })).toMatchObject({ status: 'paused', input: 'queued' })
    expect((await hf.log('t')).fold.seq).toBe(seq + 1)
  })

  it('does not keep the thread due when it has expired', async () => {
    const clock = virtualClock()
    await using hf = new Holdfast(new LogStore(await openMemory({ clock }), { clock }))
    const { thread } = await standBack(hf)
    await clock.advance(2 * MINUTE)
    expect(await thread.run({})).toMatchObject({ status: 'paused' })
    const [found] = (await hf.threads()).threads
    expect(found).toMatchObject({ status: 'waiting_human', wakeAt: null })
    expect(await thread.waitFor()).toMatchObject({ status: 'paused' })
  })

  it('counts as answered when the program comes to it after all', async () => {
    await using hf = await openHoldfast('memory:')
    const { thread, second } = await standBack(hf)
    await thread.answer(second, 'then')
    const outcome = await thread.run({})
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    const first = outcome.pauses.find(({ id }) => id !== second)
    await thread.answer(first?.id ?? '', true)
    expect(await thread.run({})).toMatchObject({ status: 'completed', output: 'done' })
  })

  it('counts for a version that comes to it', async () => {
    await using hf = await openHoldfast('memory:')
    const { thread, second } = await standBack(hf)
    await thread.answer(second, 'then')
    expect(await thread.run({})).toMatchObject({ status: 'paused' })
    const later = flow<number, string>({ name: 'order', version: '1.2.0' }, (ctx) =>
      ctx.pause('And then?', { key: 'second', expiresInMs: MINUTE, onExpire: { answer: 'late' } }),
    )
    expect(await hf.thread(later, 't').run({})).toMatchObject({ status: 'completed', output: 'then' })
  })
})

it('answers that land while a run is about to wait are all heard', async () => {
  const driver = await openMemory()
  let onWait = async () => {}
  const slow = {
    ...driver,
    append: async (batch: Parameters<typeof driver.append>[0]) => {
      const { header } = batch[0]?.entries.at(-1) ?? {}
      if (header && decodeHeader(header).kind === 'wait') await onWait()
      return driver.append(batch)
    },
  }
  await using hf = new Holdfast(new LogStore(driver))
  await using slower = new Holdfast(new LogStore(slow as typeof driver))
  const three = flow<number, unknown>({ name: 'three', version: '1.0.0' }, (ctx) =>
    Promise.all(['a', 'b', 'c'].map((key) => ctx.pause(`${key}?`, { key }))),
  )
  const asked = await hf.thread(three, 't').run({ input: 1 })
  if (asked.status !== 'paused') throw new Error(asked.status)
  const answer = (key: string) =>
    hf.thread(three, 't').answer(asked.pauses.find(({ question }) => question === `${key}?`)?.id ?? '', key)
  await answer('a')
  const left = ['b', 'c']
  onWait = async () => {
    const next = left.shift()
    if (next) await answer(next)
  }
  expect(await slower.thread(three, 't').run()).toMatchObject({ status: 'completed', output: ['a', 'b', 'c'] })
})
