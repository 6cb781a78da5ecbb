import { append, END, graph, last, openHoldfast, send, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

/** Counts how many are under way at once; each goes on when all that may be there are. */
function crowd(expected: number, all: number) {
  let here = 0
  let begun = 0
  let most = 0
  let waiting: (() => void)[] = []
  const work = async () => {
    most = Math.max(most, ++here)
    begun++
    // The last ones come when there is no full crowd any more.
    if (here < expected && begun < all) await new Promise<void>((resolve) => waiting.push(resolve))
    for (const go of waiting) go()
    waiting = []
    here--
  }
  return {
    work,
    get most() {
      return most
    },
  }
}

const items = Array.from({ length: 9 }, (_, i) => i)

function fanOut(work: () => Promise<void>, limits: { readonly node?: number; readonly graph?: number }) {
  return graph({
    name: 'fan',
    version: '1.0.0',
    state: { done: append<number>(), sum: last<number>() },
    ...(limits.graph === undefined ? {} : { concurrency: limits.graph }),
  })
    .node('split', () => ({}))
    .node('one', {
      ...(limits.node === undefined ? {} : { concurrency: limits.node }),
      run: async (_, ctx) => {
        await work()
        return { done: ctx.input as number }
      },
    })
    .node('sum', ({ done }) => ({ sum: done.length }))
    .edge(START, 'split')
    .branch('split', () => items.map((item) => send('one', item)), ['one'])
    .edge('one', 'sum')
    .edge('sum', END)
}

describe('a fan-out', () => {
  it.each([
    [{ node: 3 }, 3],
    [{ graph: 2 }, 2],
    [{ node: 4, graph: 2 }, 2],
    [{}, 9],
  ])('runs no more at once than is allowed: %j', async (limits, most) => {
    await using hf = await openHoldfast('memory:')
    const people = crowd(most, items.length)
    const outcome = await hf.thread(fanOut(people.work, limits), 't').run({ input: {} })
    expect(outcome).toMatchObject({ status: 'completed', state: { done: items, sum: 9 } })
    expect(people.most).toBe(most)
  })

  it('gives the place of one that fails or asks to the next, and goes on with what is left', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: number[] = []
    const asks = graph({ name: 'asks', version: '1.0.0', state: { done: append<number>() } })
      .node('split', () => ({}))
      .node('one', {
        concurrency: 1,
        run: async (_, ctx) => {
          const item = ctx.input as number
          if (item === 1) await ctx.pause('Well?')
          seen.push(item)
          return { done: item }
        },
      })
      .edge(START, 'split')
      .branch('split', () => [0, 1, 2].map((item) => send('one', item)), ['one'])
      .edge('one', END)
    const thread = hf.thread(asks, 't')
    const paused = await thread.run({ input: {} })
    if (paused.status !== 'paused') throw new Error(paused.status)
    expect(seen).toStrictEqual([0, 2])
    await thread.answer(paused.pauses[0]?.id ?? '', true)
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { done: [0, 1, 2] } })
    expect(seen).toStrictEqual([0, 2, 1])
  })

  it('refuses a limit that is none', () => {
    expect(() => fanOut(async () => {}, { node: 0 })).toThrow(/concurrency of node "one" must be a whole number/)
    expect(() => fanOut(async () => {}, { graph: 1.5 })).toThrow(/concurrency of graph "fan"/)
  })
})
