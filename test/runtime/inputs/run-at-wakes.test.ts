import { flow, Holdfast } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { expect, it } from 'vitest'
import { until } from '../../support/until.js'

const HOUR = 3_600_000
const sleeper = flow<string, string>({ name: 'sleeper', version: '1.0.0' }, async (ctx, x) => {
  if (x === 'sleep') await ctx.sleep(HOUR)
  return x
})

async function open() {
  const clock = virtualClock()
  const hf = new Holdfast(new LogStore(await openMemory({ clock }), { clock }))
  return { clock, hf, [Symbol.asyncDispose]: () => hf.close() }
}

it('a run that sleeps wakes although input for the same moment was dropped', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  const thread = hf.thread(sleeper, 't')
  expect(await thread.run({ input: 'sleep' })).toMatchObject({ status: 'paused' })
  const wakeAt = (await hf.threads()).threads[0]?.wakeAt as Date
  const { run } = await thread.enqueue('later', { runAt: wakeAt })
  expect(await thread.cancel({ run: run as string })).toBe(true)
  expect((await hf.threads()).threads[0]?.wakeAt).toEqual(wakeAt)
  await clock.advance(HOUR)
  expect(await thread.run()).toMatchObject({ status: 'completed', output: 'sleep' })
})

it('a copy of a thread with input for later is not due for ever', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  const runAt = new Date(clock.now() + HOUR)
  await hf.thread(sleeper, 'fresh').enqueue('later', { runAt })
  const used = hf.thread(sleeper, 'used')
  await used.run({ input: 'now' })
  await used.enqueue('later', { runAt })
  for (const id of ['fresh', 'used']) {
    const { seq } = (await hf.log(id)).fold
    await hf.fork(id, { branch: 'copy', at: seq })
  }
  await clock.advance(HOUR)
  const worker = hf.worker({ programs: [sleeper], handleSignals: false })
  await until(async () => {
    await clock.advance(250)
    const { threads } = await hf.threads()
    return threads.every(({ wakeAt }) => wakeAt === null)
  })
  await worker.stop()
  expect(await hf.queueAge()).toMatchObject({ due: 0 })
})
