import type { LanguageModelV3Prompt } from '@ai-sdk/provider'
import fc from 'fast-check'
import type { Message, Part } from 'holdfast'
import { checkMessages, fromAiSdkMessages, makeMessage, toAiSdkPrompt } from 'holdfast/messages'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyMessage, v3Message } from './conversations.js'
import { modelMessages, v2Prompt, v3Prompt, v4Prompt } from './fixtures/ai-sdk-prompts.js'

const stamp = (index: number) => ({ id: `m${index}`, at: index })

/** A message without what only we know. */
function bare({ role, parts, providerMetadata }: Message): object {
  return { role, parts, ...(providerMetadata === undefined ? {} : { providerMetadata }) }
}

describe('AI SDK prompts', () => {
  it('of spec V3 come back as they were', () => {
    const messages = fromAiSdkMessages(v3Prompt, { stamp })
    checkMessages(messages)
    // Compiles only while our prompt is one of theirs.
    const prompt: LanguageModelV3Prompt = toAiSdkPrompt(messages)
    expect(prompt).toStrictEqual(v3Prompt)
  })

  it('of spec V4 come back as they were', () => {
    const messages = fromAiSdkMessages(v4Prompt, { stamp })
    checkMessages(messages)
    expect(toAiSdkPrompt(messages, 'v4')).toStrictEqual(v4Prompt)
  })

  it('of spec V2 come back with bytes for base64', () => {
    const messages = fromAiSdkMessages(v2Prompt, { stamp })
    checkMessages(messages)
    const bytes = new Uint8Array(Buffer.from('iVBORw0KGgo=', 'base64'))
    const expected = structuredClone(v2Prompt)
    expected[1] = { role: 'user', content: [{ type: 'file', data: bytes, mediaType: 'image/png' }] }
    expect(toAiSdkPrompt(messages, 'v2')).toStrictEqual(expected)
  })

  it('hold whole conversations: ours come back as they were, but for ids and times', () => {
    fc.assert(
      fc.property(fc.array(v3Message, { maxLength: 6 }), (messages) => {
        const back = fromAiSdkMessages(toAiSdkPrompt(messages))
        expect(back.map(bare)).toStrictEqual(messages.map(bare))
      }),
      randomly(rounds(60)),
    )
  })

  it('are made of any conversation, in every version, or refused with a path', () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 4 }), fc.constantFrom('v2', 'v3', 'v4'), (messages, version) => {
        let prompt: unknown[]
        try {
          prompt = toAiSdkPrompt(messages, version as 'v3')
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid-value', data: { path: expect.stringMatching(/^\$\[\d\]/) } })
          return
        }
        for (const message of prompt as { content: unknown }[]) expect(message.content).toBeDefined()
        // What went out can be read again.
        checkMessages(fromAiSdkMessages(prompt as LanguageModelV3Prompt))
      }),
      randomly(rounds(60)),
    )
  })

  it('are read from the messages of the ai package', () => {
    const messages = fromAiSdkMessages(modelMessages, { stamp })
    checkMessages(messages)
    expect(messages[1]).toEqual(makeMessage('user', 'Where is it?', { id: 'm1', at: 1 }))
    expect(messages[2]?.parts).toEqual([
      { type: 'file', mediaType: 'image/*', data: { kind: 'url', url: 'https://shop.example/a.png' } },
      {
        type: 'file',
        mediaType: 'image/png',
        data: { kind: 'bytes', bytes: new Uint8Array([0x89, 0x50, 0x4e, 0x47]) },
      },
      {
        type: 'file',
        mediaType: 'application/pdf',
        data: { kind: 'bytes', bytes: new Uint8Array(Buffer.from('%PDF-')) },
      },
    ])
    expect(messages[4]?.parts[1]).toEqual({ type: 'tool-approval-request', approvalId: 'ap', callId: 'c' })
  })

  const one = (...parts: Part[]) => [makeMessage('assistant', parts, { id: 'm', at: 0 })]

  it('lose what they have no place for', () => {
    const source: Part = { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' }
    expect(toAiSdkPrompt(one(source))).toEqual([])
    expect(toAiSdkPrompt(one({ type: 'refusal', text: 'No.' }))).toEqual([
      { role: 'assistant', content: [{ type: 'text', text: 'No.' }] },
    ])
    const call: Part = { type: 'tool-call', callId: 'c', name: 'n', input: {}, version: '2', invalid: true, raw: '{"a' }
    expect(toAiSdkPrompt(one(call))).toEqual([
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'n', input: {} }] },
    ])
    const typed: Part = { type: 'tool-call', callId: 'c', name: 'n', input: { at: new Date(0), n: 5n, x: Number.NaN } }
    expect(toAiSdkPrompt(one(typed))[0]?.content).toMatchObject([
      { input: { at: '1970-01-01T00:00:00.000Z', n: '5', x: null } },
    ])
  })

  it('of V2 turn a denial into an error and an address into text', () => {
    const denied: Part = {
      type: 'tool-result',
      callId: 'c',
      name: 'n',
      output: { type: 'denied', reason: 'Too dear.' },
    }
    const linked: Part = {
      type: 'tool-result',
      callId: 'd',
      name: 'n',
      output: { type: 'content', value: [{ type: 'file', data: { kind: 'url', url: 'https://a.example/' } }] },
    }
    const message = makeMessage('tool', [denied, linked], { id: 'm', at: 0 })
    expect(toAiSdkPrompt([message], 'v2')[0]?.content).toMatchObject([
      { output: { type: 'error-text', value: 'Too dear.' } },
      { output: { type: 'content', value: [{ type: 'text', text: 'https://a.example/' }] } },
    ])
  })

  it("refuse a file in a provider's keeping where it can't be named", () => {
    const part: Part = {
      type: 'file',
      mediaType: 'application/pdf',
      data: { kind: 'reference', reference: { openai: 'f' } },
    }
    const message = makeMessage('user', [{ type: 'text', text: 'x' }, part], { id: 'm', at: 0 })
    const data = { field: '$[0].parts[1].data', path: '$[0].parts[1].data' }
    const refusal = { code: 'invalid-value', data }
    expect(() => toAiSdkPrompt([message], 'v3')).toThrow(expect.objectContaining(refusal))
    expect(toAiSdkPrompt([message], 'v4')).toHaveLength(1)
  })

  it.each([
    ['$[0].role', [{ role: 'robot', content: 'x' }]],
    ['$[0].content', [{ role: 'user', content: 5 }]],
    ['$[0].content[1].type', [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'hologram' }] }]],
    ['$[0].content[0].text', [{ role: 'user', content: [{ type: 'text' }] }]],
    [
      '$[0].content[0].output.type',
      [{ role: 'tool', content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'b', output: { type: 'x' } }] }],
    ],
    ['$[0].content[0].data', [{ role: 'user', content: [{ type: 'file', mediaType: 'a/b', data: { type: 'x' } }] }]],
  ])('that do not fit are refused with the path %s', (path, prompt) => {
    expect(() => fromAiSdkMessages(prompt)).toThrow(
      expect.objectContaining({ code: 'invalid-value', data: expect.objectContaining({ path }) }),
    )
  })
})
