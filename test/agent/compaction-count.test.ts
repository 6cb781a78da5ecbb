import { agent } from 'holdfast'
import { expect, it } from 'vitest'
import { setUp } from './agent-setup.js'

const { talk, serve } = setUp()

const isSummary = (messages: readonly { readonly role: string; readonly content?: unknown }[]) =>
  String(messages[0]?.content).startsWith('You keep the memory')

it('summarises older turns when there are more messages than the model should be shown', async () => {
  const shown: number[] = []
  let summaries = 0
  const { thread } = await talk(
    ({ messages }) => {
      if (isSummary(messages as never)) {
        summaries++
        return { text: 'So far.' }
      }
      shown.push(messages.length)
      return { text: `Reply ${shown.length}, at some length, so that there is something to be made shorter.` }
    },
    { compaction: { maxMessages: 6, keepMessages: 3 } },
  )
  for (let i = 1; i <= 8; i++) await thread.run({ input: `Message ${i}, which is not a short one either.` })
  // Up to six as they are; then the summary and at most three.
  expect(shown).toStrictEqual([1, 3, 5, 4, 6, 4, 6, 4])
  expect(summaries).toBe(3)
  expect((await thread.state())?.messages).toHaveLength(16)
})

it('refuses counts that make no sense', async () => {
  const { model } = await serve({ reply: [] })
  const make = (compaction: object) => () => agent({ name: 'a', version: '1.0.0', model, compaction })
  expect(make({ maxMessages: 1 })).toThrow(/compaction\.maxMessages .* is 1/)
  expect(make({ maxMessages: 4, keepMessages: 4 })).toThrow(/compaction\.keepMessages .* is 4/)
  expect(make({ keepMessages: 4 })).toThrow(/keepMessages/)
})
