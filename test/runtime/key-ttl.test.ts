import { flow, Holdfast, LogStore, NotExecutedError, openDriver } from 'holdfast'
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

  it('is asked about, not repeated, also after it was refused and tried under a new key', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    let calls = 0
    const pay = flow<string, string>({ name: 'pays', version: '1.0.0' }, (ctx) =>
      ctx.step('pay', { effect: 'idempotent', retry: { initialMs: 0 } }, () => {
        if (++calls === 1) throw new NotExecutedError('refused', { retryable: true })
        if (calls === 2) first.crashAt(1, 'before')
        return 'paid'
      }),
    )
    const dying = new Holdfast(new LogStore(first, { clock })).thread(pay, 't').run({ input: 'a' })
    dying.catch(() => {})
    await clock.advance(1000)
    await expect(dying).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(3 * 24 * 60 * 60 * 1000)
    const thread = new Holdfast(new LogStore(driver, { clock })).thread(pay, 't')
    const outcome = await thread.run()
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    await thread.answer(outcome.pauses[0].id, { outcome: 'succeeded', result: 'found' })
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'found' })
    expect(calls).toBe(2)
  })
})
