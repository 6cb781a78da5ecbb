import { hurriedClock } from '#src/testing/hurried-clock.js'
import { flow, Holdfast, openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

const forever = () => new Promise<never>(() => {})

describe('a program that hangs in code of its own, outside of any step', () => {
  let hanging = 0
  const hang = flow({ name: 'hang', version: '1.0.0' }, async (ctx) => {
    await ctx.step('begin', () => 'begun')
    hanging++
    await forever()
  })

  it('is left when its run is stopped', async () => {
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    const stream = hf.thread(hang, 'hanging').stream({ input: 'go', signal: stop.signal })
    const outcome = stream.outcome.catch((error: unknown) => error)
    for await (const event of stream) {
      if (event.type === 'step') break
    }
    stop.abort()
    expect(await outcome).toMatchObject({ name: 'AbortError' })
    expect((await hf.threads()).threads).toMatchObject([{ status: 'active', claimedBy: null }])
  })

  it('is left when it is cancelled', async () => {
    // It hears soon that it is cancelled, and its lease does not run out meanwhile: then whoever cancels would end it.
    await using hf = new Holdfast(new LogStore(await openDriver('memory:'), { clock: hurriedClock() }))
    const thread = hf.thread(hang, 'hanging')
    const outcome = thread.run({ input: 'go', leaseMs: 20_000 })
    while (((await thread.state()) ?? undefined) === undefined) await new Promise(setImmediate)
    await thread.cancel({ reason: 'enough' })
    expect(await outcome).toMatchObject({ status: 'failed', canResume: false })
  })

  it('does not keep a worker from stopping after the grace', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(hang, 'hanging')
    await thread.enqueue('go')
    hanging = 0
    const worker = hf.worker({ programs: [hang], graceMs: 20, handleSignals: false })
    while (hanging === 0) await new Promise(setImmediate)
    await worker.stop()
    expect((await hf.threads()).threads).toMatchObject([{ status: 'active', claimedBy: null }])
  })
})

describe('a run that is stopped while the store hangs', () => {
  const METHODS = ['tail', 'read', 'head', 'append', 'renew'] as const

  /** A store that stops to answer when it is told to, and does everything it was sent when it goes on. */
  async function openHanging() {
    const clock = virtualClock()
    const memory = await openDriver('memory:', { clock })
    let hanging: Promise<void> | undefined
    let goOn = () => {}
    const driver = new Proxy(memory, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        if (!METHODS.includes(name as never)) return value
        return async (...args: unknown[]) => {
          await hanging
          return (value as (...args: unknown[]) => unknown).apply(target, args)
        }
      },
    })
    return {
      clock,
      hf: new Holdfast(new LogStore(driver, { clock })),
      hang: () => {
        hanging = new Promise((resolve) => (goOn = resolve))
      },
      goOn: () => {
        hanging = undefined
        goOn()
      },
    }
  }

  const cases = ['before it is claimed', 'in the middle of a step', 'while a step is recorded'] as const

  it.each(cases)('rejects soon, and lets go of the thread when the store goes on: %s', async (moment) => {
    const { clock, hf, hang, goOn } = await openHanging()
    let calls = 0
    let finish = () => {}
    const works = flow({ name: 'works', version: '1.0.0' }, async (ctx) => {
      await ctx.step('first', () => 1)
      return ctx.step('second', () =>
        ++calls > 1 || moment === cases[0]
          ? 'done'
          : new Promise<string>((resolve) => (finish = () => resolve('done'))),
      )
    })
    const thread = hf.thread(works, 't')
    const stop = new AbortController()
    if (moment === 'before it is claimed') hang()
    let ended: unknown
    void thread.run({ input: 'go', key: 'once', signal: stop.signal }).then(
      (outcome) => (ended = outcome),
      (error: unknown) => (ended = error),
    )
    if (moment !== 'before it is claimed') {
      while (calls === 0) await new Promise(setImmediate)
      hang()
      if (moment === 'while a step is recorded') finish()
    }
    // The renewals are under way as well.
    await clock.advance(4000)
    expect(ended).toBeUndefined()
    stop.abort()
    await clock.advance(3000)
    expect(ended).toMatchObject({ name: 'AbortError', message: expect.stringMatching(/does not answer/) })

    goOn()
    await clock.advance(1000)
    expect((await hf.threads()).threads.filter(({ claimedBy }) => claimedBy !== null)).toEqual([])
    expect(await thread.run({ input: 'go', key: 'once' })).toMatchObject({ status: 'completed', output: 'done' })
    await hf.close()
  })
})
