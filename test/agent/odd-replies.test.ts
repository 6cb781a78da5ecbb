import { tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { lines, setUp } from './agent-setup.js'

const { talk } = setUp()

/** A tool that moves money, and what it moved. */
function makeTransfer() {
  const moved: unknown[] = []
  const transfer = tool({
    inputSchema: z.object({ amount: z.number().optional() }),
    effect: 'once',
    execute: (input) => {
      moved.push(input)
      return { moved: input.amount ?? 'everything' }
    },
  })
  return { transfer, moved }
}

describe('a reply that calls tools', () => {
  it('and was cut before any argument came is no call without arguments', async () => {
    const { transfer, moved } = makeTransfer()
    const cut = { toolCalls: [{ name: 'transfer', arguments: '' }], finishReason: 'length' }
    const { thread } = await talk([cut, 'I will be shorter.'], { tools: { transfer } })
    const { state } = await thread.run({ input: 'Send 5 to Ada' })
    expect(moved).toEqual([])
    expect(lines(state.messages)[2]).toMatch(/^error transfer .*cut off.*nothing was done/s)
  })

  it('runs the calls that were whole when it was cut, and says of the other that it was cut off', async () => {
    const { transfer, moved } = makeTransfer()
    const toolCalls = [
      { name: 'transfer', arguments: { amount: 1 } },
      { name: 'transfer', arguments: '{"amou' },
    ]
    const { thread } = await talk([{ toolCalls, finishReason: 'length' }, 'One of two.'], { tools: { transfer } })
    const { state } = await thread.run({ input: 'Send 1, then 2' })
    expect(moved).toEqual([{ amount: 1 }])
    expect(lines(state.messages).filter((line) => line.startsWith('error'))[0]).toMatch(/cut off/)
  })
})
