import { flow, Holdfast, type WorkerEvent } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { CorruptError } from 'holdfast/errors'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'

const hello = flow({ name: 'hello', version: '1.0.0' }, (ctx) => ctx.step('say', () => 'hello'))

it.each([1, 10])(
  'a thread that cannot be read is left alone for longer each time, and others are not held up (concurrency %i)',
  async (concurrency) => {
    const clock = virtualClock()
    const inner = await openDriver('memory:', { clock })
    let damaged = false
    let reads = 0
    const driver: Driver = new Proxy(inner, {
      get(target, name) {
        const value = Reflect.get(target, name, target) as unknown
        if (name !== 'tail') return typeof value === 'function' ? value.bind(target) : value
        return async (...args: Parameters<Driver['tail']>) => {
          if (!damaged || args[0].thread !== 'bad') return target.tail(...args)
          // Without an end to it the test would never come back.
          if (++reads > 1000) damaged = false
          throw new CorruptError('A byte is not what it was.', {})
        }
      },
    })
    await using hf = new Holdfast(new LogStore(driver, { clock, cacheBytes: 0 }))
    await hf.thread(hello, 'bad').enqueue(null)
    damaged = true
    const events: WorkerEvent[] = []
    await using worker = hf.worker({
      programs: [hello],
      concurrency,
      pollMs: 500,
      handleSignals: false,
      onEvent: (event) => events.push(event),
    })
    await clock.advance(30_000)
    await hf.thread(hello, 'good').enqueue(null)
    await clock.advance(30_000)
    const errors = events.filter(({ type }) => type === 'error')
    expect(errors.length).toBeGreaterThan(3)
    expect(errors.length).toBeLessThan(10)
    expect(await hf.thread(hello, 'good').waitFor()).toMatchObject({ status: 'completed' })

    damaged = false
    await clock.advance(60_000)
    expect(await hf.thread(hello, 'bad').waitFor()).toMatchObject({ status: 'completed' })
    expect(worker.active).toBe(0)
  },
)
