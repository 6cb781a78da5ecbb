import { flow, graph, Holdfast, last, openHoldfast, reduced, START } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

const large = 'x'.repeat(20_000)
const limits = { maxBytes: 10_000 }
const open = () => openHoldfast('memory:', { limits })

/** The first write of a run after its claim is under way until it is let go. */
async function openHeld() {
  const inner = await openDriver('memory:')
  const begun = gate()
  const end = gate()
  const append: Driver['append'] = async (batch) => {
    if (batch.some(({ lease }) => lease.kind === 'extend')) {
      begun.open()
      await end.passed
    }
    return inner.append(batch)
  }
  const driver = new Proxy(inner, {
    get: (target, name) => (name === 'append' ? append : Reflect.get(target, name, target)),
  })
  return { hf: new Holdfast(new LogStore(driver, { limits })), held: begun.passed, letGo: end.open }
}

async function completed(thread: { events(): AsyncIterable<{ type: string; step?: string; status?: string }> }) {
  const done: string[] = []
  for await (const { type, step, status } of thread.events()) {
    if (type === 'step' && status === 'completed') done.push(step as string)
  }
  return done
}

describe('a result that the log refuses', () => {
  for (const durability of ['sync', 'async'] as const) {
    for (const frequency of ['step', { every: 2 }, 'boundary'] as const) {
      it(`fails the run once and lets go (${durability}, ${JSON.stringify(frequency)})`, async () => {
        let calls = 0
        const program = flow({ name: 'large', version: '1.0.0' }, async (ctx) => {
          await ctx.step('large', () => {
            // So that a run that begins again and again ends.
            if (++calls > 3) throw new Error('called again')
            return large
          })
          return ctx.step('after', () => 'after')
        })
        await using hf = await open()
        const outcome = await hf.thread(program, 'x').run({ input: 1, durability, frequency })
        expect(outcome).toMatchObject({ status: 'failed', error: { code: 'too-large' } })
        expect(calls).toBe(1)
        expect((await hf.threads()).threads).toMatchObject([{ status: 'failed', claimedBy: null, wakeAt: null }])
      })
    }
  }

  it('is caught by the program, which keeps what came before it', async () => {
    const program = flow({ name: 'caught', version: '1.0.0' }, async (ctx) => {
      const caught = await ctx.step('large', () => large).catch((error: { code: string }) => error.code)
      return [caught, await ctx.step('after', () => 'after')]
    })
    await using hf = await open()
    const thread = hf.thread(program, 'x')
    expect(await thread.run({ input: 1, key: 'k' })).toMatchObject({
      status: 'completed',
      output: ['too-large', 'after'],
    })
    expect(await thread.run({ input: 1, key: 'k' })).toMatchObject({
      status: 'completed',
      output: ['too-large', 'after'],
    })
  })

  it('stops a run that is ahead of its records, and nothing that follows is written', async () => {
    const program = flow({ name: 'ahead', version: '1.0.0' }, async (ctx) => {
      await ctx.step('first', () => 'first')
      await ctx.step('large', () => large)
      for (const key of [1, 2, 3]) await ctx.step('after', { key }, () => key).catch(() => {})
      return 'never'
    })
    await using hf = await open()
    const thread = hf.thread(program, 'x')
    expect(await thread.run({ input: 1, durability: 'async' })).toMatchObject({
      status: 'failed',
      error: { code: 'too-large' },
    })
    const steps: string[] = []
    for await (const event of thread.events()) if (event.type === 'step') steps.push(event.step)
    expect(steps).toEqual(['first'])
  })

  it('does not cut off the nodes beside it', async () => {
    let done = 0
    const program = graph({ name: 'beside', version: '1.0.0', state: { a: last<string>(), b: last<string>() } })
      .node('a', () => ({ a: large }))
      .node('b', async () => {
        for (let i = 0; i < 20; i++) await new Promise(setImmediate)
        done++
        return { b: 'b' }
      })
      .edge(START, 'a')
      .edge(START, 'b')
    await using hf = await open()
    const thread = hf.thread(program, 'x')
    expect(await thread.run({ input: {} })).toMatchObject({ status: 'failed', error: { code: 'too-large' } })
    expect(done).toBe(1)
    await thread.run()
    expect(done).toBe(1)
  })
})

