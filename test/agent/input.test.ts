import type { UIMessage } from 'ai'
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

const ui: UIMessage[] = [
  { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Where is it?' }] },
  {
    id: 'a1',
    role: 'assistant',
    parts: [
      { type: 'step-start' },
      { type: 'reasoning', text: 'Look.' },
      { type: 'text', text: 'I look.' },
      { type: 'tool-find', toolCallId: 'c1', state: 'output-available', input: { order: 1 }, output: { left: true } },
      { type: 'dynamic-tool', toolName: 'ask', toolCallId: 'c2', state: 'output-error', input: {}, errorText: 'No.' },
      { type: 'step-start' },
      { type: 'text', text: 'It left.', state: 'done' },
      { type: 'source-url', sourceId: 's', url: 'https://example.com' },
      { type: 'data-progress', data: 5 },
      { type: 'tool-find', toolCallId: 'c3', state: 'input-streaming', input: undefined },
    ],
  },
  {
    id: 'u2',
    role: 'user',
    parts: [
      { type: 'text', text: 'And this?' },
      { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA', filename: 'a.png' },
    ],
  },
]
inputs.push(
  ['a UIMessage of the AI SDK', ui[0] as UIMessage, ['user: Where is it?']],
  [
    'UIMessages with steps, calls and results',
    ui,
    [
      'user: Where is it?',
      'assistant: I look.',
      'call find {"order":1}',
      'call ask {}',
      'json find {"left":true}',
      'error ask No.',
      'assistant: It left.',
      'user: And this?',
    ],
  ],
)

describe('the input of an agent', () => {
  it('keeps the ids of UIMessages, and refuses parts of them that are not known by their path', async () => {
    const { thread } = await talk(['Hi.'])
    const { state } = await thread.run({ input: ui })
    expect(state.messages.slice(0, -1).map(({ id }) => id)).toEqual(['u1', 'a1', 'a1-1', 'a1-2', 'u2'])
    expect(state.messages[4]?.parts[1]).toMatchObject({ type: 'file', filename: 'a.png', data: { kind: 'bytes' } })
    const odd = [{ id: 'u3', role: 'user', parts: [{ type: 'hologram' }] }]
    await expect(thread.run({ input: odd as never })).rejects.toThrow(/\$\.parts\[0\]\.type is unknown: "hologram"/)
    const none = { id: 'u4', role: 'user', parts: [{ type: 'data-x', data: 1 }] }
    await expect(thread.run({ input: none })).rejects.toThrow(/holds nothing that a model can read/)
  })

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
