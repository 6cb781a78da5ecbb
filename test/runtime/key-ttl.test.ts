import {
  END,
  flow,
  type FlowProgram,
  graph,
  Holdfast,
  last,
  LogStore,
  NotExecutedError,
  openDriver,
  START,
} from 'holdfast'
import { faultyDriver, virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { dies, twoLives } from '../support/two-lives.js'

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
