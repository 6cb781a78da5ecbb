import { flow, Holdfast } from 'holdfast'
import { type Clock, type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'

const named = { name: 'sleepy', version: '1.0.0' }
const LEASE_MS = 10_000
const HOUR = 3_600_000
const DAY = 24 * HOUR

/**
 * A machine that can be put to sleep, and the server that its store is on, which stays awake. While the machine sleeps its
 * monotonic clock stands still; its wall clock is right again when it wakes, as far as it ever was.
 */
async function setUp(wrongByMs = 0) {
  let elapsed = Date.UTC(2026, 0, 1)
  let asleep = 0
  let set = wrongByMs
  const sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      if (ms === 0) resolve()
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  const server: Clock = {
    bootId: 'server',
    now: () => elapsed,
    monotonic: () => elapsed,
    sleep,
  }
  const machine: Clock = {
    bootId: 'machine',
    canBeWrong: true,
    now: () => elapsed + set,
    monotonic: () => elapsed - asleep,
    sleep,
  }
  const driver = await openDriver('memory:', { clock: server })
  const hooks: { afterAppend?: (() => unknown) | undefined } = {}
  let looks = 0
  const seen = new Proxy(driver, {
    get(target, name: keyof Driver) {
      if (name === 'now') {
        return async () => {
          looks++
          // A reply takes its time, in which whatever does not wait for it is done by the old one.
          for (let i = 0; i < 50; i++) await new Promise(setImmediate)
          return server.now()
        }
      }
      if (name === 'append') {
        return async (...args: Parameters<Driver['append']>) => {
          const results = await target.append(...args)
          await hooks.afterAppend?.()
          return results
        }
      }
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const open = (clock: Clock) => new Holdfast(new LogStore(seen, { clock }))
  return {
    first: open(machine),
    hooks,
    /** On another machine, which does not sleep. */
    second: open({ ...server, bootId: 'another' }),
    now: server.now,
    looks: () => looks,
    sleep(ms: number) {
      elapsed += ms
      asleep += ms
    },
    /** Somebody sets the wall clock. No time passes. */
    setClock(byMs: number) {
      set += byMs
    },
  }
}

describe.each([0, -HOUR, 3 * HOUR])('a machine that slept, whose clock is wrong by %i ms,', (wrongByMs) => {
  it('starts no effect under the lease that it had before', async () => {
    const { first, second, sleep } = await setUp(wrongByMs)
    const charged: string[] = []
    const program = (worker: string, before: () => unknown) =>
      flow<number, string>(named, async (ctx) => {
        await ctx.step('look', () => 1)
        await before()
        return ctx.step('charge', { effect: 'idempotent' }, () => {
          charged.push(worker)
          return worker
        })
      })
    const late = first.thread(
      program('first', async () => {
        sleep(HOUR)
        const others = program('second', () => {})
        expect(await second.thread(others, 't').run({ leaseMs: LEASE_MS })).toMatchObject({ status: 'completed' })
      }),
      't',
    )
    await expect(late.run({ input: 1, leaseMs: LEASE_MS })).rejects.toMatchObject({ code: 'fenced' })
    expect(charged).toStrictEqual(['second'])
  })

  it('starts no effect whose intent was acknowledged just before it slept', async () => {
    const { first, second, sleep, hooks } = await setUp(wrongByMs)
    const charged: string[] = []
    const reconcile = () => ({ outcome: 'not-executed' as const })
    const program = (worker: string) =>
      flow<number, string>(named, async (ctx) => {
        await ctx.step('look', () => 1)
        return ctx.step('charge', { effect: 'reconcilable', reconcile }, () => {
          charged.push(worker)
          return worker
        })
      })
    // The claim, the first step, the intent.
    let appends = 0
    hooks.afterAppend = async () => {
      if (++appends < 3) return
      hooks.afterAppend = undefined
      sleep(HOUR)
      expect(await second.thread(program('second'), 't').run({ leaseMs: LEASE_MS })).toMatchObject({
        status: 'completed',
      })
    }
    const late = first.thread(program('first'), 't').run({ input: 1, leaseMs: LEASE_MS })
    await expect(late).rejects.toMatchObject({ code: 'fenced' })
    expect(charged).toStrictEqual(['second'])
  })

  it('does not repeat an idempotent effect whose key was forgotten meanwhile', async () => {
    const { first, sleep } = await setUp(wrongByMs)
    let calls = 0
    const program = flow<number, number>(named, async (ctx) => {
      await ctx.step('look', () => 1)
      return ctx.step('charge', { effect: 'idempotent', retry: { attempts: 5, initialMs: 0, jitter: 0 } }, () => {
        calls++
        // It may have landed, and then the lid is closed.
        sleep(2 * DAY)
        throw new Error('connection reset')
      })
    })
    expect(await first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })).toMatchObject({
      status: 'paused',
      pauses: [{ kind: 'unknown-effect' }],
    })
    expect(calls).toBe(1)
  })

  it.each(['sleep', 'receive', 'pause'] as const)('waits as long as it was told from then on: %s', async (way) => {
    const { first, sleep, now } = await setUp(wrongByMs)
    const program = flow<number, unknown>(named, async (ctx) => {
      await ctx.step('look', () => 1)
      sleep(8 * HOUR)
      if (way === 'sleep') await ctx.sleep(HOUR)
      else if (way === 'receive') return ctx.receive('go', { timeoutMs: HOUR })
      else return ctx.pause('well?', { expiresInMs: HOUR })
      return 'slept'
    })
    const outcome = await first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })
    expect(outcome).toMatchObject({ status: 'paused', wakeAt: new Date(now() + HOUR) })
  })

  it('keeps an item for as long as it was told from then on', async () => {
    const { first, sleep, now } = await setUp(wrongByMs)
    const notes = first.store.scope({ user: 'ada' }).collection('notes', { ttlMs: HOUR, refreshOnRead: true })
    await notes.put('a', 1)
    sleep(HOUR / 2)
    expect(await notes.put('b', 2)).toMatchObject({ expiresAt: new Date(now() + HOUR) })
    sleep(HOUR / 3)
    await notes.get('a')
    sleep(HOUR / 2)
    expect((await notes.get('a'))?.value).toBe(1)
    sleep(2 * HOUR)
    expect(await notes.get('a')).toBeUndefined()
  })

  it('keeps a thread for as long as it was told from then on', async () => {
    const { first, sleep, now } = await setUp(wrongByMs)
    const program = flow<number, number>(named, async (ctx) => {
      await ctx.step('look', () => 1)
      sleep(8 * HOUR)
      return 1
    })
    await first.thread(program, 't', { retention: { ttlMs: HOUR } }).run({ input: 1, leaseMs: LEASE_MS })
    const { threads } = await first.threads()
    expect(threads).toMatchObject([{ expiresAt: new Date(now() + HOUR) }])
  })
})

it('a clock that somebody set does not age the keys of effects, nor end a wait', async () => {
  const { first, now, setClock } = await setUp()
  let calls = 0
  const program = flow<number, unknown>(named, async (ctx) => {
    await ctx.step('look', () => 1)
    const charged = await ctx.step(
      'charge',
      { effect: 'idempotent', retry: { attempts: 5, initialMs: 0, jitter: 0 } },
      () => {
        if (++calls > 1) return calls
        setClock(3 * DAY)
        throw new Error('connection reset')
      },
    )
    await ctx.sleep(HOUR)
    return charged
  })
  const outcome = await first.thread(program, 't').run({ input: 1, leaseMs: LEASE_MS })
  expect(outcome).toMatchObject({ status: 'paused', wakeAt: new Date(now() + HOUR) })
  expect(calls).toBe(2)
})
