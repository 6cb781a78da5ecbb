import { Socket } from 'node:net'
import {
  append,
  type Context,
  END,
  flow,
  graph,
  type Holdfast,
  last,
  openHoldfast,
  reduced,
  send,
  START,
} from 'holdfast'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { onEveryBackend } from '../support/every-backend.js'

let threads = 0
const fresh = (): string => `replay-${threads++}`
const VERSION = { version: '1.0.0' }

function forbidNetwork(): { readonly tried: () => number } {
  const connect = vi.spyOn(Socket.prototype, 'connect').mockImplementation(() => {
    throw new Error('A replay reached for the network.')
  })
  return { tried: () => connect.mock.calls.length }
}

afterEach(() => {
  vi.restoreAllMocks()
})

const shopState = {
  items: append<string>(),
  checked: last<boolean>(),
  total: reduced(undefined, (old: number, more: number) => old + more, { initial: 0 }),
}

const shop = (
  change: {
    readonly route?: boolean
    readonly reducer?: (old: number, more: number) => number
    readonly without?: 'check'
    readonly initial?: number
    readonly throwing?: boolean
  } = {},
) => {
  const state = {
    ...shopState,
    total: reduced(undefined, change.reducer ?? ((old: number, more: number) => old + more), {
      initial: change.initial ?? 0,
    }),
  }
  const inner = graph({ name: 'inner', ...VERSION, state: { items: append<string>(), total: state.total } })
    .node('price', ({ items }) => ({ total: items.length }))
    .edge(START, 'price')
    .edge('price', END)
  const begun = graph({ name: 'shop', ...VERSION, state })
    .node('list', ({ items }) => ({ items: [`${items[0]}-a`, `${items[0]}-b`], total: 1 }))
    .node('each', { run: (_, ctx) => ({ items: `each ${ctx.input as string}`, total: 2 }) })
    .node('price', inner, { input: ({ items }) => ({ items }), output: ({ total }) => ({ total }) })
    .node('pay', () => ({ total: 5 }))
    .edge(START, 'list')
    .branch(
      'list',
      ({ items }) => {
        if (change.throwing) throw new TypeError('the route broke')
        return (change.route ? items.slice(1) : items).map((item) => send('each', item))
      },
      ['each'],
    )
    .edge('each', 'price')
  return change.without
    ? begun.edge('price', 'pay').edge('pay', END)
    : begun
        .node('check', () => ({ checked: true }))
        .edge('price', 'check')
        .edge('check', 'pay')
        .edge('pay', END)
}

await onEveryBackend('a replay', (open) => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await open()
  })

  it('runs nothing and ends in the identical state', async () => {
    let calls = 0
    const program = graph({ name: 'loop', ...VERSION, state: shopState })
      .node('count', () => {
        calls++
        return { total: 1, items: `item ${calls}` }
      })
      .edge(START, 'count')
      .branch('count', ({ total }) => (total < 5 ? 'count' : END), ['count', END])
    const thread = hf.thread(program, fresh())
    const { state } = await thread.run({ input: { items: 'begin' } })
    expect(await thread.replay()).toStrictEqual({ status: 'identical', steps: 5, state })
    expect(calls).toBe(5)

    const asking = flow({ name: 'asking', ...VERSION }, async (ctx, input: string) => {
      const seen = await ctx.step('see', { input }, () => ++calls)
      const answer = await ctx.pause<{ ok: boolean }>({ seen })
      await ctx.sleep(1)
      const word = await ctx.receive<string>('word')
      return { seen, answer, word, last: await ctx.step('last', () => ++calls) }
    })
    const conversation = hf.thread(asking, fresh())
    const first = await conversation.run({ input: 'hello' })
    if (first.status !== 'paused') throw new Error(first.status)
    expect(await conversation.replay()).toMatchObject({ status: 'incomplete', steps: 1 })
    await conversation.answer(first.pauses[0]?.id as string, { ok: true })
    await conversation.run()
    expect(await conversation.replay()).toMatchObject({ status: 'incomplete', steps: 1 })
    await conversation.signal('word', 'go')
    const ended = await conversation.run()
    const before = calls
    const report = await conversation.replay()
    expect(report).toMatchObject({ status: 'identical', output: ended.status === 'completed' ? ended.output : 0 })
    const fork = await conversation.at(ended.checkpoint as string).fork({ name: 'after' })
    expect(await fork.replay()).toStrictEqual(report)
    expect(calls).toBe(before)
  })
})

