import { decodeValue } from '#src/codec/decode/decode.js'
import { encodeValue, type Value } from '#src/codec/value.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import fc from 'fast-check'
import { isHoldfastError, type Message, textOf } from 'holdfast'
import { checkMessage, checkMessages, makeMessage, toMessage } from 'holdfast/messages'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyMessage } from './conversations.js'

describe('a message', () => {
  it('is what the codec stores, and comes back exactly', () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        // Compiles only while a message is a storable value.
        const stored: Value = message
        const { json } = encodeValue(stored, DEFAULT_LIMITS)
        const back = decodeValue(Buffer.from(json), DEFAULT_LIMITS) as unknown
        expect(back).toStrictEqual(message)
        checkMessage(back)
      }),
      randomly(rounds(150)),
    )
  })

  it('is made of text for a user, or taken as it is', () => {
    const message = toMessage('Where is my order?', { id: 'm1', at: 5 })
    expect(message).toEqual({
      id: 'm1',
      v: 1,
      role: 'user',
      parts: [{ type: 'text', text: 'Where is my order?' }],
      at: 5,
    })
    expect(toMessage(message)).toBe(message)
    expect(textOf(message)).toBe('Where is my order?')
  })

  it('has an id of its own and a time when none are given', () => {
    const [a, b] = [makeMessage('user', 'a'), makeMessage('user', 'a')]
    expect(a.id).not.toBe(b.id)
    expect(a.at).toBeGreaterThan(1_700_000_000_000)
  })

  const good: Message = makeMessage('assistant', [{ type: 'text', text: 'a' }], { id: 'm', at: 1 })
  const call = { type: 'tool-call', callId: 'c', name: 'n', input: {} }
  const result = { type: 'tool-result', callId: 'c', name: 'n', output: { type: 'text', value: '' } }
  const misfits: readonly (readonly [path: string, message: unknown])[] = [
    ['$', 5],
    ['$', null],
    ['$', []],
    ['$.id', { ...good, id: '' }],
    ['$.id', { ...good, id: 7 }],
    ['$.v', { ...good, v: 2 }],
    ['$.v', { ...good, v: undefined }],
    ['$.role', { ...good, role: 'robot' }],
    ['$.at', { ...good, at: Number.NaN }],
    ['$.at', { ...good, at: new Date() }],
    ['$.name', { ...good, name: 1 }],
    ['$.parts', { ...good, parts: 'text' }],
    ['$.parts[0]', { ...good, parts: ['text'] }],
    ['$.parts[0].type', { ...good, parts: [{ type: 'video' }] }],
    ['$.parts[1].text', { ...good, parts: [{ type: 'text', text: 'a' }, { type: 'text' }] }],
    ['$.parts[0].type', { ...good, role: 'user', parts: [call] }],
    ['$.parts[0].type', { ...good, role: 'tool' }],
    ['$.parts[0].type', { ...good, role: 'system', parts: [result] }],
    ['$.parts[0].callId', { ...good, parts: [{ ...call, callId: '' }] }],
    ['$.parts[0].name', { ...good, parts: [{ ...call, name: undefined }] }],
    ['$.parts[0].input', { ...good, parts: [{ ...call, input: undefined }] }],
    ['$.parts[0].invalid', { ...good, parts: [{ ...call, invalid: false }] }],
    ['$.parts[0].raw', { ...good, parts: [{ ...call, invalid: true }] }],
    ['$.parts[0].output', { ...good, parts: [{ ...result, output: 'done' }] }],
    ['$.parts[0].output.type', { ...good, parts: [{ ...result, output: { type: 'xml' } }] }],
    ['$.parts[0].output.value', { ...good, parts: [{ ...result, output: { type: 'text', value: 5 } }] }],
    ['$.parts[0].output.value', { ...good, parts: [{ ...result, output: { type: 'json' } }] }],
    ['$.parts[0].output.value[0].type', { ...good, parts: [{ ...result, output: { type: 'content', value: [{}] } }] }],
    ['$.parts[0].data', { ...good, parts: [{ type: 'file', mediaType: 'image/png', data: 'abc' }] }],
    [
      '$.parts[0].data.bytes',
      { ...good, parts: [{ type: 'file', mediaType: 'a/b', data: { kind: 'bytes', bytes: 'YQ==' } }] },
    ],
    ['$.parts[0].data.kind', { ...good, parts: [{ type: 'file', mediaType: 'a/b', data: { kind: 'path' } }] }],
    [
      '$.parts[0].data.reference.openai',
      { ...good, parts: [{ type: 'file', mediaType: 'a/b', data: { kind: 'reference', reference: { openai: 5 } } }] },
    ],
    [
      '$.parts[0].approved',
      { ...good, role: 'tool', parts: [{ type: 'tool-approval-response', approvalId: 'a', approved: 'yes' }] },
    ],
    [
      '$.parts[0].providerMetadata.acme',
      { ...good, parts: [{ type: 'text', text: '', providerMetadata: { acme: 1 } }] },
    ],
    ['$.usage.output', { ...good, usage: { input: 1, cachedInput: 0, cacheWrite: 0 } }],
    ['$.model.id', { ...good, model: { provider: 'p' } }],
    ['$.finish.reason', { ...good, finish: { reason: 'done' } }],
    ['$.providerMetadata', { ...good, providerMetadata: 'x' }],
  ]
  it.each(misfits)('is refused with the path %s', (path, message) => {
    const refusal = catchError(() => checkMessage(message))
    expect(isHoldfastError(refusal, 'invalid-value')).toBe(true)
    expect(refusal).toMatchObject({ data: { path } })
  })

  it('is refused in a list with its place, as is an id that came before', () => {
    expect(catchError(() => checkMessages([good, { ...good, id: 'n', at: -1 }]))).toMatchObject({
      data: { path: '$[1].at' },
    })
    expect(catchError(() => checkMessages([good, good]))).toMatchObject({ data: { path: '$[1].id' } })
    expect(catchError(() => checkMessages({}))).toMatchObject({ data: { path: '$' } })
    checkMessages([good, { ...good, id: 'n' }])
  })
})

function catchError(work: () => void): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}
