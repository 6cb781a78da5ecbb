import { flow, graph, type Holdfast, last, openHoldfast, START } from 'holdfast'
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
