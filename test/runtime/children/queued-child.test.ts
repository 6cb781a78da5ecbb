import { END, flow, graph, openHoldfast, reduced, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

const named = (name: string) => ({ name, version: '1.0.0' })

/** Fails until it is told that all is well; another one waits for a signal. */
function shared() {
  const broken = { is: true }
  const program = flow<string, string>(named('shared'), async (_ctx, x) => {
    if (x === 'theirs' && broken.is) throw new Error('out of order')
    return `done ${x}`
  })
  const parent = flow<string, string>(named('parent'), (ctx, x) =>
    ctx.run(program, 'c', x, { thread: 'shared', busy: 'queue' }),
  )
  return { broken, program, parent }
}

describe('a run whose child waits behind another run', () => {
  it('is at rest when that run failed, and continues when it is resumed', async () => {
    await using hf = await openHoldfast('memory:')
    const { broken, program, parent } = shared()
    const theirs = hf.thread(program, 'shared')
    expect(await theirs.run({ input: 'theirs' })).toMatchObject({ status: 'failed' })
    const thread = hf.thread(parent, 't')
    expect(await thread.run({ input: 'ours' })).toMatchObject({ status: 'paused' })
    expect(await thread.waitFor({ timeoutMs: 20_000 })).toMatchObject({ status: 'paused' })
    const events = []
    for await (const { type } of thread.events()) events.push(type)
    expect(events.length).toBeGreaterThan(0)
    broken.is = false
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'done ours' })
  }, 600_000)

  it('is at rest when that run could not begin', async () => {
    await using hf = await openHoldfast('memory:')
    const state = {
      x: reduced<string, string>(undefined, (_, x) => {
        if (x === 'theirs') throw new Error('bad reducer')
        return x
      }),
    }
    const child = graph({ ...named('child'), state })
      .node('a', () => ({}))
      .edge(START, 'a')
      .edge('a', END)
    const above = flow<string, unknown>(named('above'), (ctx, x) =>
      ctx.run(child, 'c', { x }, { thread: 'parked', busy: 'queue' }),
    )
    expect(await hf.thread(child, 'parked').run({ input: { x: 'theirs' } })).toMatchObject({ status: 'failed' })
    const thread = hf.thread(above, 't')
    expect(await thread.run({ input: 'ours' })).toMatchObject({ status: 'paused' })
    expect(await thread.waitFor({ timeoutMs: 20_000 })).toMatchObject({ status: 'paused' })
  }, 600_000)

  it('is at rest when that run waits', async () => {
    await using hf = await openHoldfast('memory:')
    const waiting = flow<string, unknown>(named('waiting'), (ctx) => ctx.receive('go'))
    const above = flow<string, unknown>(named('above'), (ctx, x) =>
      ctx.run(waiting, 'c', x, { thread: 'waiting', busy: 'queue' }),
    )
    expect(await hf.thread(waiting, 'waiting').run({ input: 'theirs' })).toMatchObject({ status: 'paused' })
    const thread = hf.thread(above, 't')
    expect(await thread.run({ input: 'ours' })).toMatchObject({ status: 'paused' })
    expect(await thread.waitFor({ timeoutMs: 20_000 })).toMatchObject({ status: 'paused' })
  }, 600_000)
})
