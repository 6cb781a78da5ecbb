import { flow, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

const HOUR = 3_600_000

const asks = flow({ name: 'asks', version: '1.0.0' }, async (ctx, input: string) => {
  if (input === 'ask') return ctx.pause('Really?')
  if (input === 'fail') await ctx.step('fail', { retry: { attempts: 1 } }, () => Promise.reject(new Error('no')))
  return input
})

async function setUp() {
  const clock = virtualClock()
  const hf = await openHoldfast('memory:', { clock })
  const wakeAt = async () => (await hf.threads({ thread: 't' })).threads[0]?.wakeAt?.getTime()
  return { clock, hf, thread: hf.thread(asks, 't'), wakeAt, [Symbol.asyncDispose]: () => hf.close() }
}

describe('input left for later', () => {
  it('comes in the order of its times, by a worker that sleeps until then', async () => {
    await using at = await setUp()
    const { clock, hf, thread } = at
    const ran: string[] = []
    const notes = flow({ name: 'asks', version: '1.0.0' }, async (_, input: string) => void ran.push(input))
    await thread.enqueue('third', { runAt: clock.now() + 3 * HOUR })
    await thread.enqueue('first', { runAt: new Date(clock.now() + HOUR) })
    await thread.enqueue('past', { runAt: clock.now() - HOUR })
    const worker = hf.worker({ programs: [notes], pollMs: HOUR, handleSignals: false })
    await clock.advance(0)
    expect(ran).toEqual(['past'])
    await clock.advance(HOUR - 1)
    expect(ran).toEqual(['past'])
    await clock.advance(1000)
    expect(ran).toEqual(['past', 'first'])
    await clock.advance(2 * HOUR)
    expect(ran).toEqual(['past', 'first', 'third'])
    expect(await at.wakeAt()).toBeUndefined()
    await worker.stop()
  })

  it('runs now for who brings it, and not again when its time comes', async () => {
    await using at = await setUp()
    const { clock, thread } = at
    const left = await thread.enqueue('x', { key: 'x', runAt: clock.now() + HOUR })
    expect(await thread.run({ input: 'x', key: 'x' })).toMatchObject({
      status: 'completed',
      run: left.run,
      input: 'taken',
    })
    expect(await at.wakeAt()).toBeUndefined()
    await clock.advance(2 * HOUR)
    expect(await thread.run()).toMatchObject({ status: 'completed', run: left.run })
  })

  it('waits behind a run that waits, and a failed one is tried again with it', async () => {
    await using at = await setUp()
    const { clock, thread } = at
    const paused = await thread.run({ input: 'ask' })
    await thread.enqueue('x', { runAt: clock.now() + HOUR })
    expect(await at.wakeAt()).toBeUndefined()
    await clock.advance(2 * HOUR)
    expect(await thread.run()).toMatchObject({ status: 'paused' })
    if (paused.status === 'paused') await thread.answer(paused.pauses[0]?.id as string, 'yes')
    await thread.run()
    await thread.run()
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'x' })

    await thread.enqueue('y', { runAt: clock.now() + HOUR })
    await thread.run({ input: 'fail' })
    expect(await at.wakeAt()).toBe(clock.now() + HOUR)
    await clock.advance(2 * HOUR)
    expect(await thread.run()).toMatchObject({ status: 'failed' })
    expect(await at.wakeAt(), 'it is not tried again and again').toBeUndefined()
  })

  it('is cancelled with or without its id, and who waits for it hears of it', async () => {
    await using at = await setUp()
    const { clock, thread } = at
    const one = await thread.enqueue('one', { key: 'one', runAt: clock.now() + 2 * HOUR })
    expect(await thread.cancel({ run: 'another' })).toBe(false)
    expect(await thread.cancel()).toBe(true)
    await thread.run()
    expect(await thread.waitFor()).toMatchObject({ status: 'failed', run: one.run, canResume: false })
    expect(await thread.enqueue('one', { key: 'one' })).toMatchObject({ input: 'taken', ended: true })

    await thread.run({ input: 'ask' })
    const two = await thread.enqueue('two', { key: 'two', runAt: clock.now() + HOUR })
    expect(await thread.cancel({ run: two.run as string })).toBe(true)
    expect(await thread.pauses(), 'the run before it goes on').toHaveLength(1)
    expect(await thread.enqueue('two', { key: 'two', runAt: clock.now() + HOUR })).toMatchObject({ input: 'queued' })
  })

  it('keeps its thread from expiring, and is not taken once more by a fork', async () => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock, retention: { ttlMs: HOUR } })
    const thread = hf.thread(asks, 't')
    await thread.enqueue('later', { runAt: clock.now() + 100 * HOUR })
    await thread.run({ input: 'now' })
    await clock.advance(50 * HOUR)
    await hf.sweep()
    const [newest] = await thread.history()
    const fork = await thread.at(newest?.id as string).fork()
    expect(await fork.run({ input: 'there' })).toMatchObject({ status: 'completed', output: 'there' })
    expect((await hf.threads({ branch: fork.branch })).threads[0]?.wakeAt).toBeNull()
    await clock.advance(51 * HOUR)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'later' })
  })

  it.each([new Date('soon'), 'tomorrow', Number.NaN, 1e300])('is refused for %s', async (runAt) => {
    await using at = await setUp()
    await expect(at.thread.enqueue('x', { runAt: runAt as number })).rejects.toMatchObject({ code: 'invalid-option' })
    const interrupting = { busy: 'interrupt', runAt: at.clock.now() + HOUR } as const
    await expect(at.thread.enqueue('x', interrupting)).rejects.toMatchObject({ code: 'invalid-option' })
    await expect(at.thread.enqueue('x', { runat: 1 } as never)).rejects.toMatchObject({ code: 'invalid-option' })
  })
})
