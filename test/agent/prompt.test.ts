import { showValue } from '#src/codec/clone.js'
import { buildPrompt } from '#src/agent/model/prompt.js'
import { toAiSdkPrompt } from '#src/agent/messages/ai-sdk/to-ai-sdk.js'
import { makeMessage, type Message } from '#src/agent/messages/message.js'
import type { Part } from '#src/agent/messages/message-part.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { v3Message } from './conversations.js'
import { randomly, rounds } from '../support/scale.js'

const callId = fc.constantFrom('a', 'b', 'c')
const part = fc.oneof(
  callId.map((id): Part => ({ type: 'tool-call', callId: id, name: 'pay', input: { id } })),
  callId.map((id): Part => ({ type: 'tool-result', callId: id, name: 'pay', output: { type: 'text', value: id } })),
  callId.map(
    (id): Part => ({
      type: 'tool-result',
      callId: id,
      name: 'pay',
      output: { type: 'text', value: id },
      edited: { id: 'changed' },
    }),
  ),
  fc.constant<Part>({ type: 'text', text: 'hello' }),
)

let made = 0
function message(parts: readonly Part[]): Message {
  const role = parts.some(({ type }) => type === 'tool-result') ? 'tool' : 'assistant'
  return makeMessage(role, parts, { id: `m${made++}`, at: 0 })
}

/** As the state hands it out: the same objects, which nobody can change. */
function shown(messages: readonly Message[]): readonly Message[] {
  return showValue(messages as never) as unknown as readonly Message[]
}

/** What a process makes of a conversation that it sees for the first time. */
function anew(messages: readonly Message[]): readonly Message[] {
  return buildPrompt('', {}, null, structuredClone(messages))
}

interface Sent {
  providerOptions?: object
  content: string | { providerOptions?: object }[]
}

/** What middleware may do to a prompt. */
function mark(prompt: Sent[]): void {
  for (const each of prompt) {
    each.providerOptions = { cache: {} }
    if (typeof each.content === 'string') continue
    for (const inner of each.content) inner.providerOptions = { cache: {} }
    each.content.push({})
  }
  prompt.shift()
}

describe('the prompt of a turn', () => {
  it('is the same whether a conversation grew here, was cut, took another way, or is seen for the first time', () => {
    const change = fc.record({
      cut: fc.integer({ min: 0, max: 3 }),
      parts: fc.array(part, { minLength: 1, maxLength: 3 }),
    })
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 20 }), (changes) => {
        const first = message([{ type: 'text', text: 'begin' }])
        let messages = shown([first])
        for (const { cut, parts } of changes) {
          messages = shown([...messages.slice(0, Math.max(1, messages.length - cut)), message(parts)])
          expect(buildPrompt('', {}, null, messages)).toEqual(anew(messages))
        }
      }),
      randomly(rounds(100)),
    )
  })

  it('is sent as if each turn were the first, whatever was changed, inserted, removed, or added by a model', () => {
    const change = fc.record({
      at: fc.nat({ max: 9 }),
      remove: fc.nat({ max: 2 }),
      insert: fc.array(v3Message, { maxLength: 3 }),
      isFixed: fc.boolean(),
      version: fc.constantFrom('v2' as const, 'v3' as const, 'v4' as const),
      isMarked: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(v3Message, { minLength: 1, maxLength: 6 }), fc.array(change), (given, changes) => {
        let messages = shown(given)
        for (const { at, remove, insert, isFixed, version, isMarked } of changes) {
          const added = isFixed ? shown(insert) : insert.map((each) => ({ ...each }))
          const place = Math.min(at, messages.length)
          messages = [...messages.slice(0, place), ...added, ...messages.slice(place + remove)]
          const sent = toAiSdkPrompt(messages, version)
          expect(sent).toEqual(toAiSdkPrompt(structuredClone(messages), version))
          if (isMarked) mark(sent as unknown as Sent[])
        }
      }),
      randomly(rounds(30)),
    )
  })

  it('does not take what follows a message that is refused for what was made of it', () => {
    const file: Part = { type: 'file', mediaType: 'image/png', data: { kind: 'reference', reference: { acme: 'f' } } }
    const user = makeMessage('user', 'go', { id: 'u', at: 0 })
    const [first, refused, last] = shown([user, makeMessage('user', [file]), makeMessage('user', 'stop')])
    for (let turn = 0; turn < 2; turn++) {
      expect(() => toAiSdkPrompt([first, refused, last] as Message[])).toThrow(/provider's keeping/)
    }
    expect(toAiSdkPrompt([first, last] as Message[])).toMatchObject([
      { content: [{ text: 'go' }] },
      { content: [{ text: 'stop' }] },
    ])
  })

  it('does not remember messages that can still be changed', () => {
    const call: Part = { type: 'tool-call', callId: 'a', name: 'pay', input: {} }
    const messages = [
      makeMessage('user', 'go', { id: 'u', at: 0 }),
      makeMessage('assistant', [call], { id: 'x', at: 0 }),
    ]
    expect(buildPrompt('', {}, null, messages)).toHaveLength(3)
    messages[1] = makeMessage('assistant', 'never mind', { id: 'x', at: 0 })
    expect(buildPrompt('', {}, null, messages)).toHaveLength(2)
    ;(messages[1] as { parts: readonly Part[] }).parts = [call]
    expect(buildPrompt('', {}, null, messages)).toHaveLength(3)
    expect(toAiSdkPrompt(messages)[1]).toMatchObject({ content: [{ type: 'tool-call' }] })
    ;(messages[1] as { parts: readonly Part[] }).parts = [{ type: 'text', text: 'no' }]
    expect(toAiSdkPrompt(messages)[1]).toMatchObject({ content: [{ type: 'text' }] })
  })

  it('has nothing of what a model added to the prompt of the turn before', () => {
    const messages = shown([makeMessage('user', 'go', { id: 'u', at: 0 })])
    mark(toAiSdkPrompt(messages) as unknown as Sent[])
    expect(toAiSdkPrompt(messages)).toEqual([{ role: 'user', content: [{ type: 'text', text: 'go' }] }])
    expect(toAiSdkPrompt(messages, 'v2')).toEqual([{ role: 'user', content: [{ type: 'text', text: 'go' }] }])
  })
})
