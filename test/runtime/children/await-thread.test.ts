import { END, flow, graph, openHoldfast, reduced, START } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

const named = { version: '1.0.0', transientContext: ['token'] }

describe('a run that awaits another thread', () => {
  it('is the only one that its caller drives, and that has what the caller brings', async () => {
    await using hf = await openHoldfast('memory:')
    const held = gate()
    const begun = gate()
    const seen: unknown[] = []
    const child = flow<string, string>({ name: 'child', version: '1.0.0' }, (ctx, x) =>
      ctx.step('hold', async () => {
        begun.open()
        await held.passed
        return `child of ${x}`
      }),
    )
    const parent = flow<string, string>({ name: 'parent', ...named }, async (ctx, x) => {
      seen.push([x, ctx.context])
      return x === 'ours' ? ctx.run(child, 'c', x) : x
    })
    const thread = hf.thread(parent, 't')
    const running = thread.run({ input: 'ours', key: 'ours', context: { token: 'secret' } })
    await begun.passed
    await thread.enqueue('theirs', { key: 'theirs' })
    await thread.cancel({ reason: 'no longer wanted' })
    held.open()
    expect(await running).toMatchObject({ status: 'failed', input: 'taken', error: { code: 'cancelled' } })
    expect(seen.every(([x]: any) => x === 'ours')).toBe(true)
  })

  it('gives what it brings to its own input on a thread that others use', async () => {
    await using hf = await openHoldfast('memory:')
    const acted: unknown[] = []
    const shared = flow<string, string>({ name: 'shared', ...named }, async (ctx, x) => {
      acted.push([x, ctx.context])
      return x
    })
    const parent = flow<number, string>({ name: 'parent', ...named }, (ctx) =>
      ctx.run(shared, 'c', 'ours', { thread: 'shared', busy: 'queue' }),
    )
    await hf.thread(shared, 'shared').enqueue('theirs')
    const outcome = await hf.thread(parent, 't').run({ input: 1, context: { token: 'secret' } })
    expect(outcome).toMatchObject({ status: 'completed', output: 'ours' })
    expect(acted).toEqual([
      ['theirs', undefined],
      ['ours', { token: 'secret' }],
    ])
  })

  it('hears each time that a child could not even begin', async () => {
    await using hf = await openHoldfast('memory:')
    let broken = true
    const state = {
      n: reduced<number, number>(undefined, (old, more) => {
        if (broken) throw new Error('bad reducer')
        return (old ?? 0) + more
      }),
    }
    const child = graph({ name: 'child', version: '1.0.0', state })
      .node('a', () => ({}))
      .edge(START, 'a')
      .edge('a', END)
    const parent = flow<number, number>({ name: 'parent', version: '1.0.0' }, async (ctx, n) => {
      const made = await ctx.run(child, 'c', { n })
      return made.n ?? 0
    })
    const thread = hf.thread(parent, 't')
    expect(await thread.run({ input: 1 })).toMatchObject({ status: 'failed' })
    expect(await thread.run()).toMatchObject({ status: 'failed' })
    expect(await thread.run()).toMatchObject({ status: 'failed' })
    broken = false
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 1 })
  })

  it('has its children cancelled before the input begins that drops it', async () => {
    await using hf = await openHoldfast('memory:')
    const child = flow<number, unknown>({ name: 'child', version: '1.0.0' }, (ctx) => ctx.receive('go'))
    const statuses: unknown[] = []
    const parent = flow<string, unknown>({ name: 'parent', version: '1.0.0' }, async (ctx, x) => {
      if (x === 'first') return ctx.run(child, 'c', 1)
      statuses.push(...(await hf.threads({ parent: 't' })).threads.map(({ status }) => status))
      return x
    })
    const thread = hf.thread(parent, 't')
    expect(await thread.run({ input: 'first' })).toMatchObject({ status: 'paused' })
    expect(await thread.run({ input: 'second', onPaused: 'cancel' })).toMatchObject({ status: 'completed' })
    expect(statuses).toEqual(['failed'])
  })
})
