import { type Context, flow, graph, type Holdfast, last, openHoldfast, START, type Thread } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let hf: Holdfast
let ran: string[]

beforeEach(async () => {
  hf = await openHoldfast('memory:', { telemetry: false })
  ran = []
})
afterEach(() => hf.close())

const named = { name: 'reads', version: '1.0.0' }

describe("a step without input on a fork with reads: 'recorded'", () => {
  it('is read again after an answer, which may be another one than there', async () => {
    const program = flow<string, string>(named, async (ctx) => {
      const topic = await ctx.pause<string>('topic?')
      const found = await ctx.step('find', () => {
        ran.push(topic)
        return `about ${topic}`
      })
      return found
    })
    const thread = hf.thread(program, 't')
    const asked = await thread.run({ input: 'go' })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await thread.answer(asked.pauses[0].id, 'tea')
    expect(await thread.run()).toMatchObject({ output: 'about tea' })
    const fork = await thread.at(asked.checkpoint as string).fork({ reads: 'recorded' })
    const again = await fork.run()
    if (again.status !== 'paused') throw new Error(again.status)
    await fork.answer(again.pauses[0].id, 'coffee')
    expect(await fork.run()).toMatchObject({ output: 'about coffee' })
    expect(ran).toStrictEqual(['tea', 'coffee'])
  })

  it('is read again after a step that came to something else, and taken as long as all is the same', async () => {
    let price = 1
    const program = flow<number, string>({ ...named, name: 'prices' }, async (ctx) => {
      const read = (name: string, make: () => unknown, input?: unknown) =>
        ctx.step(name, input === undefined ? {} : { input }, () => {
          ran.push(name)
          return make()
        })
      const first = await read('first', () => 'same')
      const cost = await read('price', () => price, ctx.branch === 'dear' ? 'now' : 'then')
      const total = await read('total', () => `${String(first)} ${String(cost)}`)
      return String(total)
    })
    const thread = hf.thread(program, 't')
    expect(await thread.run({ input: 1 })).toMatchObject({ output: 'same 1' })
    const start = (await thread.history()).at(-1)?.id as string
    ran = []
    expect(await thread.at(start).run({ reads: 'recorded' })).toMatchObject({ output: 'same 1' })
    expect(ran).toStrictEqual([])
    price = 2
    expect(await thread.at(start).run({ reads: 'recorded', name: 'dear' })).toMatchObject({ output: 'same 2' })
    expect(ran).toStrictEqual(['price', 'total'])
  })

  it('is read again inside of a node that sees another state', async () => {
    const program = graph({ ...named, name: 'inside', state: { topic: last<string>(), out: last<string>() } })
      .node('begin', () => ({}))
      .node('find', async ({ topic = '' }, ctx) => ({
        out: await ctx.step('look', () => {
          ran.push(topic)
          return `about ${topic}`
        }),
      }))
      .edge(START, 'begin')
      .edge('begin', 'find')
    const thread = hf.thread(program, 't')
    await thread.run({ input: { topic: 'tea' } })
    const begun = (await thread.history()).at(-2)?.id as string
    const edited = await thread.at(begun).run({ reads: 'recorded', set: { topic: 'coffee' } })
    expect([edited.state.out, ran]).toStrictEqual(['about coffee', ['tea', 'coffee']])
  })
})

describe("a node on a fork with reads: 'recorded'", () => {
  const shape = { out: last<string>() }
  /** Two nodes, each of which does this in the middle of its function. */
  const nodes = (middle: (ctx: Context) => Promise<unknown>) => {
    const node = (name: string) => async (_: unknown, ctx: Context) => {
      const first = await ctx.step('first', () => `${name}1`)
      ran.push(name)
      const said = await middle(ctx)
      return { out: `${first} ${String(said)} ${await ctx.step('second', () => `${name}2`)}` }
    }
    return graph({ ...named, name: 'nodes', state: shape })
      .node('a', node('a'))
      .node('b', node('b'))
      .edge(START, 'a')
      .edge('a', 'b')
  }

  it('goes on from any checkpoint, also from one in the middle of a node', async () => {
    const thread = hf.thread(
      nodes(async () => 'reads'),
      't',
    )
    await thread.run({ input: {} })
    const history = await thread.history()
    expect(history.length).toBeGreaterThan(5)
    for (const { id } of history) {
      expect(await thread.at(id).run({ reads: 'recorded' })).toMatchObject({
        status: 'completed',
        state: { out: 'b1 reads b2' },
      })
    }
  })

  it('takes what a node read as a whole, and calls nothing', async () => {
    const thread = hf.thread(
      nodes(async (ctx) => ctx.step('look', () => 'looked')),
      't',
    )
    await thread.run({ input: {} })
    ran = []
    const start = (await thread.history()).at(-1)?.id as string
    expect(await thread.at(start).run({ reads: 'recorded' })).toMatchObject({ state: { out: 'b1 looked b2' } })
    expect(ran).toStrictEqual([])
  })

  const waits: readonly [string, (ctx: Context) => Promise<unknown>, (thread: AnyThread) => Promise<unknown>][] = [
    ['asks', (ctx) => ctx.pause('what?'), async (thread) => thread.answer((await asked(thread)).id, 'other')],
    ['receives a signal', (ctx) => ctx.receive('news'), (thread) => thread.signal('news', 'other')],
  ]
  it.each(waits)('calls a node that %s, from every checkpoint before it has done so', async (_, wait, send) => {
    const thread = hf.thread(nodes(wait), 't') as unknown as AnyThread
    await thread.run({ input: {} })
    const before = (await thread.history()).length
    const say = async (on: AnyThread, what: typeof send) => {
      await what(on)
      return on.run()
    }
    await say(thread, send)
    expect(await say(thread, send)).toMatchObject({ status: 'completed', state: { out: 'b1 other b2' } })
    const checkpoints = (await thread.history()).slice(-before).map(({ id }) => id)
    for (const id of checkpoints) {
      const fork = (await thread.at(id).fork({ reads: 'recorded' })) as unknown as AnyThread
      expect(await fork.run()).toMatchObject({ status: 'paused' })
      await say(fork, send)
      expect(await say(fork, send)).toMatchObject({ status: 'completed', state: { out: 'b1 other b2' } })
    }
  })

  it('asks for permission before an effect inside of a node, as in a flow', async () => {
    const pay = (ctx: Context) =>
      ctx.step('pay', { effect: 'once' }, () => {
        ran.push('paid')
        return 'paid'
      })
    const thread = hf.thread(nodes(pay), 't')
    await thread.run({ input: {} })
    const start = (await thread.history()).at(-1)?.id as string
    expect(await thread.at(start).run({ reads: 'recorded' })).toMatchObject({
      status: 'paused',
      pauses: [{ kind: 'permission' }],
    })
    expect(ran.filter((name) => name === 'paid')).toHaveLength(2)
  })
})

type AnyThread = Thread<unknown, unknown>

async function asked(thread: AnyThread) {
  const outcome = await thread.waitFor()
  if (outcome.status !== 'paused' || outcome.pauses[0] === undefined) throw new Error(outcome.status)
  return outcome.pauses[0]
}
