import { flow, Holdfast, type RunOptions } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import { mortalDriver } from '../../support/mortal-driver.js'
import { until } from '../../support/until.js'

let clock: VirtualClock
let driver: Driver
let hf: Holdfast
let ran: string[]
let broken: boolean
let leave: () => void
let held: Promise<void>
let begun: Promise<void>
let begin: () => void

beforeEach(async () => {
  clock = virtualClock()
  driver = await openDriver('memory:', { clock })
  hf = newProcess()
  ran = []
  broken = true
  held = new Promise((resolve) => (leave = resolve))
  begun = new Promise((resolve) => (begin = resolve))
})

afterEach(() => hf.close())

const newProcess = (over = driver) => new Holdfast(new LogStore(over, { clock }))

/** Does what its input says: fails while it is broken, asks, waits for a signal, sleeps, is held open; or just runs. */
const program = flow({ name: 'teller', version: '1.0.0', retry: { attempts: 1 } }, async (ctx, what: string) => {
  if (what === 'ask') await ctx.pause('well?')
  if (what === 'wait') await ctx.receive('go')
  if (what === 'sleep') await ctx.sleep(3_600_000)
  if (what === 'hold') await ctx.step('first', () => 'so that others see that it began')
  return ctx.step('do', async () => {
    if (what === 'fail' && broken) throw new Error('broken')
    if (what === 'hold') {
      begin()
      await held
    }
    ran.push(what)
    return what
  })
})

const teller = (over = hf) => over.thread(program, 't')
const stateOf = async () => (await hf.log('t')).fold.state as RunState
const queue = async () => ((await stateOf()).inputs ?? []).map(({ value, key }) => key ?? value)

