import type { AgentInput } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { lines, setUp } from './agent-setup.js'

const { talk } = setUp()

const inputs: [string, AgentInput, string[]][] = [
  ['a message of the AI SDK', { role: 'user', content: 'Hello' }, ['user: Hello']],
  ['parts of the AI SDK', { role: 'user', content: [{ type: 'text', text: 'Hello' }] }, ['user: Hello']],
  [
    "OpenAI's chat with a call",
    [
      { role: 'developer', content: 'Be kind.' },
      { role: 'user', content: 'Where is it?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: '{"order":1}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'On its way.' },
      { role: 'user', content: 'And now?' },
    ],
    ['system: Be kind.', 'user: Where is it?', 'call find {"order":1}', 'text find On its way.', 'user: And now?'],
  ],
  [
    "OpenAI's chat with an image",
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        ],
      },
    ],
    ['user: What is this?'],
  ],
]

describe('the input of an agent', () => {
  it.each(inputs)('may be %s', async (_, input, expected) => {
    const { thread } = await talk(['Hi.'])
    const outcome = await thread.run({ input })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Hi.' })
    expect(lines(outcome.state.messages)).toEqual([...expected, 'assistant: Hi.'])
  })

  it('is the same input when it is given again, though its message gets an id of its own each time', async () => {
    const { thread, server } = await talk(['Hi.', 'Hi again.'])
    const input = { role: 'user', content: 'Hello' } as const
    await thread.run({ input, key: 'request-1' })
    const again = await thread.run({ input, key: 'request-1' })
    expect(server.requests).toHaveLength(1)
    expect(again.state.messages).toHaveLength(2)
  })

  it('is refused with the path to what does not fit', async () => {
    const { thread, server } = await talk(['Hi.'])
    for (const [input, path] of [
      [{ role: 'wizard', content: 'Hello' }, '$[0].role'],
      [[{ role: 'user', content: 'Hello' }, { role: 'user' }], '$[0].id'],
      [{ role: 'user', content: [{ type: 'hologram' }] }, '$[0].content[0].type'],
      [[], 'input'],
    ] as const) {
      await expect(thread.run({ input: input as never })).rejects.toMatchObject({
        code: 'invalid-value',
        data: { path },
      })
    }
    expect(server.requests).toHaveLength(0)
  })
})
