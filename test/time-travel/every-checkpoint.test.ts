import {
  append,
  END,
  flow,
  graph,
  type Holdfast,
  last,
  openHoldfast,
  type Outcome,
  reduced,
  send,
  START,
  type Thread,
} from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { onEveryBackend } from '../support/every-backend.js'

const VERSION = { version: '1.0.0' }
const sum = () => reduced(undefined, (old: number, more: number) => old + more, { initial: 0 })
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** A fan-out whose items land one by one, a join, a subgraph with a fan-out of its own, and a loop. */
const inner = graph({ name: 'inner', ...VERSION, state: { seen: append<string>(), total: sum() } })
  .node('split', () => ({ seen: 'split' }))
  .node('part', {
    run: async (_, ctx) => {
      await later(2 * (ctx.input as number))
      return { seen: `part ${ctx.input as number}`, total: ctx.input as number }
    },
  })
  .edge(START, 'split')
  .branch('split', () => [send('part', 1), send('part', 2), send('part', 3)], ['part'])
  .edge('part', END)

const wide = graph({ name: 'wide', ...VERSION, state: { seen: append<string>(), total: sum(), rounds: sum() } })
  .node('left', async (_, ctx) => ({ seen: `left ${await ctx.step('inside', () => 'step')}`, total: 1 }))
  .node('right', async () => {
    await later(5)
    return { seen: 'right', total: 2 }
  })
  .node('deep', inner, {
    input: ({ total }) => ({ total }),
    output: (sub, { total }) => ({ seen: [...sub.seen], total: sub.total - total }),
  })
  .node('join', () => ({ seen: 'join', rounds: 1 }))
  .edge(START, 'left')
  .edge(START, 'right')
  .edge(START, 'deep')
  .edge(['left', 'right', 'deep'], 'join')
  .branch('join', ({ rounds }) => (rounds < 2 ? ['left', 'right', 'deep'] : END), ['left', 'right', 'deep', END])

const steps = flow({ name: 'steps', ...VERSION }, async (ctx, input: number) => {
  const first = await ctx.step('first', { input }, () => input + 1)
  const parts = await Promise.all(
    [3, 1, 2].map((n) => ctx.step('part', { key: n, input: n }, () => later(n).then(() => first * n))),
  )
  const failed = await ctx
    .step('fails', { retry: { attempts: 1 } }, () => {
      throw new Error('as always')
    })
    .catch((error: Error) => error.message)
  return { first, parts, failed, end: await ctx.step('end', { input: parts }, () => parts.length) }
})

/** Questions, signals, a gate before a node, and input that waits for its turn. */
const asking = graph({
  name: 'asking',
  ...VERSION,
  state: { seen: append<string>(), answers: append<unknown>(), word: last<string>() },
})
  .node('ask', async (_, ctx) => {
    const before = await ctx.step('before', () => 'read')
    const [one, two] = await Promise.all([ctx.pause({ q: 1, before }), ctx.pause({ q: 2 })])
    return { seen: 'asked', answers: [one, two] }
  })
  .node('beside', () => ({ seen: 'beside' }))
  .node('listen', async (_, ctx) => ({ word: await ctx.receive<string>('word'), seen: 'heard' }))
  .node('last', () => ({ seen: 'last' }))
  .edge(START, 'ask')
  .edge(START, 'beside')
  .edge(['ask', 'beside'], 'listen')
  .edge('listen', 'last')
  .edge('last', END)
  .pauseBefore('last')

type AnyThread = Thread<never, never, never, never>

/** Answers whatever is asked, the same each time, until the thread rests. */
async function toTheEnd(thread: AnyThread, outcome: Outcome<never, never>): Promise<Outcome<never, never>> {
  let now = outcome
  for (let round = 0; now.status === 'paused' && round < 20; round++) {
    const { pauses, waiting } = now
    for (const { id, kind, question } of pauses) {
      await thread.answer(id, kind === 'before' ? { approved: true } : { answered: question })
    }
    if (pauses.length === 0 && waiting.some(({ kind }) => kind === 'signal')) await thread.signal('word', 'hello')
    now = await thread.run()
  }
  return now
}

function outputOf(outcome: Outcome<never, never>): unknown {
  return outcome.status === 'completed' ? outcome.output : undefined
}

async function forksEverywhere(thread: AnyThread, expected: Outcome<never, never>): Promise<number> {
  const before = await thread.history({ limit: 1000 })
  await Promise.all(
    before.map(async ({ id }) => {
      const fork = (await thread.at(id).fork({ effects: 'deny' })) as AnyThread
      const ended = await toTheEnd(fork, await fork.run())
      const { status, state } = ended
      expect({ id, status, state, output: outputOf(ended) }).toStrictEqual({
        id,
        status: 'completed',
        state: expected.state,
        output: outputOf(expected),
      })
    }),
  )
  expect(await thread.history({ limit: 1000 })).toStrictEqual(before)
  return before.length
}

const programs = {
  'a graph with fan-outs, joins and subgraphs': { program: wide, input: { seen: 'begin' } },
  'a flow with steps side by side and a failed one': { program: steps, input: 5 },
  'a graph that asks, listens and waits at a gate': { program: asking, input: { seen: 'begin' } },
}