describe('every outcome says what became of the input', () => {
  it('none given: nothing', async () => {
    await teller().run({ input: 'a' })
    expect(await teller().run()).not.toHaveProperty('input')
    expect(await teller().waitFor()).not.toHaveProperty('input')
  })

  it('taken: its own run ended, paused or failed, also when it had before', async () => {
    for (const [input, status] of [
      ['a', 'completed'],
      ['ask', 'paused'],
    ] as const) {
      expect(await teller().run({ input, key: input })).toMatchObject({ status, input: 'taken' })
      expect(await teller().run({ input, key: input })).toMatchObject({ status, input: 'taken' })
    }
    const failing = hf.thread(program, 'f')
    for (const options of [{ key: 'f' }, {}]) {
      const thread = 'key' in options ? failing : hf.thread(program, 'g')
      expect(await thread.run({ input: 'fail', ...options })).toMatchObject({ status: 'failed', input: 'taken' })
      expect(await thread.run({ input: 'fail', ...options })).toMatchObject({ status: 'failed', input: 'taken' })
    }
    expect(await hf.thread(program, 'n').run({ input: 'a', frequency: 'none' })).toMatchObject({ input: 'taken' })
  })

  it.each([{}, { key: 'k' }])('refused behind a run that fails again, however often it is given: %j', async (named) => {
    await teller().run({ input: 'fail' })
    for (let i = 0; i < 3; i++) {
      expect(await teller().run({ input: 'pay', ...named })).toMatchObject({
        status: 'failed',
        error: { message: expect.stringContaining('broken') },
        input: 'refused',
      })
    }
    expect(await queue()).toEqual([])
    broken = false
    expect(await teller().run({ input: 'pay', ...named })).toMatchObject({ status: 'completed', input: 'taken' })
    expect(ran).toEqual(['fail', 'pay'])
  })

  it('queued behind a run that fails, where that is asked for', async () => {
    await teller().run({ input: 'fail' })
    for (let i = 0; i < 2; i++) {
      const outcome = await teller().run({ input: 'pay', key: 'pay', onPaused: 'queue' })
      expect(outcome).toMatchObject({ status: 'failed', input: 'queued' })
    }
    expect(await queue()).toEqual(['pay'])
    broken = false
    await teller().run()
    expect(ran).toEqual(['fail', 'pay'])
  })

  const waits: readonly (readonly [what: string, news: () => Promise<unknown>])[] = [
    ['ask', async () => teller().answer((await teller().pauses())[0]?.id ?? '', 'x')],
    ['wait', () => teller().signal('go')],
    ['sleep', () => clock.advance(3_600_001)],
  ]
  describe.each(waits)('behind a run that waits (%s)', (what, news) => {
    // The run goes on when its news came, and waits or fails once more: the input fares as if it had waited all along.
    const twice = flow({ name: 'teller', version: '1.0.0' }, async (ctx, input: string) => {
      if (input === 'ask') await ctx.pause('well?')
      if (input === 'wait') await ctx.receive('go')
      if (input === 'sleep') await ctx.sleep(3_600_000)
      if (input === what) await ctx.pause('and now?')
      ran.push(input)
      return input
    })

    it.each([
      ['return', 'refused', []],
      ['queue', 'queued', ['pay']],
    ] as const)('by onPaused %s, and not by when the news comes', async (onPaused, input, left) => {
      const thread = hf.thread(twice, 't')
      await thread.run({ input: what })
      expect(await thread.run({ input: 'pay', key: 'pay', onPaused })).toMatchObject({ status: 'paused', input })
      await news()
      expect(await thread.run({ input: 'pay', key: 'pay', onPaused })).toMatchObject({
        status: 'paused',
        pauses: [{ question: 'and now?' }],
        input,
      })
      expect(await queue()).toEqual(left)
    })

    it('cancelled for it if asked, also when it comes to wait only after its news', async () => {
      const thread = hf.thread(twice, 't')
      await thread.run({ input: what })
      await news()
      const outcome = await thread.run({ input: 'pay', onPaused: 'cancel' })
      expect(outcome).toMatchObject({ status: 'completed', output: 'pay', input: 'taken' })
      expect([ran, await queue()]).toEqual([['pay'], []])
    })
  })

  it('refused while another runs the thread, unless it is known: then where it is', async () => {
    const first = teller().run({ input: 'hold', key: 'hold' })
    await begun
    const other = teller(newProcess())
    expect(await other.run({ input: 'a' })).toMatchObject({ status: 'busy', input: 'refused' })
    expect(await other.run({ input: 'hold', key: 'hold' })).toMatchObject({ status: 'busy', input: 'taken' })
    expect(await other.enqueue('b', { key: 'b' })).toMatchObject({ input: 'queued' })
    expect(await other.enqueue('b', { key: 'b' })).toMatchObject({ input: 'queued' })
    expect(await other.enqueue('hold', { key: 'hold' })).toMatchObject({ input: 'taken' })
    expect(await other.run({ input: 'b', key: 'b' })).toMatchObject({ status: 'busy', input: 'queued' })
    leave()
    await first
    await teller().run()
    expect(ran).toEqual(['hold', 'b'])
  })

  it.each([
    ['queue', 'queued', ['pay']],
    ['return', 'refused', []],
  ] as const)(
    'of a request that waits behind a run which comes to wait, by onPaused %s',
    async (onPaused, input, left) => {
      const pausing = flow({ name: 'pausing', version: '1.0.0' }, async (ctx) => {
        await ctx.step('hold', async () => {
          begin()
          await held
        })
        return ctx.pause('well?')
      })
      const first = hf.thread(pausing, 't').run({ input: 'first' })
      await begun
      const waiting = newProcess().thread(pausing, 't').run({ input: 'pay', busy: 'queue', onPaused })
      await until(async () => (await queue()).length === 1)
      leave()
      expect(await first).toMatchObject({ status: 'paused', input: 'taken' })
      await clock.advance(1000)
      expect(await waiting).toMatchObject({ status: 'paused', input })
      expect(await queue()).toEqual(left)
    },
  )

  it('of a request that waits behind a run of the same content: it is another one', async () => {
    const first = teller().run({ input: 'hold' })
    await begun
    const waiting = teller(newProcess()).run({ input: 'hold', busy: 'queue' })
    await until(async () => (await queue()).length === 1)
    leave()
    await first
    await clock.advance(1000)
    const { run } = await first
    const second = await waiting
    expect(second).toMatchObject({ status: 'completed', input: 'taken' })
    expect(second.run).not.toBe(run)
    expect(ran).toEqual(['hold', 'hold'])
  })

  it('for a program that does not fit the thread: refused, or where it is', async () => {
    await teller().run({ input: 'ask', key: 'ask' })
    await teller().enqueue('b', { key: 'b' })
    const newer = flow({ name: 'teller', version: '2.0.0' }, async () => 1)
    const thread = hf.thread(newer, 't')
    for (const [key, input] of [
      ['ask', 'taken'],
      ['b', 'queued'],
      ['c', 'refused'],
    ]) {
      expect(await thread.run({ input: 1, key: key as string })).toMatchObject({ status: 'incompatible', input })
    }
  })
})