describe('a result that the log refuses, beside others that are written with it', () => {
  const beside = (steps: readonly (readonly [string, string])[]) =>
    flow<number, unknown>({ name: 'beside', version: '1.0.0' }, async (ctx) => {
      // While it is decided whether there is a signal, all records wait, and are written together after that.
      const news = ctx.receive('news', { timeoutMs: 0 })
      const results = await Promise.allSettled(steps.map(([name, value]) => ctx.step(name, () => value)))
      await news
      await ctx.step('after', { effect: 'once' }, () => 'after')
      return results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.code))
    })
  const orders = [
    ['a', 'large', 'b'],
    ['large', 'a', 'b'],
    ['a', 'b', 'large'],
    ['large', 'large 2', 'a'],
  ]
  for (const durability of ['sync', 'async'] as const) {
    for (const names of orders) {
      it(`fails its own step and no other: ${names.join(', ')} (${durability})`, async () => {
        const steps = names.map((name) => [name, name.startsWith('large') ? large : name] as const)
        const expected = steps.map(([, value]) => (value === large ? 'too-large' : value))
        await using hf = await open()
        const thread = hf.thread(beside(steps), 'x')
        const outcome = await thread.run({ input: 1, key: 'k', durability })
        // Ahead of its records, a program can't be told which step it was.
        if (durability === 'async') return expect(outcome).toMatchObject({ error: { code: 'too-large' } })
        expect(outcome).toMatchObject({ status: 'completed', output: expected })
        expect((await completed(thread)).sort()).toEqual(
          ['after', ...names.filter((name) => !name.startsWith('large'))].sort(),
        )
      })
    }
  }

  it.each([[['a']], [['large']], [['a', 'large']], [['large', 'a']], [['large', 'large 2', 'a']]])(
    'takes no signal away that is received with it, and fails no other step: %j',
    async (names) => {
      const { hf, held, letGo } = await openHeld()
      await using _ = hf
      const program = flow<number, unknown>({ name: 'signals', version: '1.0.0' }, async (ctx) => {
        const first = ctx.receive('first')
        const steps = names.map((name) =>
          ctx
            .step(name, () => (name.startsWith('large') ? large : name))
            .catch((error: { code: string }) => error.code),
        )
        const others = ['second', 'third'].map((name) => ctx.receive(name))
        // The first signal is being written: all that comes meanwhile waits for it, and is written together.
        await held
        for (let i = 0; i < 20; i++) await new Promise(setImmediate)
        letGo()
        return Promise.all([first, ...steps, ...others])
      })
      const thread = hf.thread(program, 'x')
      await thread.enqueue(1)
      for (const name of ['first', 'second', 'third']) await thread.signal(name, name)
      const results = names.map((name) => (name.startsWith('large') ? 'too-large' : name))
      const outcome = await thread.run()
      expect(outcome).toMatchObject({ status: 'completed', output: ['first', ...results, 'second', 'third'] })
      const done = (await completed(thread)).filter((name) => !name.startsWith('receive'))
      expect(done.sort()).toEqual(names.filter((name) => !name.startsWith('large')).sort())
    },
  )

  it('fails no wait that would have been written with it', async () => {
    const program = flow<number, unknown>({ name: 'waits', version: '1.0.0' }, async (ctx) => {
      const news = ctx.receive('news', { timeoutMs: 0 })
      const step = ctx.step('large', () => large).catch((error: { code: string }) => error.code)
      const more = ctx.receive('more', { timeoutMs: 0 })
      const most = ctx.receive('most', { timeoutMs: 0 })
      return [await news, await step, await more, await most].map((one) => one ?? null)
    })
    await using hf = await open()
    expect(await hf.thread(program, 'x').run({ input: 1 })).toMatchObject({
      status: 'completed',
      output: [null, 'too-large', null, null],
    })
  })
})

describe('a reducer whose value can’t be stored', () => {
  const nodeRuns = { count: 0 }
  const made = (reducer: (old: number, update: number) => unknown) =>
    graph({
      name: 'reducing',
      version: '1.0.0',
      state: { a: reduced<number, number>(undefined, reducer as never, { initial: () => 0 }), b: last<string>() },
    })
      .node('n', () => {
        nodeRuns.count++
        return { a: 1 }
      })
      .node('m', () => ({ b: 'm' }))
      .edge(START, 'n')
      .edge('n', 'm')

  it('fails the run once, names the key where it can, and keeps what the node did', async () => {
    const reducers = [async () => 1, () => () => 1, () => large]
    for (const reducer of reducers) {
      nodeRuns.count = 0
      await using hf = await open()
      expect(await hf.thread(made(reducer), 'x').run({ input: {} })).toMatchObject({ status: 'failed' })
      expect(
        await hf
          .thread(
            made((old, update) => old + update),
            'x',
          )
          .run(),
      ).toMatchObject({
        status: 'completed',
        state: { a: 1, b: 'm' },
      })
      expect(nodeRuns.count).toBe(1)
    }
    await using hf = await open()
    expect(
      await hf
        .thread(
          made(async () => 1),
          'x',
        )
        .run({ input: {} }),
    ).toMatchObject({
      error: { message: expect.stringContaining('state.a is a promise') },
    })
  })

  it('parks a thread whose run can’t even begin, and a mended program goes on', async () => {
    await using hf = await open()
    const outcome = await hf
      .thread(
        made(() => () => 1),
        'x',
      )
      .run({ input: { a: 1 } })
    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'invalid-value' } })
    expect((await hf.threads()).threads).toMatchObject([{ status: 'failed', claimedBy: null, wakeAt: null }])
    expect(
      await hf
        .thread(
          made((old, update) => old + update),
          'x',
        )
        .run(),
    ).toMatchObject({
      status: 'completed',
      state: { a: 2, b: 'm' },
    })
  })
})