describe('a replay of a graph', () => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await openHoldfast('memory:')
  })
  afterAll(() => hf.close())

  it('opens no socket', async () => {
    const thread = hf.thread(shop(), fresh())
    const { state } = await thread.run({ input: { items: 'x' } })
    const network = forbidNetwork()
    expect(await thread.replay()).toStrictEqual({ status: 'identical', steps: 8, state })
    expect(network.tried()).toBe(0)
  })

  it('names the first step where today’s program would go elsewhere', async () => {
    const id = fresh()
    const { state } = await hf.thread(shop(), id).run({ input: { items: 'x' } })
    const replayed = async (change: Parameters<typeof shop>[0]) => {
      const report = await hf.thread(shop(change), id).replay()
      expect(report.status).toBe('differs')
      expect(report.state).toStrictEqual(state)
      const { checkpoint = '', ...difference } = report.difference ?? {}
      expect((await hf.thread(shop(), id).history()).map((one) => one.id)).toContain(checkpoint)
      return difference
    }
    expect(await replayed({ route: true })).toMatchObject({
      step: '0:list',
      what: 'route',
      recorded: [{ input: 'x' }, { input: 'x-a' }, { input: 'x-b' }],
      now: [{ input: 'x-a' }, { input: 'x-b' }],
    })
    expect(await replayed({ reducer: (old, more) => Math.max(old, more) })).toMatchObject({
      step: '1:each[0]',
      what: 'state',
      recorded: { total: 7 },
      now: { total: 2 },
    })
    expect(await replayed({ initial: 1 })).toMatchObject({ step: 'the start', what: 'state' })
    expect(await replayed({ without: 'check' })).toMatchObject({
      step: '2:price',
      what: 'route',
      message: expect.stringContaining('continues to check, the current'),
    })
    expect(await replayed({ throwing: true })).toMatchObject({ what: 'route', message: 'the route broke' })
  })

  it('names a node that is gone and that nothing leads to any more', async () => {
    const program = (names: readonly string[], alias: Record<string, string> = {}) =>
      names
        .reduce(
          (made, name) => made.node(name, () => ({ items: name })) as never,
          graph({ name: 'line', ...VERSION, state: { items: append<string>() }, aliases: alias }),
        )
        .edge(START, names[0] as never)
        .edge(names[0] as never, names[1] as never)
        .edge(names[1] as never, END)
    const id = fresh()
    await hf.thread(program(['a', 'b']), id).run({ input: {} })
    expect(await hf.thread(program(['a', 'c']), id).replay()).toMatchObject({
      status: 'differs',
      difference: { step: '0:a', what: 'route' },
    })
    expect(await hf.thread(program(['c', 'b']), id).replay()).toMatchObject({
      status: 'differs',
      difference: { step: 'the start', what: 'route' },
    })
  })

  it('goes over several runs, failed and paused ones, and over a fork', async () => {
    let fails = true
    const program = graph({ name: 'runs', ...VERSION, state: shopState })
      .node('work', {
        retry: { attempts: 1 },
        run: () => {
          if (fails) throw new Error('not yet')
          return { total: 1 }
        },
      })
      .node('pay', () => ({ total: 10 }))
      .edge(START, 'work')
      .edge('work', 'pay')
      .edge('pay', END)
      .pauseBefore('pay')
    const thread = hf.thread(program, fresh())
    await thread.run({ input: {} })
    expect(await thread.replay()).toMatchObject({ status: 'incomplete', steps: 0 })
    fails = false
    for (let round = 1; round <= 3; round++) {
      const paused = await thread.run(round === 1 ? {} : { input: { items: `round ${round}` } })
      if (paused.status !== 'paused') throw new Error(paused.status)
      expect(await thread.replay()).toMatchObject({ status: 'incomplete', steps: 2 * round - 1 })
      await thread.answer(paused.pauses[0]?.id as string, { approved: true })
      await thread.run()
      expect(await thread.replay()).toMatchObject({
        status: 'identical',
        steps: 2 * round,
        state: { total: 11 * round },
      })
    }
    const at = (await thread.history()).at(-2)?.id as string
    const fork = await thread.at(at).fork({ set: { total: 100 } })
    expect(await fork.replay()).toMatchObject({ status: 'incomplete', steps: 0, state: { total: 100 } })
  })

  it('takes a migration as it is, and what came before it', async () => {
    const old = graph({ name: 'grown', ...VERSION, state: { count: reduced(undefined, add, { initial: 0 }) } })
      .node('work', () => ({ count: 1 }))
      .edge(START, 'work')
      .edge('work', END)
    const grown = graph({
      name: 'grown',
      ...VERSION,
      stateVersion: 2,
      migrations: { 2: ({ count, ...rest }) => ({ ...rest, total: (count as number) * 100 }) },
      state: { total: reduced(undefined, add, { initial: 0 }) },
    })
      .node('work', () => ({ total: 1 }))
      .edge(START, 'work')
      .edge('work', END)
    const id = fresh()
    await hf.thread(old, id).run({ input: {} })
    await hf.thread(grown, id).run({ input: { total: 5 } })
    expect(await hf.thread(grown, id).replay()).toMatchObject({
      status: 'identical',
      steps: 2,
      state: { total: 106 },
      otherVersions: [{ graph: 'grown', stateVersion: 1, steps: 1, compared: 'routes' }],
    })
    const forgot = graph({
      name: 'grown',
      ...VERSION,
      stateVersion: 2,
      state: { total: reduced(undefined, add, { initial: 0 }) },
    })
      .node('work', () => ({ total: 1 }))
      .edge(START, 'work')
      .edge('work', END)
    expect(await hf.thread(forgot, id).replay()).toMatchObject({
      status: 'incomplete',
      steps: 1,
      message: expect.stringContaining('no migration leads from 1 to 2'),
      otherVersions: [{ graph: 'grown', stateVersion: 1, steps: 1, compared: 'nothing' }],
    })
    expect(await hf.thread(old, id).replay()).toMatchObject({
      status: 'incomplete',
      otherVersions: [{ stateVersion: 2, compared: 'nothing', reason: expect.stringContaining('version 2') }],
    })
  })

  it('goes through records of an older version by its migrations, and names a route that is another one', async () => {
    const program = (stateVersion: number, limit: number) =>
      graph({
        name: 'routed',
        ...VERSION,
        stateVersion,
        migrations: stateVersion === 1 ? {} : { 2: ({ cents }) => ({ euros: Number(cents) / 100 }) },
        state: (stateVersion === 1 ? { cents: last<number>() } : { euros: last<number>() }) as { euros: never },
      })
        .node('look', () => {})
        .node('cheap', () => {})
        .node('dear', () => {})
        .edge(START, 'look')
        .branch('look', ({ euros, cents }: any) => ((euros ?? cents) < limit ? 'cheap' : 'dear'), ['cheap', 'dear'])
        .edge('cheap', END)
        .edge('dear', END)
    const id = fresh()
    await hf.thread(program(1, 1000), id).run({ input: { cents: 500 } as never })
    const other = { graph: 'routed', stateVersion: 1, compared: 'routes' }
    expect(await hf.thread(program(2, 10), id).replay()).toEqual({
      status: 'identical',
      steps: 2,
      state: { cents: 500 },
      otherVersions: [{ ...other, steps: 2 }],
    })
    expect(await hf.thread(program(2, 1), id).replay()).toMatchObject({
      status: 'differs',
      difference: { step: '0:look', what: 'route', message: expect.stringContaining('to cheap, the current') },
    })
  })

  it('knows nodes by the names that they have now', async () => {
    const line = (first: string, second: string, aliases: Record<string, string> = {}) =>
      graph({ name: 'renamed', ...VERSION, aliases, state: { items: append<string>() } })
        .node(first, () => ({ items: 'first' }))
        .node(second, { run: (_, ctx) => ({ items: `second ${ctx.input as string}` }) })
        .edge(START, first)
        .branch(first, () => ['x', 'y'].map((item) => send(second, item)), [second])
        .edge(second, END)
    const id = fresh()
    await hf.thread(line('a', 'b'), id).run({ input: {} })
    expect(await hf.thread(line('c', 'd', { a: 'c', b: 'd' }), id).replay()).toMatchObject({
      status: 'identical',
      steps: 3,
    })
    expect(await hf.thread(line('c', 'd', { a: 'c' }), id).replay()).toMatchObject({
      status: 'differs',
      difference: { step: '0:a', what: 'route' },
    })
  })

  describe('of a graph within a graph', () => {
    const nested = ({
      enter = (n: number) => n,
      leave = (n: number) => n,
      version = 1,
      gate = false,
    }: {
      readonly enter?: (n: number) => number
      readonly leave?: (n: number) => number
      readonly version?: number
      readonly gate?: boolean
    }) => {
      const inner = graph({
        name: 'inner',
        ...VERSION,
        stateVersion: version,
        migrations: version === 1 ? {} : { 2: ({ n }) => ({ n: Number(n) * 10 }) },
        state: { n: reduced(undefined, add, { initial: 0 }) },
      })
        .node('one', () => ({ n: 1 }))
        .node('ask', async (_, ctx) => ({ n: gate ? await ctx.pause<number>('How many?') : 1 }))
        .edge(START, 'one')
        .edge('one', 'ask')
        .edge('ask', END)
      return graph({ name: 'outer', ...VERSION, state: { n: last<number>(), seen: append<number>() } })
        .node('sub', inner, {
          input: ({ n }) => ({ n: enter(n ?? 0) }),
          output: ({ n }) => ({ seen: leave(n) }),
        })
        .edge(START, 'sub')
        .edge('sub', END)
    }

    it('finds another way in and another way out', async () => {
      const id = fresh()
      await hf.thread(nested({}), id).run({ input: { n: 4 } })
      const replay = (program: ReturnType<typeof nested>) => hf.thread(program, id).replay()
      expect(await replay(nested({}))).toMatchObject({ status: 'identical', state: { seen: [6] } })
      expect(await replay(nested({ enter: (n) => n + 1 }))).toMatchObject({
        status: 'differs',
        difference: { step: '0:sub', what: 'state', recorded: { n: 4 }, now: { n: 5 }, checkpoint: expect.any(String) },
      })
      expect(await replay(nested({ leave: (n) => -n }))).toMatchObject({
        status: 'differs',
        difference: { step: '0:sub', what: 'state', recorded: { seen: [6] }, now: { seen: [-6] } },
      })
    })

    it('lets what a person changed at its gate be', async () => {
      const thread = hf.thread(nested({}).pauseBefore('sub').pauseAfter('sub'), fresh())
      for (let outcome = await thread.run({ input: { n: 4 } }), n = 7; outcome.status === 'paused'; n++) {
        await thread.answer(outcome.pauses[0].id, { approved: true, update: { n } })
        outcome = await thread.run()
      }
      expect(await thread.replay()).toMatchObject({ status: 'identical', state: { n: 8, seen: [6] } })
    })

    it('reads its state by the version that it has by itself, also when that was raised under way', async () => {
      const id = fresh()
      const paused = await hf.thread(nested({ gate: true }), id).run({ input: { n: 4 } })
      if (paused.status !== 'paused') throw new Error(paused.status)
      await hf.inspect(id).answer(paused.pauses[0].id, 3)
      const newer = hf.thread(nested({ gate: true, version: 2 }), id)
      expect(await newer.run()).toMatchObject({ status: 'completed', state: { seen: [53] } })
      expect(await newer.replay()).toMatchObject({
        status: 'identical',
        steps: 3,
        otherVersions: [{ graph: 'inner', stateVersion: 1, steps: 1, compared: 'routes' }],
      })
    })
  })

  it('starts where the past was pruned', async () => {
    const thread = hf.thread(shop(), fresh())
    await thread.run({ input: { items: 'x' } })
    const log = await hf.log(thread.id)
    const claim = await log.claim({ owner: 'test', ms: 1000 })
    await claim.release(() => [{ kind: 'step', keyframe: true }])
    await hf.prune(thread.id, log.fold.seq)
    await thread.run({ input: { items: 'y' } })
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
    expect(await hf.thread(shop({ reducer: (old, more) => old + 2 * more }), thread.id).replay()).toMatchObject({
      status: 'differs',
      difference: { step: '0:list' },
    })
  })
})

