import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

const asks = flow({ name: 'asks', version: '1.0.0' }, async (ctx, input: string) => {
  if (input === 'ask') return ctx.pause('Really?')
  if (input === 'fail') await ctx.step('fail', { retry: { attempts: 1 } }, () => Promise.reject(new Error('no')))
  return input
})

describe('input left for a worker', () => {
  it('is given its run, and the place from which everything of it follows', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(asks, 't')
    const first = await thread.enqueue('a', { key: 'a' })
    expect(first).toMatchObject({ input: 'queued', ended: false })
    expect(await thread.enqueue('a', { key: 'a' })).toEqual(first)
    const outcome = await thread.run()
    expect(outcome.run).toBe(first.run)
    const events: string[] = []
    for await (const event of thread.events({ after: first.checkpoint as string })) events.push(event.type)
    expect(events).toContain('run')
    expect(await thread.enqueue('a', { key: 'a' })).toMatchObject({ input: 'taken', run: first.run, ended: true })
  })

  it('is refused, left behind or takes the place of a run that is not over', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(asks, 't')
    await thread.run({ input: 'ask' })
    const before = await thread.history({ all: true })
    expect(await thread.enqueue('b', { busy: 'reject' })).toMatchObject({ input: 'refused', run: undefined })
    expect(await thread.history({ all: true })).toEqual(before)
    expect(await thread.enqueue('b', { busy: 'queue', key: 'b' })).toMatchObject({ input: 'queued' })
    const last = await thread.enqueue('c', { busy: 'interrupt', key: 'c' })
    await thread.run()
    const done = await thread.run({ input: 'c', key: 'c' })
    expect(done).toMatchObject({ status: 'completed', output: 'c', run: last.run })
    expect(await thread.enqueue('d', { busy: 'reject' })).toMatchObject({ input: 'queued' })
    await expect(thread.enqueue('e', { busy: 'wait' as never })).rejects.toMatchObject({ code: 'invalid-option' })
  })
})

describe('a failed run', () => {
  it('is tried again by a worker once somebody asks for it', async () => {
    await using hf = await openHoldfast('memory:')
    let broken = true
    const flaky = flow({ name: 'flaky', version: '1.0.0' }, (ctx) =>
      ctx.step('try', { retry: { attempts: 1 } }, async () => {
        if (broken) throw new Error('no')
        return 'mended'
      }),
    )
    const thread = hf.thread(flaky, 't')
    expect(await thread.run({ input: 'go' as never })).toMatchObject({ status: 'failed' })
    broken = false
    expect(await thread.wake()).toBe(true)
    expect(await thread.wake()).toBe(false)
    const worker = hf.worker({ programs: [flaky], pollMs: 5, handleSignals: false })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'mended' })
    await worker.stop()
    expect(await thread.wake()).toBe(false)
    await expect(hf.inspect('none').wake()).rejects.toMatchObject({ code: 'not-found' })
  })
})
