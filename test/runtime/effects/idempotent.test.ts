import { setTimeout as sleep } from 'node:timers/promises'
import { flow, Holdfast, NotExecutedError, openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

const RETRY = { attempts: 4, initialMs: 1, maxMs: 1 }

/** Runs one idempotent step whose attempts fail in this way, and returns the keys they were handed. */
async function keysOf(attempts: readonly (Error | 'hang' | 'done')[], stopAfter?: number): Promise<string[]> {
  const hf = await openHoldfast('memory:')
  const keys: string[] = []
  const stop = new AbortController()
  const pay = flow({ name: 'pay', version: '1.0.0' }, (ctx) =>
    ctx.step('pay', { effect: 'idempotent', retry: RETRY }, async ({ idempotencyKey }) => {
      const outcome = attempts[keys.push(idempotencyKey) - 1]
      if (keys.length === stopAfter) stop.abort()
      if (outcome === 'hang') await new Promise(() => {})
      if (outcome instanceof Error) throw outcome
      return 'paid'
    }),
  )
  const thread = hf.thread(pay, 'order')
  if (stopAfter !== undefined) {
    await expect(thread.run({ input: 'go', signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
  }
  expect(await thread.run({ input: 'go' })).toMatchObject({ status: 'completed', output: 'paid' })
  await hf.close()
  return keys
}

describe('the key of an idempotent step', () => {
  it('changes after a failure that is known to have done nothing', async () => {
    const [first, second] = await keysOf([new NotExecutedError('refused'), 'done'])
    expect(second).not.toBe(first)
  })

  it('stays after a refusal when an attempt before it may have done it', async () => {
    // The reply was lost, then a rate limit refused the second call: that says nothing of the first.
    const keys = await keysOf([new Error('reply lost'), new NotExecutedError('too many calls'), 'done'])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
  })

  it('stays after a refusal when a worker before us may have done it', async () => {
    const keys = await keysOf(['hang', new NotExecutedError('too many calls'), 'done'], 1)
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
  })

  it('stays when a sibling of the step was recorded before the worker was lost', async () => {
    const hf = await openHoldfast('memory:')
    const keys: string[] = []
    const stop = new AbortController()
    const order = flow({ name: 'order', version: '1.0.0' }, (ctx) =>
      Promise.all([
        ctx.step('pay', { effect: 'idempotent', retry: RETRY }, async ({ idempotencyKey }) => {
          const tried = keys.push(idempotencyKey)
          if (tried === 1) await new Promise(() => {})
          if (tried === 2) throw new NotExecutedError('too many calls')
          return 'paid'
        }),
        ctx.step('look', async () => {
          void sleep(20).then(() => stop.abort())
          return 'seen'
        }),
      ]),
    )
    const thread = hf.thread(order, 'order')
    await expect(thread.run({ input: 'go', signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
    expect(await thread.run({ input: 'go' })).toMatchObject({ status: 'completed' })
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    await hf.close()
  })

  it('changes after a refusal when the run rested before the step began', async () => {
    const hf = await openHoldfast('memory:')
    const keys: string[] = []
    const order = flow({ name: 'order', version: '1.0.0' }, async (ctx) => {
      await ctx.receive('go')
      return ctx.step('pay', { effect: 'idempotent', retry: RETRY }, async ({ idempotencyKey }) => {
        if (keys.push(idempotencyKey) === 1) throw new NotExecutedError('refused')
        return 'paid'
      })
    })
    const thread = hf.thread(order, 'order')
    expect(await thread.run({ input: 'go' })).toMatchObject({ status: 'paused' })
    await thread.signal('go')
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    expect(new Set(keys).size).toBe(2)
    await hf.close()
  })

  it('is not used again past its lifetime, even if a sibling was recorded meanwhile', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const hf = new Holdfast(new LogStore(driver, { clock }))
    const stop = new AbortController()
    let tried = 0
    const order = flow({ name: 'order', version: '1.0.0' }, (ctx) =>
      Promise.all([
        ctx.step('pay', { effect: 'idempotent', keyTtlMs: 60_000 }, async () => {
          tried++
          await new Promise(() => {})
        }),
        ctx.step('look', async () => {
          void sleep(20).then(() => stop.abort())
          return 'seen'
        }),
      ]),
    )
    const stopped = hf.thread(order, 'order').run({ input: 'go', signal: stop.signal })
    await expect(stopped).rejects.toMatchObject({ name: 'AbortError' })
    await clock.advance(61_000)
    // Another process, which has no attempt of its own to wait for.
    const thread = new Holdfast(new LogStore(driver, { clock })).thread(order, 'order')
    expect(await thread.run({ input: 'go' })).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(tried).toBe(1)
    await hf.close()
  })
})
