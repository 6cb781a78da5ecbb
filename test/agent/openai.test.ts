import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import type { Message, Part } from 'holdfast'
import { checkMessages, fromOpenAiMessages, makeMessage, type OpenAiMessage, toOpenAiMessages } from 'holdfast/messages'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyMessage, openAiMessage } from './conversations.js'

const stamp = (index: number) => ({ id: `m${index}`, at: index })

function fixture(name: string): any {
  return JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), 'utf8'))
}

function bare({ role, parts, name, providerMetadata }: Message): object {
  return { role, parts, name, providerMetadata }
}

describe('OpenAI messages', () => {
  it('come back as they were', () => {
    const conversation: OpenAiMessage[] = fixture('openai-conversation')
    const messages = fromOpenAiMessages(conversation, { stamp })
    checkMessages(messages)
    expect(toOpenAiMessages(messages)).toEqual(conversation)
  })

  it('are understood, not just kept', () => {
    const messages = fromOpenAiMessages(fixture('openai-conversation'), { stamp })
    expect(messages.map(({ role }) => role).join(' ')).toBe(
      'system user assistant tool tool assistant user assistant user assistant tool',
    )
    expect(messages[1]?.parts.map((part) => (part.type === 'file' ? part.mediaType : part.type))).toEqual([
      'text',
      'image/*',
      'image/png',
      'audio/wav',
      'application/pdf',
      'application/octet-stream',
    ])
    expect(messages[2]?.parts[0]).toEqual({
      type: 'tool-call',
      callId: 'call_abc123',
      name: 'getOrder',
      input: { orderId: 'ORD-2024-8847' },
    })
    expect(messages[3]?.parts[0]).toMatchObject({ type: 'tool-result', callId: 'call_abc123', name: 'getOrder' })
    expect(messages[5]?.parts.map(({ type }) => type)).toEqual(['reasoning', 'text'])
    expect(messages[9]?.parts[1]).toMatchObject({ invalid: true, raw: '{"orderId": "ORD-2024-8847", "reas', input: {} })
  })

  it('of a response are read as it gives them', () => {
    const response = fixture('openai-response')
    const [message] = fromOpenAiMessages([response.choices[0].message], { stamp })
    expect(message?.parts).toEqual([{ type: 'text', text: 'Hello! How can I assist you today?' }])
  })

  it('with the older function calls become tool calls', () => {
    const messages = fromOpenAiMessages(fixture('openai-legacy'), { stamp })
    checkMessages(messages)
    expect(messages[1]?.parts).toEqual([
      { type: 'tool-call', callId: 'call_1', name: 'getWeather', input: { city: 'Boston' } },
    ])
    expect(messages[2]?.parts[0]).toMatchObject({ callId: 'call_1', name: 'getWeather' })
    expect(toOpenAiMessages(messages)[2]).toEqual({ role: 'tool', tool_call_id: 'call_1', content: '{"celsius": 21}' })
  })

  it('keep custom tool calls, and results whose call is not in the window', () => {
    const conversation: OpenAiMessage[] = [
      { role: 'tool', tool_call_id: 'gone', content: 'x' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }],
      },
    ]
    const messages = fromOpenAiMessages(conversation, { stamp })
    expect(messages[0]?.parts[0]).toMatchObject({ callId: 'gone', name: 'unknown' })
    expect(messages[1]?.parts[0]).toMatchObject({ name: 'sql', input: 'SELECT 1' })
    expect(toOpenAiMessages(messages)).toEqual(conversation)
  })

  it('hold conversations: ours come back as they were, but for ids and times', () => {
    fc.assert(
      fc.property(fc.array(openAiMessage, { maxLength: 6 }), (messages) => {
        const sent = JSON.parse(JSON.stringify(toOpenAiMessages(messages))) as OpenAiMessage[]
        expect(fromOpenAiMessages(sent).map(bare)).toStrictEqual(messages.map(bare))
      }),
      randomly(rounds(60)),
    )
  })

  it('are made of any conversation, and what went out can be read and sent again unchanged', () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 4 }), (messages) => {
        const sent = JSON.parse(JSON.stringify(toOpenAiMessages(messages))) as OpenAiMessage[]
        const back = fromOpenAiMessages(sent)
        checkMessages(back)
        const again = JSON.parse(JSON.stringify(toOpenAiMessages(back)))
        expect(again.length).toBe(sent.length)
        expect(fromOpenAiMessages(again).map(bare)).toEqual(back.map(bare))
      }),
      randomly(rounds(60)),
    )
  })

  it('of an assistant that said and did nothing are empty text: OpenAI refuses null without calls', () => {
    const [sent] = toOpenAiMessages([makeMessage('assistant', [])])
    expect(sent).toEqual({ role: 'assistant', content: '' })
    expect(fromOpenAiMessages([sent as never])[0]?.parts).toEqual([])
  })

  it('split the results of a message, and show every kind of output as text', () => {
    const result = (callId: string, output: (Part & { type: 'tool-result' })['output']): Part => ({
      type: 'tool-result',
      callId,
      name: 'n',
      output,
    })
    const message = makeMessage('tool', [
      result('a', { type: 'json', value: { at: new Date(0) } }),
      result('b', { type: 'error', value: 'no such order' }),
      result('c', { type: 'denied' }),
      result('d', {
        type: 'content',
        value: [
          { type: 'text', text: 'x' },
          { type: 'file', data: { kind: 'bytes', bytes: new Uint8Array(2) }, mediaType: 'image/png' },
        ],
      }),
    ])
    expect(toOpenAiMessages([message])).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '{"at":"1970-01-01T00:00:00.000Z"}' },
      { role: 'tool', tool_call_id: 'b', content: 'no such order' },
      { role: 'tool', tool_call_id: 'c', content: 'The call was denied.' },
      {
        role: 'tool',
        tool_call_id: 'd',
        content: [
          { type: 'text', text: 'x' },
          { type: 'text', text: '[image/png]' },
        ],
      },
    ])
  })

  it('leave out what the provider ran itself, and put parts in the order of the format', () => {
    const message = makeMessage('assistant', [
      { type: 'tool-call', callId: 'a', name: 'search', input: {}, providerExecuted: true },
      { type: 'tool-call', callId: 'b', name: 'mine', input: {} },
      { type: 'text', text: 'x' },
      { type: 'reasoning', text: 'hm' },
      { type: 'source', sourceType: 'url', id: 's' },
    ])
    expect(toOpenAiMessages([message])).toEqual([
      {
        role: 'assistant',
        content: 'x',
        reasoning_content: 'hm',
        tool_calls: [{ id: 'b', type: 'function', function: { name: 'mine', arguments: '{}' } }],
      },
    ])
  })

  it.each([
    ['$[0].role', [{ role: 'robot', content: 'x' }]],
    ['$[0].content', [{ role: 'user', content: 5 as never }]],
    ['$[0].content[0].type', [{ role: 'user', content: [{ type: 'video' }] }]],
    ['$[0].content[0].image_url.url', [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }]],
    ['$[0].tool_call_id', [{ role: 'tool', content: 'x' }]],
    [
      '$[0].tool_calls[0].function',
      [{ role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function' }] }],
    ],
  ])('that do not fit are refused with the path %s', (path, messages) => {
    expect(() => fromOpenAiMessages(messages)).toThrow(
      expect.objectContaining({ code: 'invalid-value', data: expect.objectContaining({ path }) }),
    )
  })
})
