import { type Effect, flow, Holdfast } from 'holdfast'
import { type Clock, type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'

const named = { name: 'pays', version: '1.0.0' }
const LEASE_MS = 2000

/** A clock that only moves when it is told to, at once, as for a process that stands still: nobody who sleeps wakes. */
function stoppedClock() {
  let elapsed = 0
  let asleep = 0
  const clock: Clock = {
    bootId: 'boot',
    now: () => Date.UTC(2026, 0, 1) + elapsed + asleep,
    monotonic: () => 1000 + elapsed,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (ms === 0) resolve()
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      }),
  }
  return {
    clock,
    /** The process is blocked or stopped. */
    pass(ms: number) {
      elapsed += ms
    },
    /** The machine sleeps: only the wall clock goes on. */
    sleep(ms: number) {
      asleep += ms
    },
  }
}

/** Two workers on one store. What the first one sends can be held up on its way back. */
async function setUp() {
  const time = stoppedClock()
  const { clock } = time
  const driver = await openDriver('memory:', { clock })
  const hooks: { afterAppend?: (() => unknown) | undefined; afterRenew?: (() => unknown) | undefined } = {}
  let renewals = 0
  const slow = new Proxy(driver, {
    get(target, name: keyof Driver) {
      const value: unknown = Reflect.get(target, name, target)
      if (name === 'append') {
        return async (...args: Parameters<Driver['append']>) => {
          const results = await target.append(...args)
          await hooks.afterAppend?.()
          return results
        }
      }
      if (name === 'renew') {
        return async (...args: Parameters<Driver['renew']>) => {
          renewals++
          const renewed = await target.renew(...args)
          await hooks.afterRenew?.()
          return renewed
        }
      }
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const open = (on: Driver) => new Holdfast(new LogStore(on, { clock }))
  return { time, hooks, first: open(slow), second: open(driver), renewals: () => renewals }
}

const kinds = ['idempotent', 'reconcilable', 'once'] as const
const options = (effect: Effect) =>
  effect === 'reconcilable' ? { effect, reconcile: () => ({ outcome: 'not-executed' as const }) } : { effect }

describe('an effect whose worker stood still', () => {
  it.each(['idempotent', 'reconcilable'] as const)(
    'between acknowledgement and start does not start after another took over (%s)',
    async (effect) => {
      const { time, hooks, first, second } = await setUp()
      const charged: string[] = []
      const program = (worker: string) =>
        flow<number, string>(named, async (ctx) => {
          await ctx.step('look', () => 1)
          return ctx.step('charge', options(effect), () => {
            charged.push(worker)
            return worker
          })
        })
      // The last acknowledgement before the start: of the intent, or of the step before where there is none.
      let appends = 0
      hooks.afterAppend = async () => {
        if (++appends < (effect === 'idempotent' ? 2 : 3)) return
        hooks.afterAppend = undefined
        time.pass(5000)
        expect(await second.thread(program('second'), 't').run({ leaseMs: LEASE_MS })).toMatchObject({
          status: 'completed',
          output: 'second',
        })
      }
      const late = first.thread(program('first'), 't').run({ input: 1, leaseMs: LEASE_MS })
      await expect(late).rejects.toMatchObject({ code: 'fenced' })
      expect(charged).toStrictEqual(['second'])
    },
  )

  it('in code between steps does not start after another took over, though it has nothing to write first', async () => {
    const { time, first, second } = await setUp()
    const charged: string[] = []
    const program = (worker: string, between: () => unknown) =>
      flow<number, string>(named, async (ctx) => {
        await ctx.step('look', () => 1)
        await between()
        return ctx.step('charge', { effect: 'idempotent' }, () => {
          charged.push(worker)
          return worker
        })
      })
    const standStill = async () => {
      time.pass(5000)
      await second
        .thread(
          program('second', () => {}),
          't',
        )
        .run({ leaseMs: LEASE_MS })
    }
    const late = first.thread(program('first', standStill), 't').run({ input: 1, leaseMs: LEASE_MS })
    await expect(late).rejects.toMatchObject({ code: 'fenced' })
    expect(charged).toStrictEqual(['second'])
  })

  it.each(kinds)('renews first when its lease may be about to end, and then starts (%s)', async (effect) => {
    for (const stand of ['pass', 'sleep'] as const) {
      const { time, first, renewals } = await setUp()
      let renewed = -1
      const program = flow<number, string>(named, async (ctx) => {
        await ctx.step('look', () => 1)
        // Written before it stood still, so that the effect finds nothing to write but its own intent.
        time[stand](1900)
        return ctx.step('charge', { ...options(effect) }, () => {
          renewed = renewals()
          return 'charged'
        })
      })
      expect(await first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })).toMatchObject({ output: 'charged' })
      // An intent is a sign of life itself.
      expect(renewed).toBe(effect === 'idempotent' ? 1 : 0)
    }
  })

  it.each(kinds)('counts from when a sign of life was sent, not from when it was acknowledged (%s)', async (effect) => {
    const { time, hooks, first, renewals } = await setUp()
    let renewed = -1
    hooks.afterAppend = () => time.pass(1900)
    // The first renewal takes as long as well: it says nothing of now either.
    hooks.afterRenew = () => {
      hooks.afterRenew = undefined
      time.pass(1900)
    }
    const program = flow<number, string>(named, async (ctx) => {
      await ctx.step('look', () => 1)
      return ctx.step('charge', options(effect), () => {
        renewed = renewals()
        return 'charged'
      })
    })
    await first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })
    expect(renewed).toBe(2)
  })

  it('does not start at all when renewing takes most of the lease each time', async () => {
    const { time, hooks, first } = await setUp()
    let charged = 0
    hooks.afterAppend = () => time.pass(1900)
    hooks.afterRenew = () => time.pass(1900)
    const program = flow<number, number>(named, (ctx) => ctx.step('charge', { effect: 'once' }, () => ++charged))
    const running = first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })
    await expect(running).rejects.toMatchObject({ code: 'unavailable' })
    expect(charged).toBe(0)
  })

  it('asks a person when the key was forgotten while the machine slept just before another attempt', async () => {
    const { time, hooks, first } = await setUp()
    let calls = 0
    const day = 24 * 60 * 60 * 1000
    const program = flow<number, number>(named, (ctx) =>
      ctx.step('charge', { effect: 'idempotent', retry: { initialMs: 0, jitter: 0 } }, () => {
        if (++calls > 1) return calls
        hooks.afterAppend = () => {
          hooks.afterAppend = undefined
          time.sleep(LEASE_MS)
        }
        hooks.afterRenew = () => {
          hooks.afterRenew = undefined
          time.sleep(2 * day)
        }
        throw new Error('connection reset')
      }),
    )
    const running = first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })
    expect(await running).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(calls).toBe(1)
  })
})
