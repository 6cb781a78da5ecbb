import { setTimeout as sleep } from 'node:timers/promises'
import { type Driver, flow, Holdfast, LogStore, openDriver } from 'holdfast'
import { describe, expect, it } from 'vitest'

/** A store whose renewals take long to land, as on a busy server. */
async function openSlowToRenew(landMs: number) {
  const memory = await openDriver('memory:')
  let renewals = 0
  const driver = new Proxy(memory, {
    get(target, name: keyof Driver) {
      if (name !== 'renew') return Reflect.get(target, name, target)
      return async (...args: Parameters<Driver['renew']>) => {
        renewals++
        await sleep(landMs)
        return target.renew(...args)
      }
    },
  })
  return { hf: new Holdfast(new LogStore(driver)), renewals: () => renewals }
}

describe('a lease that is let go', () => {
  // Renewed every 100 ms, and each renewal is under way for 100 ms: also when the run ends after 150.
  const lease = 300
  const landMs = 100
  const endsAfterMs = 150

  it('is not brought back by a renewal that was under way when the run ended', async () => {
    const { hf, renewals } = await openSlowToRenew(landMs)
    const nap = flow({ name: 'nap', version: '1.0.0' }, (ctx) => ctx.step('nap', () => sleep(endsAfterMs)))
    await hf.thread(nap, 'nap').run({ input: 'go', lease })
    await sleep(landMs)
    expect(renewals()).toBeGreaterThan(0)
    expect((await hf.threads()).threads).toMatchObject([{ thread: 'nap', status: 'completed', claimedBy: null }])
    await hf.close()
  })

  it('is not brought back by a renewal that was under way when the run was stopped', async () => {
    const { hf, renewals } = await openSlowToRenew(landMs)
    const stop = new AbortController()
    const nap = flow({ name: 'nap', version: '1.0.0' }, (ctx) =>
      ctx.step('nap', () => {
        setTimeout(() => stop.abort(), endsAfterMs)
        return new Promise(() => {})
      }),
    )
    await expect(hf.thread(nap, 'nap').run({ input: 'go', lease, signal: stop.signal })).rejects.toThrow('stopped')
    await sleep(landMs)
    expect(renewals()).toBeGreaterThan(0)
    expect((await hf.threads()).threads).toMatchObject([{ thread: 'nap', status: 'active', claimedBy: null }])
    await hf.close()
  })
})
