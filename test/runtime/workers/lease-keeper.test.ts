import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.js'
import { gate } from '../../support/gate.js'

const LEASE_MS = 300

/** Long enough for whatever does not wait for a renewal to be written before it. */
const turns = async () => {
  for (let i = 0; i < 50; i++) await new Promise(setImmediate)
}

/** A store whose renewals are under way until they are let go, as on a busy server, and a run in the middle of a step. */
async function runWhileRenewing(signal?: AbortSignal) {
  const clock = virtualClock()
  const memory = await openDriver('memory:', { clock })
  const land = gate()
  const renewals = { sent: 0, landed: 0 }
  const driver = new Proxy(memory, {
    get(target, name: keyof Driver) {
      if (name !== 'renew') return Reflect.get(target, name, target)
      return async (...args: Parameters<Driver['renew']>) => {
        renewals.sent++
        await land.passed
        const renewed = await target.renew(...args)
        renewals.landed++
        return renewed
      }
    },
  })
  const hf = new Holdfast(new LogStore(driver, { clock }))
  const [begun, end] = [gate(), gate()]
  const nap = flow({ name: 'nap', version: '1.0.0' }, (ctx) =>
    ctx.step('nap', () => {
      begun.open()
      return end.passed
    }),
  )
  const running = hf.thread(nap, 'nap').run({ input: 'go', leaseMs: LEASE_MS, ...(signal ? { signal } : {}) })
  await begun.passed
  // Renewed every third of the lease.
  await clock.advance(LEASE_MS / 2)
  expect(renewals).toEqual({ sent: 1, landed: 0 })
  return {
    hf,
    running,
    end,
    async landRenewal() {
      await turns()
      land.open()
      await until(() => renewals.landed === renewals.sent)
    },
  }
}

describe('a lease that is let go', () => {
  it('is not brought back by a renewal that was under way when the run ended', async () => {
    const { hf, running, end, landRenewal } = await runWhileRenewing()
    end.open()
    await landRenewal()
    await running
    expect((await hf.threads()).threads).toMatchObject([{ thread: 'nap', status: 'completed', claimedBy: null }])
    await hf.close()
  })

  it('is not brought back by a renewal that was under way when the run was stopped', async () => {
    const stop = new AbortController()
    const { hf, running, landRenewal } = await runWhileRenewing(stop.signal)
    const stopped = running.catch((error: unknown) => error)
    stop.abort()
    await landRenewal()
    expect(await stopped).toMatchObject({ name: 'AbortError', message: expect.stringContaining('stopped') })
    expect((await hf.threads()).threads).toMatchObject([{ thread: 'nap', status: 'active', claimedBy: null }])
    await hf.close()
  })
})
