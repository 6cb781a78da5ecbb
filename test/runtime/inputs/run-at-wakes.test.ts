import { END, flow, graph, Holdfast, reduced, START } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { DUE } from '#src/log/contract.js'
import { set } from '#src/log/entry/ops.js'
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

const broken = { is: true }
const parks = graph({
  name: 'parks',
  version: '1.0.0',
  state: {
    x: reduced<string, string>(undefined, (_, x) => {
      if (broken.is) throw new Error('bad reducer')
      return x
    }),
  },
})
  .node('a', () => ({}))
  .edge(START, 'a')
  .edge('a', END)

it('a parked thread is tried again when input comes that was left for later, and rests if that fails', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  broken.is = true
  const thread = hf.thread(parks, 't')
  await thread.enqueue({ x: 'later' }, { runAt: clock.now() + HOUR })
  expect(await thread.run({ input: { x: 'first' } })).toMatchObject({ status: 'failed' })
  const wakeAt = async () => (await hf.threads()).threads[0]?.wakeAt
  expect((await wakeAt())?.getTime()).toBe(clock.now() + HOUR)
  const worker = hf.worker({ programs: [parks], handleSignals: false })
  const turned = async (isIt: () => Promise<boolean>) =>
    until(async () => {
      await clock.advance(250)
      return isIt()
    })
  await clock.advance(HOUR)
  await turned(async () => (await wakeAt()) === null)
  expect(await hf.queueAge()).toMatchObject({ due: 0 })
  // It comes with the next attempt, after the one before it.
  broken.is = false
  await thread.wake()
  await turned(async () => (await hf.threads()).threads[0]?.status === 'completed')
  expect(await thread.state()).toEqual({ x: 'later' })
  await worker.stop()
})

it('a thread that crashes its workers is tried again when input comes that was left for later, and then left alone', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  const thread = hf.thread(sleeper, 't')
  const runAt = clock.now() + HOUR
  await thread.enqueue('first')
  await thread.enqueue('later', { runAt })
  // As a worker leaves it that dies: claimed again and again without progress, the last time alone.
  const crash = async () => {
    const log = await hf.log('t')
    await log.update(() => [{ kind: 'input', ops: [set('claims', 5), set('alone', 1)], index: { wakeAt: DUE } }])
  }
  const parked = async () => (await hf.threads()).threads[0]?.status === 'failed'
  await crash()
  await using first = hf.worker({ programs: [sleeper], maxCrashes: 5, handleSignals: false })
  await until(async () => {
    await clock.advance(250)
    return parked()
  })
  expect((await hf.threads()).threads[0]?.wakeAt?.getTime()).toBe(runAt)
  await first.stop()
  await clock.advance(HOUR)
  await crash()
  await using second = hf.worker({ programs: [sleeper], maxCrashes: 5, handleSignals: false })
  await until(async () => {
    await clock.advance(250)
    return (await hf.threads()).threads[0]?.wakeAt === null
  })
  await second.stop()
  const { later = [], inputs = [] } = (await hf.log('t')).fold.state as Record<string, unknown[]>
  expect([later.length, inputs.length]).toEqual([0, 2])
})

it('a run that waits is not due because of input left for a time that has passed', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  const child = flow<number, number>({ name: 'child', version: '1.0.0' }, (_ctx, n) => n)
  const waits = flow<string, unknown>({ name: 'waits', version: '1.0.0' }, async (ctx) => ctx.receive('go'))
  const parent = flow<string, unknown>({ name: 'parent', version: '1.0.0' }, async (ctx, x) =>
    x === 'later' ? x : [await ctx.run(child, 'c', 1), await ctx.run(waits, 'w', x)],
  )
  const thread = hf.thread(parent, 't')
  await thread.enqueue('first')
  const { run } = await thread.enqueue('dropped', { runAt: clock.now() + HOUR })
  await thread.enqueue('later', { runAt: clock.now() + HOUR })
  await using worker = hf.worker({ programs: [parent, child, waits], handleSignals: false })
  const turned = async (isIt: () => Promise<boolean>) =>
    until(async () => {
      await clock.advance(250)
      return isIt()
    })
  const find = async (id: string) => (await hf.threads()).threads.find(({ thread: one }) => `${one}`.startsWith(id))
  await turned(async () => (await find('t/w'))?.status === 'waiting' && (await find('t'))?.status === 'waiting')
  await thread.cancel({ run: run as string })
  await clock.advance(HOUR)
  await turned(async () => (await hf.queueAge()).due === 0 && (await find('t'))?.wakeAt === null)
  await hf.inspect((await find('t/w'))?.thread as string).signal('go', 1)
  await turned(async () => (await find('t'))?.status === 'completed')
  expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'later' })
  await worker.stop()
})

it('a thread that another awaited takes input that was left for later', async () => {
  await using opened = await open()
  const { clock, hf } = opened
  const parent = flow<string, unknown>({ name: 'parent', version: '1.0.0' }, (ctx) =>
    ctx.run(sleeper, 'c', 'now', { thread: 'shared' }),
  )
  expect(await hf.thread(parent, 't').run({ input: 'x' })).toMatchObject({ status: 'completed' })
  const shared = hf.thread(sleeper, 'shared')
  await shared.enqueue('later', { runAt: clock.now() + HOUR })
  await clock.advance(HOUR)
  expect(await shared.run()).toMatchObject({ status: 'completed', output: 'later' })
})
