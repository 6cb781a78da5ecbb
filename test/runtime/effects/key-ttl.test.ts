import {
  type Context,
  END,
  flow,
  type FlowProgram,
  graph,
  Holdfast,
  last,
  NotExecutedError,
  START,
  type ThreadView,
} from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver, virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { dies, twoLives } from '../../support/two-lives.js'

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

  it('is asked about, not repeated, also after a program came between that does not fit', async () => {
    const { clock, first, second, die } = await twoLives()
    let calls = 0
    const pay = flow<string, string>({ name: 'pays', version: '1.0.0' }, async (ctx) => {
      await ctx.step('look', () => 'seen')
      return ctx.step('pay', { effect: 'idempotent' }, () => {
        if (++calls === 1) die()
        return 'paid'
      })
    })
    const other = flow<string, string>({ name: 'pays', version: '1.1.0' }, async () => 'does nothing at all')
    await dies(first.thread(pay, 't').run({ input: 'a' }))
    await clock.advance(3 * 24 * 60 * 60 * 1000)
    const hf = await second()
    expect((await hf.thread(other, 't').run()).status).toBe('incompatible')
    expect(await hf.thread(pay, 't').run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(calls).toBe(1)
  })

  const DAYS = 3 * 24 * 60 * 60 * 1000

  /** What a new version of the program puts in front of the step, and what lets it pass. */
  const WAITS: Record<
    string,
    { wait: (ctx: Context) => Promise<unknown>; pass: (thread: ThreadView) => Promise<unknown> }
  > = {
    'a question': {
      wait: (ctx) => ctx.pause('well?'),
      pass: async (thread) => {
        const [pause] = await thread.pauses()
        if (pause) await thread.answer(pause.id, 'yes')
      },
    },
    'a question with a key': {
      wait: (ctx) => ctx.pause('well?', { key: 'k' }),
      pass: async (thread) => {
        const [pause] = await thread.pauses()
        if (pause) await thread.answer(pause.id, 'yes')
      },
    },
    'a signal': { wait: (ctx) => ctx.receive('go'), pass: (thread) => thread.signal('go') },
    'a sleep': { wait: (ctx) => ctx.sleep(DAYS), pass: async () => {} },
  }

  /** Its first version dies in the middle of the payment, whose intent has not been written. */
  async function diesPaying() {
    const lives = await twoLives()
    let calls = 0
    const version = (number: number, before: (ctx: Context) => Promise<unknown>) =>
      flow<string, string>({ name: 'pays', version: `1.${number}.0` }, async (ctx) => {
        await ctx.step('look', () => 'seen')
        await before(ctx)
        return ctx.step('pay', { effect: 'idempotent' }, () => {
          if (++calls === 1) lives.die()
          return 'paid'
        })
      })
    await dies(
      lives.first
        .thread(
          version(0, async () => {}),
          't',
        )
        .run({ input: 'a' }),
    )
    return { ...lives, version, calls: () => calls }
  }

  for (const [what, { wait, pass }] of Object.entries(WAITS)) {
    it(`is asked about, not repeated, also when ${what} comes before it by now`, async () => {
      const { clock, second, version, calls } = await diesPaying()
      const hf = await second()
      const thread = hf.thread(version(1, wait), 't')
      expect(await thread.run()).toMatchObject({ status: 'paused' })
      // Taken up once more in between: it waits at the same place.
      expect(await thread.run()).toMatchObject({ status: 'paused' })
      await clock.advance(DAYS + 1)
      await pass(hf.inspect('t'))
      expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
      expect(calls()).toBe(1)
    })

    it(`is not asked about when nobody can have come by ${what} before it`, async () => {
      const { clock, first, second, die } = await twoLives()
      let paid = 0
      let works = 0
      const program = flow<string, number>({ name: 'pays', version: '1.0.0' }, async (ctx) => {
        await ctx.step('look', () => 'seen')
        await ctx.step('work', async () => {
          if (++works === 1) die()
          await new Promise(setImmediate)
        })
        await wait(ctx)
        return ctx.step('pay', { effect: 'idempotent' }, () => ++paid)
      })
      await dies(first.thread(program, 't').run({ input: 'a' }))
      const hf = await second()
      expect(await hf.thread(program, 't').run()).toMatchObject({ status: 'paused' })
      await clock.advance(DAYS + 1)
      await pass(hf.inspect('t'))
      expect(await hf.thread(program, 't').run()).toMatchObject({ status: 'completed', output: 1 })
    })
  }

  it('is asked about, not repeated, also when a gate stands before it by now', async () => {
    const { clock, first, second, die } = await twoLives()
    let calls = 0
    const pay = graph({ name: 'pays', version: '1.0.0', state: { paid: last<string>(undefined, { initial: '' }) } })
      .node('look', () => ({ paid: 'not yet' }))
      .node('pay', {
        effect: 'idempotent',
        run: () => {
          if (++calls === 1) die()
          return { paid: 'yes' }
        },
      })
      .edge(START, 'look')
      .edge('look', 'pay')
      .edge('pay', END)
    await dies(first.thread(pay, 't').run({ input: {} }))
    const thread = (await second()).thread(pay.pauseBefore('pay'), 't')
    const asked = await thread.run()
    if (asked.status !== 'paused') throw new Error(asked.status)
    expect(asked.pauses).toMatchObject([{ kind: 'before' }])
    await clock.advance(DAYS)
    await thread.answer(asked.pauses[0].id, { approved: true })
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(calls).toBe(1)
  })

  it('is asked about, not repeated, also after a version that failed before it came to it', async () => {
    const { clock, second, version, calls } = await diesPaying()
    const hf = await second()
    const failing = version(1, () => Promise.reject(new Error('the service is down')))
    expect(await hf.thread(failing, 't').run()).toMatchObject({ status: 'failed' })
    await clock.advance(DAYS)
    const outcome = await hf
      .thread(
        version(0, async () => {}),
        't',
      )
      .run()
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(calls()).toBe(1)
  })

  it('is asked about, not repeated, also after a process that was stopped before it came to it', async () => {
    const { clock, second, version, calls } = await diesPaying()
    const hf = await second()
    const stop = new AbortController()
    const slow = version(0, () => {
      stop.abort()
      return new Promise(() => {})
    })
    await expect(hf.thread(slow, 't').run({ signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
    await clock.advance(DAYS)
    const outcome = await hf
      .thread(
        version(0, async () => {}),
        't',
      )
      .run()
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(calls()).toBe(1)
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

describe('an idempotent step that is first come to long after a run was taken up', () => {
  const MINUTE = 60_000
  const POLICY = { effect: 'idempotent', keyTtlMs: 5 * MINUTE } as const

  /** Runs it until its process dies in the first long work, and again in another one. */
  async function takeUp(program: (work: () => Promise<number>, pay: () => number) => FlowProgram, days = 0) {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    let works = 0
    let paid = 0
    const work = async () => {
      if (++works > 1) await clock.sleep(10 * MINUTE)
      else first.crashAt(1, 'before')
      return works
    }
    const made = program(work, () => ++paid)
    const dying = new Holdfast(new LogStore(first, { clock })).thread(made, 't')
    await expect(dying.run({ input: {} })).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(MINUTE + days * 24 * 60 * MINUTE)
    const running = new Holdfast(new LogStore(driver, { clock })).thread(made, 't').run()
    let over = false
    void running.finally(() => {
      over = true
    })
    while (!over) await clock.advance(MINUTE)
    return { outcome: await running, paid: () => paid }
  }

  const inFlow = (work: () => Promise<number>, pay: () => number) =>
    flow({ name: 'pays', version: '1.0.0' }, async (ctx) => {
      await ctx.step('look', () => 'seen')
      await ctx.step('work', work)
      return ctx.step('pay', POLICY, pay)
    })

  const inGraph = (work: () => Promise<number>, pay: () => number) =>
    graph({ name: 'pays', version: '1.0.0', state: { n: last<number>() } })
      .node('work', async () => ({ n: await work() }))
      .node('pay', { ...POLICY, run: () => ({ n: pay() }) })
      .edge(START, 'work')
      .edge('work', 'pay')
      .edge('pay', END) as never

  const inNode = (work: () => Promise<number>, pay: () => number) =>
    graph({ name: 'pays', version: '1.0.0', state: { n: last<number>() } })
      .node('both', async (_, ctx) => {
        await ctx.step('work', work)
        return { n: await ctx.step('pay', POLICY, pay) }
      })
      .edge(START, 'both')
      .edge('both', END) as never

  const inSubgraph = (work: () => Promise<number>, pay: () => number) =>
    graph({ name: 'outer', version: '1.0.0', state: { n: last<number>() } })
      .node('inner', inGraph(work, pay) as never)
      .edge(START, 'inner')
      .edge('inner', END) as never

  it.each([
    ['a flow', inFlow],
    ['a graph', inGraph],
    ['a node', inNode],
    ['a subgraph', inSubgraph],
  ])('of %s is not asked about: nobody can have begun it', async (_, program) => {
    const { outcome, paid } = await takeUp(program)
    expect(outcome).toMatchObject({ status: 'completed' })
    expect(paid()).toBe(1)
  })

  it('is asked about when it may have been under way beside what ran long', async () => {
    const { outcome, paid } = await takeUp(
      (work, pay) =>
        flow({ name: 'pays', version: '1.0.0' }, async (ctx) => {
          await ctx.step('look', () => 'seen')
          const both = [ctx.step('pay', POLICY, pay), ctx.step('work', work)]
          return Promise.all(both)
        }),
      1,
    )
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(paid()).toBe(1)
  })

  it('is not asked about when its run had not even begun', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    let paid = 0
    const pay = flow({ name: 'pays', version: '1.0.0' }, (ctx) => {
      // The input is there; the entry that an effect waits for never comes.
      first.crashAt(1, 'before')
      return ctx.step('pay', POLICY, () => ++paid)
    })
    const thread = new Holdfast(new LogStore(first, { clock })).thread(pay, 't')
    await expect(thread.run({ input: {} })).rejects.toMatchObject({ code: 'closed' })
    expect(paid).toBe(0)
    await clock.advance(10 * MINUTE)
    const outcome = await new Holdfast(new LogStore(driver, { clock })).thread(pay, 't').run()
    expect(outcome).toMatchObject({ status: 'completed', output: 1 })
  })
})

it('an idempotent step that was refused for certain since a crash is asked about once, not at each resume', async () => {
  const { first, second, die } = await twoLives()
  const keys: string[] = []
  let refuses = true
  const pay = flow<string, string>({ name: 'pays', version: '1.0.0' }, (ctx) =>
    ctx.step('pay', { effect: 'idempotent', retry: { attempts: 1 } }, ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      if (keys.length === 1) die()
      else if (refuses) throw new NotExecutedError('The card was declined.')
      return 'paid'
    }),
  )
  await dies(first.thread(pay, 't').run({ input: 'a', frequency: { every: 2 } }))
  const hf = await second()
  const thread = hf.thread(pay, 't')
  // The refusal says nothing of the call before the crash, which had the same key.
  const asked = await thread.run()
  if (asked.status !== 'paused') throw new Error(asked.status)
  await thread.answer(asked.pauses[0].id, { outcome: 'not-executed' })
  // A worker that is ahead of its records may have begun anything that comes later, until the run has got there.
  const ahead = { frequency: { every: 2 } } as const
  for (let i = 0; i < 3; i++) expect(await thread.run(ahead)).toMatchObject({ status: 'failed' })
  refuses = false
  expect(await thread.run(ahead)).toMatchObject({ status: 'completed', output: 'paid' })
  // A service may remember each key together with its refusal.
  expect(new Set(keys.slice(-4)).size).toBe(4)
})

it('an idempotent step that a resumed run was at when it crashed is asked about again', async () => {
  const { clock, driver } = await twoLives()
  const open = () => {
    const mortal = faultyDriver(driver)
    return { hf: new Holdfast(new LogStore(mortal, { clock })), die: () => mortal.crashAt(1, 'before') }
  }
  let calls = 0
  let act: () => unknown = () => 'paid'
  const pay = flow<string, unknown>({ name: 'pays', version: '1.0.0' }, async (ctx) => {
    await ctx.step('look', () => 1)
    return ctx.step('pay', { effect: 'idempotent', retry: { attempts: 1 } }, () => {
      calls++
      return act()
    })
  })
  const refuse = () => {
    throw new NotExecutedError('The card was declined.')
  }
  const first = open()
  act = refuse
  expect(await first.hf.thread(pay, 't').run({ input: 'a' })).toMatchObject({ status: 'failed' })
  act = first.die
  await dies(first.hf.thread(pay, 't').run())
  await clock.advance(3 * 24 * 60 * 60 * 1000)
  // It may have happened days ago, and the other side may have forgotten the key.
  expect(await open().hf.thread(pay, 't').run()).toMatchObject({
    status: 'paused',
    pauses: [{ kind: 'unknown-effect' }],
  })
  expect(calls).toBe(2)
})
