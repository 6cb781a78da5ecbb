import { setTimeout as sleep } from 'node:timers/promises'
import { flow, graph, last, openHoldfast, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

const named = { name: 'p', version: '1.0.0' }

describe('a step that is under way when its function ends', () => {
  it('is recorded before the run of a flow ends, and not started again', async () => {
    await using hf = await openHoldfast('memory:')
    const calls: string[] = []
    const both = flow<string, unknown>(named, (ctx) =>
      Promise.all([
        ctx.step('slow', { effect: 'once' }, async () => {
          calls.push('slow')
          await sleep(50)
          return 'slow'
        }),
        ctx.step('quick', { retry: { attempts: 1 } }, () => {
          calls.push('quick')
          if (calls.filter((call) => call === 'quick').length === 1) throw new Error('no luck')
          return 'quick'
        }),
      ]),
    )
    const thread = hf.thread(both, 't')
    expect((await thread.run({ input: 'a' })).status).toBe('failed')
    const { hash } = (await hf.log('t')).fold
    await sleep(100)
    expect((await hf.log('t')).fold.hash).toBe(hash)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: ['slow', 'quick'] })
    expect(calls.sort()).toStrictEqual(['quick', 'quick', 'slow'])
  })

  it('is waited for before a node is tried again', async () => {
    await using hf = await openHoldfast('memory:')
    let slow = 0
    let quick = 0
    const twice = graph({ ...named, state: { out: last<string>() } })
      .node('n', {
        retry: { attempts: 2, initialMs: 1 },
        run: async (_state, ctx) => {
          const under = ctx.step('slow', { effect: 'once' }, async () => {
            slow++
            await sleep(50)
            return 'slow'
          })
          if (quick++ === 0) throw new Error('no luck')
          return { out: await under }
        },
      })
      .edge(START, 'n')
    expect(await hf.thread(twice, 't').run({ input: {} })).toMatchObject({
      status: 'completed',
      state: { out: 'slow' },
    })
    expect(slow).toBe(1)
  })
})
