import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { expect, it } from 'vitest'
import { logKey } from '../support/keyed-store.js'

const echo = flow({ name: 'echo', version: '1.0.0' }, async (_, input: string) => input)

it.each(['run', 'enqueue'] as const)(
  'begins anew when a thread expires between the look at it and the claim, and others make it again meanwhile: %s',
  { timeout: 600_000 },
  async (way) => {
    const driver = await openDriver('memory:')
    const others = new Holdfast(new LogStore(driver))
    let next: 'none' | 'expire' | 'make' | 'over' = 'none'
    const late = new Proxy(driver, {
      get(target, name: keyof Driver) {
        const value: unknown = Reflect.get(target, name, target)
        if (name !== 'append' && name !== 'tombstone') return value
        return async (...args: unknown[]) => {
          if (name === 'append' && next === 'expire') {
            next = 'make'
            // As a sweep leaves it.
            await others.erase('t', { reason: 'expired' })
          } else if (name === 'tombstone' && next === 'make') {
            next = 'over'
            await others.thread(echo, 't').run({ input: 'theirs' })
          }
          return (value as (...args: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    const hf = new Holdfast(new LogStore(late))
    const thread = hf.thread(echo, 't')
    await thread.run({ input: 'first' })
    next = 'expire'
    if (way === 'run')
      expect(await thread.run({ input: 'mine' })).toMatchObject({ status: 'completed', output: 'mine' })
    else expect(await thread.enqueue('mine')).toMatchObject({ ended: false })
    expect(next).toBe('over')
    await hf.close()
  },
)

it('ends well when another sweep cut the same thread first', { timeout: 600_000 }, async () => {
  const driver = await openDriver('memory:')
  const others = new Holdfast(new LogStore(driver))
  const thread = others.thread(echo, 't')
  for (const input of ['one', 'two', 'three', 'four']) await thread.run({ input })
  const sweep = { retention: { ttlMs: 'never', keepLast: 1 } } as const
  let cut = 0
  const late = new Proxy(driver, {
    get(target, name: keyof Driver) {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'headers') return value
      return async (...args: unknown[]) => {
        const found: unknown = await (value as (...args: unknown[]) => unknown).apply(target, args)
        if (cut++ === 0) {
          await others.thread(echo, 't').run({ input: 'five' })
          expect((await others.sweep(sweep)).entries).toBeGreaterThan(0)
        }
        return found
      }
    },
  })
  const hf = new Holdfast(new LogStore(late))
  expect(await hf.sweep(sweep)).toMatchObject({ entries: 0 })
  expect(cut).toBeGreaterThan(0)
  expect(await hf.thread(echo, 't').run({ input: 'six' })).toMatchObject({ output: 'six' })
  await hf.close()
})

const BRIEF = { retention: { ttlMs: 1 } }

/** As a sweep and another caller would: what is used or waits for something is left alone. */
async function beginAgain(driver: Driver, others: Holdfast): Promise<void> {
  const log = logKey('t')
  const head = await driver.head(log)
  if (head?.lease === null && head.index.expiresAt !== null) {
    const { tenant, thread, branch } = log
    const { incarnation, seq } = head
    const tombstone = { at: Date.now(), reason: 'expired' }
    await driver.erase({ tenant, thread, expect: [{ branch, incarnation, seq }], tombstone })
    await others.thread(echo, 't', BRIEF).run({ input: 'theirs' })
  }
}

// Whatever moment a sweep takes a thread that nobody uses, and others begin it again: a run neither fails nor is lost.
it.each(['run', 'enqueue'] as const)(
  'goes through whenever a thread at rest expires and others begin it again: %s',
  { timeout: 600_000 },
  async (way) => {
    for (let call = 0, reached = true; reached; call++) {
      expect(call).toBeLessThan(200)
      const driver = await openDriver('memory:')
      const others = new Holdfast(new LogStore(driver))
      let calls = -1
      let interruption: Promise<void> | undefined
      const racing = new Proxy(driver, {
        get(target, name: keyof Driver) {
          const value: unknown = Reflect.get(target, name, target)
          if (typeof value !== 'function' || name === 'close') return value
          return async (...args: unknown[]) => {
            if (calls >= 0 && calls++ === call) {
              interruption = beginAgain(driver, others)
              await interruption
            }
            return (value as (...args: unknown[]) => unknown).apply(target, args)
          }
        },
      })
      const hf = new Holdfast(new LogStore(racing))
      const thread = hf.thread(echo, 't', BRIEF)
      await thread.run({ input: 'first' })
      await others.thread(echo, 't', BRIEF).run({ input: 'second' })
      calls = 0
      if (way === 'run') {
        const outcome = await thread.run({ input: 'mine', busy: 'queue' })
        expect(outcome, `call ${call}`).toMatchObject({ status: 'completed', output: 'mine' })
      } else await thread.enqueue('mine')
      reached = calls > call
      calls = -1
      await interruption
      await hf.close()
    }
  },
)
