import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { gate } from '../../support/gate.js'
import { until } from '../../support/until.js'

const named = (name: string) => ({ name, version: '1.0.0' })

/** A process that stands still before the first append to threads whose ids start like this. */
function stalling(driver: Driver, start: string) {
  const reached = gate()
  const goOn = gate()
  const stalled = new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      const method = value.bind(target) as (...args: unknown[]) => unknown
      if (name !== 'append') return method
      return async (batch: Parameters<Driver['append']>[0]) => {
        if (!batch.some(({ log }) => log.thread.startsWith(start))) return method(batch)
        reached.open()
        await goOn.passed
        return method(batch)
      }
    },
  })
  return { driver: stalled, reached, goOn }
}

it('does not run a child that was begun after its parent had been taken over and cancelled', async () => {
  const clock = virtualClock()
  const store = await openDriver('memory:', { clock })
  let worked = 0
  const child = flow<number, void>(named('child'), async (ctx) => ctx.step('work', () => void worked++))
  const parent = flow<number, unknown>(named('parent'), async (ctx, n) => ctx.run(child, 'c', n))
  const { driver, reached, goOn } = stalling(store, 't/')
  const stalled = new Holdfast(new LogStore(driver, { clock }))
  const running = stalled.thread(parent, 't').run({ input: 1 })
  running.catch(() => {})
  await reached.passed
  // Its process stands still: nothing renews its lease, and the thread is cancelled elsewhere.
  const hf = new Holdfast(new LogStore(store, { clock }))
  clock.setNow(clock.now() + 60_000)
  await (await hf.log('t')).claim({ owner: 'successor', ms: 10_000, force: true }).then((claim) => claim.release())
  expect(await hf.inspect('t').cancel()).toBe(true)
  expect((await hf.threads()).threads).toHaveLength(1)
  goOn.open()
  const worker = hf.worker({ programs: [parent, child], handleSignals: false })
  await until(async () => {
    await clock.advance(1000)
    const { threads } = await hf.threads()
    return threads.length === 2 && threads.every(({ status, wakeAt }) => status === 'failed' && wakeAt === null)
  }, 1)
  await worker.stop()
  expect(worked).toBe(0)
  await running.catch(() => {})
  await hf.close()
})

it('gives a child the priority of the run that awaits it', async () => {
  await using hf = new Holdfast(new LogStore(await openDriver('memory:')))
  const child = flow<number, unknown>(named('child'), async (ctx) => ctx.receive('never'))
  const parent = flow<number, unknown>(named('parent'), async (ctx, n) => ctx.run(child, 'c', n))
  await hf.thread(parent, 't').enqueue(1, { priority: 7, limitKey: 'customer' })
  await using _ = hf.worker({ programs: [parent, child], handleSignals: false })
  await hf.inspect('t').waitFor()
  const [found] = (await hf.threads({ parent: 't' })).threads
  expect(found?.metadata).toMatchObject({ 'holdfast.priority': 7 })
})
