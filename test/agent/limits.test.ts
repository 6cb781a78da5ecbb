import { tool } from 'holdfast'
import type { ModelServerRequest } from 'holdfast/testing'
import { exitCodeOf } from '#src/cli/exit-codes.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, collect, lines, setUp } from './agent-setup.js'

const { talk } = setUp()
const look = tool({ inputSchema: z.object({}), effect: 'read', execute: () => 'seen' })

describe('a run that a limit ends', () => {
  const again = ({ messages }: ModelServerRequest) =>
    messages.some(({ content }) => content === 'Enough.') ? { text: 'Well then.' } : calls(['look'])

  it('is no completed one, to whoever ran it, waits for it, follows it or lists it', async () => {
    const { thread, hf } = await talk(again, { tools: { look }, maxTurns: 2 })
    const outcome = await thread.run({ input: 'Go' })
    const limited = { status: 'limited', limit: 'max-turns', reason: 'The run reached its limit of 2 turns.' }
    expect(outcome).toMatchObject({ ...limited, output: '' })
    expect(await thread.waitFor()).toMatchObject({ ...limited, output: '' })
    expect(await hf.inspect('thread-1').waitFor()).toMatchObject(limited)
    expect(await collect(thread.events())).toContainEqual(expect.objectContaining({ type: 'run', ...limited }))
    const { threads } = await hf.threads({ status: 'limited' })
    expect(threads.map(({ thread: id }) => id)).toStrictEqual(['thread-1'])
    expect(exitCodeOf(outcome)).toBe(9)
  })

  it('is over: the thread takes new input, and the same key is told the same again', async () => {
    const { thread } = await talk(again, { tools: { look }, maxTurns: 2 })
    await thread.run({ input: 'Go', key: 'first' })
    expect(await thread.run({ input: 'Enough.' })).toMatchObject({ status: 'completed', output: 'Well then.' })
    expect(await thread.run({ input: 'Go', key: 'first' })).toMatchObject({ status: 'limited', limit: 'max-turns' })
  })
})

describe('isComplete', () => {
  it('is asked after a reply that only speaks', async () => {
    const seen: string[] = []
    const { thread } = await talk([{ text: 'All done.' }], {
      isComplete: ({ state }) => {
        seen.push(...lines(state.messages))
        return state.turn === 1
      },
    })
    const outcome = await thread.run({ input: 'Go' })
    expect(outcome).toMatchObject({ status: 'completed', state: { ended: { reason: 'complete' } } })
    expect(seen).toStrictEqual(['user: Go', 'assistant: All done.'])
  })

  it('leaves the end to the model when it says no', async () => {
    const { thread, server } = await talk([{ text: 'Hello.' }], { isComplete: () => false })
    expect((await thread.run({ input: 'Hi' })).state.ended?.reason).toBe('finished')
    expect(server.counters.requests).toBe(1)
  })

  it('finds the reply and its cost recorded: when it fails, a resume asks it again and not the model', async () => {
    let fails = 2
    const seen: string[][] = []
    const { thread, server } = await talk([{ text: 'All done.' }], {
      budget: { tokens: 1 },
      isComplete: ({ state }) => {
        seen.push(lines(state.messages))
        if (fails-- > 0) throw new Error('The tracker is down.')
        return true
      },
    })
    const failed = await thread.run({ input: 'Go' })
    expect(failed).toMatchObject({ status: 'failed', state: { turn: 1, runUsage: { calls: 1 } } })
    expect(lines(failed.state.messages)).toStrictEqual(['user: Go', 'assistant: All done.'])
    expect(await thread.run()).toMatchObject({ status: 'failed' })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { ended: { reason: 'complete' } } })
    expect(seen).toStrictEqual(Array.from({ length: 3 }, () => ['user: Go', 'assistant: All done.']))
    expect(server.counters.requests).toBe(1)
  })

  it('is not asked of an earlier reply when the run that failed with it was given up', async () => {
    let fails = 1
    const { thread, server } = await talk([{ text: 'One.' }, { text: 'Two.' }], {
      isComplete: () => {
        if (fails-- > 0) throw new Error('The tracker is down.')
        return true
      },
    })
    expect((await thread.run({ input: 'First' })).status).toBe('failed')
    await thread.cancel()
    const outcome = await thread.run({ input: 'Second' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Two.' })
    expect(server.counters.requests).toBe(2)
  })

  it('lets the model go on with what it says, up to the limit of turns', async () => {
    const replies = [{ text: 'Nearly.' }, { text: 'Nearly.' }, { text: 'Done.' }]
    const isComplete = ({ state }: { readonly state: { readonly turn: number } }) =>
      state.turn === 3 || 'The tests still fail. Go on.'
    const { thread } = await talk(replies, { isComplete })
    const outcome = await thread.run({ input: 'Mend it' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Done.', state: { ended: { reason: 'complete' } } })
    expect(lines(outcome.state.messages)).toStrictEqual([
      'user: Mend it',
      'assistant: Nearly.',
      'user: The tests still fail. Go on.',
      'assistant: Nearly.',
      'user: The tests still fail. Go on.',
      'assistant: Done.',
    ])
    const limited = await talk(replies, { isComplete, maxTurns: 2 })
    expect(await limited.thread.run({ input: 'Mend it' })).toMatchObject({ status: 'limited', output: 'Nearly.' })
  })
})
