import { flow, Holdfast } from 'holdfast'
import { type ItemDriver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.js'

const double = flow<number, number>({ name: 'double', version: '1.0.0' }, (ctx, n) => ctx.step('double', () => n * 2))

/** A Holdfast whose sweeps are seen, and wait for `gate`. */
async function openSwept(gate: () => Promise<void>) {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  const sweeps: number[] = []
  const sweepItems: ItemDriver['sweepItems'] = async (now, limit) => {
    sweeps.push(limit)
    await gate()
    return (driver as ItemDriver).sweepItems(now, limit)
  }
  const seen = new Proxy(driver, {
    get: (target, name) => {
      if (name === 'sweepItems') return sweepItems
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  return { clock, sweeps, hf: new Holdfast(new LogStore(seen, { clock })) }
}

describe('the sweeping of a worker', () => {
  it('frees what has expired, a bounded number at a time, without waiting a minute for the rest', async () => {
    const { clock, sweeps, hf } = await openSwept(async () => {})
    const facts = hf.store.scope({ user: 'u' }).collection<number>('facts', { ttlMs: 1000 })
    await facts.batch(Array.from({ length: 2500 }, (_, i) => ({ put: `k${i}`, value: i })))
    await using _ = hf.worker({ programs: [double], pollMs: 100, handleSignals: false })
    await clock.advance(30_000)
    expect(sweeps).toEqual([])
    const named = async () => (await hf.store.collections()).collections.length
    expect(await named()).toBe(1)
    await clock.advance(31_000)
    await until(async () => {
      await clock.advance(100)
      return (await named()) === 0
    })
    expect(sweeps.length).toBeGreaterThanOrEqual(3)
    expect(Math.max(...sweeps)).toBeLessThanOrEqual(1000)
    expect(clock.monotonic()).toBeLessThan(120_000)
  })

  it('removes threads that have expired, of its own tenant where it has one, and tells what', async () => {
    const { clock, hf } = await openSwept(async () => {})
    for (const tenant of ['one', 'other']) await hf.tenant(tenant).thread(double, 't').run({ input: 1 })
    const saved = await (await hf.tenant('one').log('saved')).update(() => [{ kind: 'step', index: { status: '' } }])
    expect(saved.entries.length).toBe(1)
    await clock.advance(8 * 24 * 60 * 60 * 1000)
    const swept = async (on: Holdfast) => {
      const told = new Promise<number>((resolve) => {
        const worker = on.worker({
          programs: [double],
          handleSignals: false,
          onEvent: (event) => {
            if (event.type === 'swept') void worker.stop().then(() => resolve(event.swept.threads))
          },
        })
      })
      let threads: number | undefined
      void told.then((count) => (threads = count))
      await until(async () => {
        await clock.advance(5000)
        return threads !== undefined
      })
      return threads
    }
    const names = async (tenant: string) => (await hf.tenant(tenant).threads()).threads.map(({ thread }) => thread)
    expect(await swept(hf.tenant('one'))).toBe(1)
    expect([await names('one'), await names('other')]).toEqual([['saved'], ['t']])
    expect(await swept(hf)).toBe(1)
    expect([await names('one'), await names('other')]).toEqual([['saved'], []])
    await hf.close()
  })

  it('keeps no thread waiting, however long it takes', async () => {
    let open: () => void = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve))
    const { clock, sweeps, hf } = await openSwept(() => opened)
    const worker = hf.worker({ programs: [double], pollMs: 100, handleSignals: false })
    await clock.advance(61_000)
    await until(() => sweeps.length === 1)
    const thread = hf.thread(double, 't')
    await thread.enqueue(21)
    await until(async () => {
      await clock.advance(200)
      return (await hf.threads({ status: 'completed' })).threads.length === 1
    })
    // One at a time, and stopping waits for it: whoever closes the store next would break it off.
    let stopped = false
    const stopping = worker.stop().then(() => (stopped = true))
    await clock.advance(200)
    expect([sweeps.length, stopped]).toEqual([1, false])
    open()
    await stopping
    await hf.close()
  })
})