function add(old: number, more: number): number {
  return old + more
}

describe('a replay of a flow', () => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await openHoldfast('memory:')
  })
  afterAll(() => hf.close())

  type Body = (ctx: Context, input: number) => unknown
  const program = (body: Body) => flow({ name: 'steps', ...VERSION, retry: { attempts: 1 } }, body)
  const recorded = async (body: Body, input = 1) => {
    const thread = hf.thread(program(body), fresh())
    return { id: thread.id, thread, outcome: await thread.run({ input }) }
  }
  const never = () => {
    throw new Error('A replay ran a step.')
  }
  const abc: Body = async (ctx, input) => {
    const a = await ctx.step('a', { input }, () => `a${input}`)
    const b = await ctx.step('b', { input: a }, () => 'b')
    return [a, b]
  }

  it('opens no socket and makes the same output', async () => {
    const { thread } = await recorded(abc)
    const network = forbidNetwork()
    expect(await thread.replay()).toStrictEqual({ status: 'identical', steps: 2, state: {}, output: ['a1', 'b'] })
    expect(network.tried()).toBe(0)
  })

  it('names the step that was renamed, changed its input or its place, is new or gone, or ends otherwise', async () => {
    const { id } = await recorded(abc)
    const differs = async (body: Body) => {
      const report = await hf.thread(program(body), id).replay()
      expect(report.status).toBe('differs')
      return report.difference
    }
    expect(await differs(async (ctx, input) => ctx.step('renamed', { input }, never))).toMatchObject({
      step: 'renamed',
      what: 'step',
    })
    expect(await differs(async (ctx, input) => ctx.step('a', { input: input + 1 }, never))).toMatchObject({ step: 'a' })
    const swapped: Body = async (ctx, input) => {
      const b = await ctx.step('b', { input: 'a1' }, never)
      const a = await ctx.step('a', { input }, never)
      return [a, b]
    }
    expect(await differs(swapped)).toMatchObject({ step: 'b', message: expect.stringContaining('"a" next') })
    const extra: Body = async (ctx, input) => {
      const ends = await abc(ctx, input)
      await ctx.step('extra', never)
      return ends
    }
    expect(await differs(extra)).toMatchObject({ step: 'extra' })
    expect(await differs(async (ctx, input) => ctx.step('a', { input }, never))).toMatchObject({
      step: 'b',
      message: expect.stringContaining('did not come back'),
    })
    const other: Body = async (ctx, input) => [await abc(ctx, input), 'more']
    expect(await differs(other)).toMatchObject({
      step: 'the end',
      what: 'output',
      recorded: ['a1', 'b'],
      now: [['a1', 'b'], 'more'],
    })
    expect(await differs(async (ctx, input) => [await abc(ctx, input), await ctx.pause('really?')])).toMatchObject({
      step: 'pause 0',
    })
    expect(await differs(async (ctx, input) => [await abc(ctx, input), await ctx.receive('go')])).toMatchObject({
      step: 'receive go[0]',
    })
    const broken: Body = () => {
      throw new TypeError('broken')
    }
    expect(await differs(broken)).toMatchObject({ message: 'broken' })
  })

  it('lets steps that ran side by side meet as they met', async () => {
    const winner: Body = async (ctx) => {
      const order: string[] = []
      const chain = async (name: string, delays: readonly number[]) => {
        for (const [i, ms] of delays.entries()) {
          await ctx.step(`${name}${i}`, () => new Promise((resolve) => setTimeout(resolve, ms)))
          order.push(`${name}${i}`)
        }
      }
      await Promise.all([chain('slow', [40, 1]), chain('fast', [1, 1, 1])])
      return order
    }
    const { thread, outcome } = await recorded(winner)
    const { status, output } = await thread.replay()
    expect(status).toBe('identical')
    expect(output).toStrictEqual(outcome.status === 'completed' && outcome.output)
  })

  it('goes as far as the record of an unfinished run, and sees changes before that', async () => {
    const asking: Body = async (ctx, input) => [await abc(ctx, input), await ctx.pause('go on?')]
    const { id, thread } = await recorded(asking)
    expect(await thread.replay()).toStrictEqual({ status: 'incomplete', steps: 2, state: {} })
    const differs = async (body: Body) => (await hf.thread(program(body), id).replay()).difference?.step
    expect(await differs(async (ctx) => ctx.step('renamed', never))).toBe('renamed')
    expect(await differs(async (ctx, input) => [await abc(ctx, input), await ctx.pause('sure?')])).toBe('pause 0')
    expect(await differs(async (ctx, input) => [await abc(ctx, input), await ctx.step('new', never)])).toBe('new')
    expect(await differs(abc)).toBe('the end')
    const parallel: Body = (ctx, input) => Promise.all([abc(ctx, input), ctx.pause('go on?'), ctx.receive('go')])
    const waiting = await recorded(parallel)
    expect(await waiting.thread.replay()).toMatchObject({ status: 'incomplete', steps: 2 })
  })

  it('fails where the run failed, and passes a failure that was caught or mended', async () => {
    let fails = true
    const failing: Body = async (ctx) => {
      const caught = await ctx
        .step('caught', () => {
          throw new Error('caught')
        })
        .catch((error: Error) => error.message)
      await ctx.step('fails', () => {
        if (fails) throw new Error('not yet')
      })
      return caught
    }
    const { thread } = await recorded(failing)
    expect(await thread.replay()).toMatchObject({ status: 'identical', steps: 2 })
    fails = false
    await thread.run()
    expect(await thread.replay()).toMatchObject({ status: 'identical', steps: 2 })
  })

  it('replays the last of several runs, and one whose beginning is gone not at all', async () => {
    const { thread } = await recorded(abc)
    await thread.run({ input: 2 })
    expect(await thread.replay()).toMatchObject({ status: 'identical', output: ['a2', 'b'] })
    const log = await hf.log(thread.id)
    const claim = await log.claim({ owner: 'test', ms: 1000 })
    await claim.release(() => [{ kind: 'step', keyframe: true }])
    await hf.prune(thread.id, log.fold.seq)
    expect(await thread.replay()).toStrictEqual({
      status: 'incomplete',
      steps: 0,
      state: {},
      message: 'The beginning of this run is no longer kept.',
    })
    await thread.run({ input: 3 })
    expect(await thread.replay()).toMatchObject({ status: 'identical', output: ['a3', 'b'] })
  })

  it('follows a run over the forks it went through', async () => {
    const { thread } = await recorded(abc)
    const past = (await thread.history()).toReversed()
    const fork = await thread.at(past[1]?.id as string).fork()
    expect(await fork.replay()).toMatchObject({ status: 'incomplete', steps: 1 })
    await fork.run()
    const deeper = await fork.at((await fork.history())[0]?.id as string).fork()
    for (const branch of [fork, deeper]) {
      expect(await branch.replay()).toStrictEqual({ status: 'identical', steps: 2, state: {}, output: ['a1', 'b'] })
    }
  })

  it('has nothing to say of a thread that never ran', async () => {
    await expect(hf.thread(program(abc), fresh()).replay()).rejects.toMatchObject({ code: 'not-found' })
  })
})