describe('a fork of every checkpoint ends as the run did', () => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await openHoldfast('memory:')
  })
  afterAll(() => hf.close())

  for (const [title, { program, input }] of Object.entries(programs)) {
    it(`for ${title}`, async () => {
      const thread = hf.thread(program as typeof wide, title) as unknown as AnyThread
      const ended = await toTheEnd(thread, await thread.run({ input: input as never }))
      expect(ended.status).toBe('completed')
      expect(await forksEverywhere(thread, ended)).toBeGreaterThan(7)
    })
  }

  it('with input that waited for its turn and signals that came early', async () => {
    const thread = hf.thread(asking, 'queued') as unknown as AnyThread
    const paused = await thread.run({ input: { seen: 'first' } as never })
    expect(paused.status).toBe('paused')
    await thread.signal('word', 'hello')
    await thread.signal('word', 'hello')
    await thread.run({ input: { seen: 'second' } as never, key: 'second', onPaused: 'queue' })
    const ended = await toTheEnd(thread, await thread.run())
    expect(ended.state).toMatchObject({
      seen: ['first', 'asked', 'beside', 'heard', 'last', 'second', 'asked', 'beside', 'heard', 'last'],
    })
    const past = await thread.history({ limit: 1000 })
    // From before the second input came, the forks know only of the first.
    const since = past.findIndex(({ kind, seq }) => kind === 'input' && seq > 2)
    expect(since).toBeGreaterThan(5)
    for (const { id } of past.slice(0, since + 1)) {
      const fork = (await thread.at(id).fork()) as AnyThread
      expect({ id, state: (await toTheEnd(fork, await fork.run())).state }).toStrictEqual({ id, state: ended.state })
    }
  })

  it('and a fork of each fork, too', async () => {
    const thread = hf.thread(steps, 'deep') as unknown as AnyThread
    const ended = await thread.run({ input: 2 as never })
    for (const { id } of await thread.history()) {
      const fork = (await thread.at(id).fork()) as AnyThread
      await fork.run()
      await forksEverywhere(fork, ended)
    }
  })
})

await onEveryBackend('a fork of every checkpoint', (open) => {
  it('ends as the run did', async () => {
    const hf = await open()
    const thread = hf.thread(steps, 'steps') as unknown as AnyThread
    await forksEverywhere(thread, await thread.run({ input: 3 as never }))
  })
})

describe('recorded reads', () => {
  let hf: Holdfast
  beforeAll(async () => {
    hf = await openHoldfast('memory:')
  })
  afterAll(() => hf.close())

  it('are taken by nodes that see the same state and items, and by steps with the same input', async () => {
    const ran: string[] = []
    const program = graph({ name: 'reads', ...VERSION, state: { seen: append<string>(), topic: last<string>() } })
      .node('find', ({ topic }) => {
        ran.push('find')
        return { seen: `found ${topic}` }
      })
      .node('each', {
        run: (_, ctx) => {
          ran.push(`each ${ctx.input as number}`)
          return { seen: `each ${ctx.input as number}` }
        },
      })
      .node('ask', async ({ seen }, ctx) => {
        const about = await ctx.step('about', { input: 'fixed' }, () => {
          ran.push('about')
          return 'about'
        })
        const many = await ctx.step('many', { input: seen.length }, () => {
          ran.push('many')
          return seen.length
        })
        return { seen: `${about} ${many}` }
      })
      .edge(START, 'find')
      .branch('find', () => [send('each', 1), send('each', 2)], ['each'])
      .edge('each', 'ask')
      .edge('ask', END)
    const thread = hf.thread(program, 'reads')
    const { state } = await thread.run({ input: { topic: 'tea' } })
    const start = (await thread.history()).at(-1)?.id as string
    const afterFind = (await thread.history()).at(-2)?.id as string
    const rerun = async (at: string, options: object) => {
      ran.length = 0
      const outcome = await thread.at(at).run(options)
      return { ran: [...ran], state: outcome.state }
    }
    const all = ['find', 'each 1', 'each 2', 'about', 'many']
    expect(await rerun(start, {})).toStrictEqual({ ran: all, state })
    expect(await rerun(start, { reads: 'recorded' })).toStrictEqual({ ran: [], state })
    expect(await rerun(afterFind, { reads: 'recorded' })).toStrictEqual({ ran: [], state })
    const edited = await rerun(afterFind, { reads: 'recorded', set: { topic: 'coffee' } })
    expect(edited.ran).toStrictEqual(['each 1', 'each 2'])
    const longer = await rerun(afterFind, { reads: 'recorded', update: { seen: 'more' } })
    expect(longer.ran).toStrictEqual(['each 1', 'each 2', 'many'])

    // A fork that was not run has nothing of its own: what lies behind it is taken.
    const fork = await thread.at(afterFind).fork({ reads: 'recorded' })
    ran.length = 0
    const at = (await fork.history())[0]?.id as string
    expect((await fork.at(at).run({ reads: 'recorded' })).state).toStrictEqual(state)
    expect(ran).toStrictEqual([])
    // A new run has no record, so it reads.
    const more = await thread.at(start).fork({ reads: 'recorded' })
    await more.run()
    await more.run({ input: { topic: 'water' } })
    expect(ran).toStrictEqual(all)
  })

  it('are taken by a flow, and live where the input is another or the record ends', async () => {
    let calls = 0
    let broken = true
    const program = flow({ name: 'reading', ...VERSION, retry: { attempts: 1 } }, async (ctx, input: number) => {
      const a = await ctx.step('a', { input }, () => ++calls)
      const b = await ctx.step('b', { input: ctx.branch === 'other' ? 'x' : a }, () => ++calls)
      const c = await ctx.step('c', () => {
        if (broken) throw new Error('not yet')
        return ++calls
      })
      return [a, b, c]
    })
    const thread = hf.thread(program, 'reading')
    await thread.run({ input: 1 })
    broken = false
    const start = (await thread.history()).at(-1)?.id as string
    expect(await thread.at(start).run({ reads: 'recorded' })).toMatchObject({ output: [1, 2, 3] })
    expect(await thread.at(start).run({ reads: 'recorded', name: 'other' })).toMatchObject({ output: [1, 4, 5] })
    expect(await thread.at(start).run()).toMatchObject({ output: [6, 7, 8] })
  })
})
