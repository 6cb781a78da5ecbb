import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { expect, it } from 'vitest'

const echo = flow({ name: 'echo', version: '1.0.0' }, async (_, input: string) => input)

it.each(['run', 'enqueue'] as const)(
  'begins anew when a thread expires between the look at it and the claim, and others make it again meanwhile: %s',
  { timeout: 30_000 },
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

it('ends well when another sweep cut the same thread first', { timeout: 30_000 }, async () => {
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
