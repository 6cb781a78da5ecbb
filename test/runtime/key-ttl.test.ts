import { flow, Holdfast, LogStore, openDriver } from 'holdfast'
import { faultyDriver, virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

describe('an idempotent step that a crash left behind', () => {
  it.each([
    { days: 0.5, status: 'completed' },
    { days: 3, status: 'paused' },
  ])('is $status by the first who takes it up $days days later', async ({ days, status }) => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    const keys: string[] = []
    const pay = flow<string, string>({ name: 'pays', version: '1.0.0' }, (ctx) =>
      ctx.step('pay', { effect: 'idempotent' }, ({ idempotencyKey }) => {
        keys.push(idempotencyKey)
        // Dies with its first call done and nothing recorded of it.
        if (keys.length === 1) first.crashAt(1, 'before')
        return 'paid'
      }),
    )
    const dying = new Holdfast(new LogStore(first, { clock })).thread(pay, 't')
    await expect(dying.run({ input: 'a' })).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(days * 24 * 60 * 60 * 1000)
    const second = new Holdfast(new LogStore(driver, { clock })).thread(pay, 't')
    expect((await second.run()).status).toBe(status)
    expect(keys).toStrictEqual(status === 'completed' ? [keys[0], keys[0]] : [keys[0]])
  })
})