describe('an input without a key whose giver died before it was told', () => {
  it.each([
    ['at rest', 'a'],
    ['with a run that failed', 'fail'],
  ])('is the same when it is given again, on a thread %s', async (_, before) => {
    await teller().run({ input: before })
    for (let call = 1; call < 5; call++) {
      const mortal = mortalDriver(driver)
      mortal.dieAt(call, 'after')
      void teller(newProcess(mortal.driver))
        .run({ input: 'pay', leaseMs: 1000 } satisfies RunOptions)
        .catch(() => {})
      await mortal.died
      await clock.advance(1001)
    }
    broken = false
    // The run that failed may have to be told so first, if the process died before it could note the end.
    const first = await teller().run({ input: 'pay' })
    expect(first.input).toBe(first.status === 'completed' ? 'taken' : 'refused')
    if (first.status !== 'completed') expect(await teller().run({ input: 'pay' })).toMatchObject({ input: 'taken' })
    expect(ran.filter((what) => what === 'pay')).toEqual(['pay'])
  })

  it('stays in the queue once another request relies on it', async () => {
    const gates = [Promise.resolve(), held]
    const slow = flow<string, string>({ name: 'teller', version: '1.0.0', retry: { attempts: 1 } }, (ctx, what) =>
      ctx.step('do', async (): Promise<string> => {
        if (gates.length === 1) begin()
        await gates.shift()
        throw new Error(what)
      }),
    )
    const thread = hf.thread(slow, 't')
    expect(await thread.run({ input: 'fail' })).toMatchObject({ status: 'failed' })
    const again = thread.run({ input: 'pay', key: 'pay' })
    await begun
    expect(await newProcess().thread(slow, 't').enqueue('pay', { key: 'pay' })).toMatchObject({ input: 'queued' })
    leave()
    expect(await again).toMatchObject({ status: 'failed', input: 'queued' })
    expect(await queue()).toEqual(['pay'])
  })
})

describe('a thread whose run can not go on, with input behind it', () => {
  it.each(['fail', 'ask', 'wait'])('rests for who waits for it and who reads its events: %s', async (what) => {
    await teller().run({ input: what })
    await teller().run({ input: 'next', onPaused: 'queue' })
    expect(await queue()).toEqual(['next'])
    expect(await teller().waitFor()).toMatchObject({ status: what === 'fail' ? 'failed' : 'paused' })
    const events = []
    for await (const event of teller().events()) events.push(event)
    expect(events.length).toBeGreaterThan(0)
  })

  it('does not rest while a worker is to try it again for new input', async () => {
    await teller().run({ input: 'fail' })
    await teller().enqueue('next')
    await expect(teller().waitFor({ timeoutMs: 0 })).rejects.toMatchObject({ code: 'timeout' })
    await using _ = hf.worker({ programs: [program], pollMs: 10, handleSignals: false })
    const resting = teller().waitFor()
    await clock.advance(1000)
    expect(await resting).toMatchObject({ status: 'failed' })
    expect(await queue()).toEqual(['next'])
  })
})
