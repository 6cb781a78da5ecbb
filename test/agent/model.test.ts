import type { LanguageModelV2, LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { callModel, type CallOptions, checkModel } from '#src/agent/model/model.js'
import type { ModelRequest } from '#src/agent/model/model-types.js'
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test'
import type { LanguageModel } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { checkMessage, makeMessage, type ModelEvent } from 'holdfast/messages'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

const clock = systemClock()
const request: ModelRequest = { messages: [makeMessage('user', 'Where is it?')] }
const v3Usage = {
  inputTokens: { total: 20, noCache: 12, cacheRead: 8, cacheWrite: 0 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
}
const finish = { type: 'finish' as const, usage: v3Usage, finishReason: { unified: 'stop' as const, raw: 'end_turn' } }
/** No pauses, so that retries cost no time. */
const quick = { initialMs: 0, maxMs: 0 }

function streaming(...attempts: (readonly LanguageModelV3StreamPart[] | Error)[]): MockLanguageModelV3 {
  let n = 0
  return new MockLanguageModelV3({
    provider: 'acme.chat',
    modelId: 'm-1',
    doStream: async () => {
      const chunks = attempts[n++] ?? []
      if (chunks instanceof Error) throw chunks
      return { stream: simulateReadableStream({ chunks: [...chunks], initialDelayInMs: null, chunkDelayInMs: null }) }
    },
  })
}

async function run(model: LanguageModel, options: Partial<CallOptions> = {}, asked = request) {
  const events: ModelEvent[] = []
  const reply = await callModel(model, asked, {
    clock,
    retry: quick,
    onEvent: (event) => events.push(event),
    ...options,
  })
  checkMessage(reply.message)
  return { ...reply, events }
}

describe('a model call', () => {
  const whole: LanguageModelV3StreamPart[] = [
    { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'topK', details: 'ignored' }] },
    { type: 'response-metadata', id: 'resp_1', modelId: 'm-1-2025', timestamp: new Date(0) },
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: 'Hm' },
    { type: 'reasoning-delta', id: 'r', delta: '.', providerMetadata: { anthropic: { signature: 'sig' } } },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-start', id: 't', providerMetadata: { openai: { itemId: 'i' } } },
    { type: 'text-delta', id: 't', delta: 'Let me ' },
    { type: 'text-delta', id: 't', delta: 'look.' },
    { type: 'text-end', id: 't' },
    { type: 'tool-input-start', id: 'c1', toolName: 'getOrder' },
    { type: 'tool-input-delta', id: 'c1', delta: '{"orderId":' },
    { type: 'tool-input-delta', id: 'c1', delta: '"A"}' },
    { type: 'tool-input-end', id: 'c1' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'getOrder', input: '{"orderId":"A"}' },
    { type: 'tool-call', toolCallId: 's1', toolName: 'search', input: '{"q":1}', providerExecuted: true },
    { type: 'tool-result', toolCallId: 's1', toolName: 'search', result: ['half'], preliminary: true },
    { type: 'tool-result', toolCallId: 's1', toolName: 'search', result: ['all'] },
    { type: 'source', sourceType: 'url', id: 'src', url: 'https://a.example', title: 'A' },
    { type: 'file', mediaType: 'image/png', data: 'iVBORw0KGgo=' },
    { ...finish, providerMetadata: { acme: { cost: 1 } } },
  ]

  it('streams, and ends in a message with all its parts in order', async () => {
    const { message, events, ...reply } = await run(streaming(whole), { messageId: 'm1' })
    expect(message).toMatchObject({
      id: 'm1',
      role: 'assistant',
      model: { provider: 'acme.chat', id: 'm-1', actual: 'm-1-2025', responseId: 'resp_1' },
      finish: { reason: 'stop', raw: 'end_turn' },
      providerMetadata: { acme: { cost: 1 } },
      usage: { input: 20, cachedInput: 8, output: 5, reasoning: 2, total: 25, basis: 'provider' },
    })
    expect(message.parts).toEqual([
      { type: 'reasoning', text: 'Hm.', providerMetadata: { anthropic: { signature: 'sig' } } },
      { type: 'text', text: 'Let me look.', providerMetadata: { openai: { itemId: 'i' } } },
      { type: 'tool-call', callId: 'c1', name: 'getOrder', input: { orderId: 'A' } },
      { type: 'tool-call', callId: 's1', name: 'search', input: { q: 1 }, providerExecuted: true },
      { type: 'tool-result', callId: 's1', name: 'search', output: { type: 'json', value: ['all'] } },
      { type: 'source', sourceType: 'url', id: 'src', url: 'https://a.example', title: 'A' },
      {
        type: 'file',
        mediaType: 'image/png',
        data: { kind: 'bytes', bytes: new Uint8Array(Buffer.from('iVBORw0KGgo=', 'base64')) },
      },
    ])
    expect(reply).toMatchObject({
      finish: 'stop',
      attempts: 1,
      warnings: [{ type: 'unsupported', feature: 'topK', message: 'ignored' }],
    })
    expect(events.map(({ type }) => type)).toEqual([
      'attempt',
      'reasoning-delta',
      'reasoning-delta',
      'text-delta',
      'text-delta',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-delta',
      'tool-call',
      'tool-call',
    ])
  })

  it('without a stream ends in the same message', async () => {
    const model = new MockLanguageModelV3({
      doGenerate: {
        content: [
          { type: 'reasoning', text: 'Hm.', providerMetadata: { anthropic: { signature: 'sig' } } },
          { type: 'text', text: 'Hello.' },
          { type: 'tool-call', toolCallId: 'c', toolName: 'a', input: '' },
        ],
        finishReason: { unified: 'tool-calls', raw: 'tool_use' },
        usage: v3Usage,
        response: { id: 'resp_2' },
        warnings: [],
      },
    })
    const { message, events } = await run(model, { stream: false })
    expect(message.parts).toEqual([
      { type: 'reasoning', text: 'Hm.', providerMetadata: { anthropic: { signature: 'sig' } } },
      { type: 'text', text: 'Hello.' },
      { type: 'tool-call', callId: 'c', name: 'a', input: {} },
    ])
    expect(message.finish).toEqual({ reason: 'tool-calls', raw: 'tool_use' })
    expect(events.map(({ type }) => type)).toEqual(['attempt', 'reasoning-delta', 'text-delta', 'tool-call'])
  })

  it('passes on prompt, tools and settings, and nothing that was not set', async () => {
    const model = streaming(whole)
    await run(
      model,
      {},
      {
        messages: [makeMessage('system', 'Be kind.'), makeMessage('user', 'Hi')],
        tools: [{ type: 'function', name: 'a', inputSchema: { type: 'object' } }],
        toolChoice: { tool: 'a' },
        settings: { temperature: 0, maxOutputTokens: 9, reasoning: 'high', providerOptions: { acme: { x: 1 } } },
      },
    )
    const { abortSignal, ...sent } = model.doStreamCalls[0]
    expect(abortSignal).toBeInstanceOf(AbortSignal)
    expect(sent).toStrictEqual({
      prompt: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      ],
      tools: [{ type: 'function', name: 'a', inputSchema: { type: 'object' } }],
      toolChoice: { type: 'tool', toolName: 'a' },
      temperature: 0,
      maxOutputTokens: 9,
      providerOptions: { acme: { x: 1 } },
    })
  })

  it('keeps malformed arguments as the model wrote them', async () => {
    const raw = '{"orderId": "ORD-1", "reas'
    const { message } = await run(
      streaming([{ type: 'tool-call', toolCallId: 'c', toolName: 'a', input: raw }, finish]),
    )
    expect(message.parts).toEqual([{ type: 'tool-call', callId: 'c', name: 'a', input: {}, invalid: true, raw }])
  })

  const begun: LanguageModelV3StreamPart[] = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'It wa' },
  ]
  const good: LanguageModelV3StreamPart[] = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'It was sent.' },
    { type: 'text-end', id: 't' },
    finish,
  ]

  it.each<[string, LanguageModelV3StreamPart[]]>([
    [
      'an error part',
      [...begun, { type: 'error', error: { message: 'overloaded', type: 'overloaded_error' } }, finish],
    ],
    ['an error of no kind', [...begun, { type: 'error', error: 'boom' }]],
    ['no finish', begun],
    ['a finish for no reason', [...begun, { ...finish, finishReason: { unified: 'other', raw: undefined } }]],
    ['a finish that is an error', [...begun, { ...finish, finishReason: { unified: 'error', raw: undefined } }]],
  ])('that ends in %s is made again whole, and what was streamed is superseded', async (_what, broken) => {
    const { message, events, attempts } = await run(streaming(broken, good))
    expect(attempts).toBe(2)
    expect(message.parts).toEqual([{ type: 'text', text: 'It was sent.' }])
    expect(events.map(({ type, attempt }) => `${type} ${attempt}`)).toEqual([
      'attempt 1',
      'text-delta 1',
      'superseded 1',
      'failure 1',
      'attempt 2',
      'text-delta 2',
    ])
  })

  it('supersedes nothing where nothing was streamed', async () => {
    const { events } = await run(streaming(Object.assign(new Error('busy'), { statusCode: 503 }), good))
    expect(events.map(({ type }) => type)).toEqual(['attempt', 'failure', 'attempt', 'text-delta'])
  })

  it('that breaks every time ends in an error', async () => {
    const broken = streaming(begun, begun)
    const failed = callModel(broken, request, { clock, retry: { ...quick, attempts: 2 } })
    await expect(failed).rejects.toMatchObject({
      code: 'model',
      kind: 'broken-reply',
      data: { attempts: 2, provider: 'acme.chat' },
    })
    expect(broken.doStreamCalls).toHaveLength(2)
  })

  it('estimates usage that the provider left out', async () => {
    const usage = { inputTokens: { total: undefined }, outputTokens: { total: undefined } } as never
    const { usage: counted } = await run(streaming([...good.slice(0, -1), { ...finish, usage }]))
    expect(counted).toMatchObject({ basis: 'estimate', output: 3 })
    expect(counted.input).toBeGreaterThan(5)
  })

  it('leaves out parts that are not known yet, and says so', async () => {
    const { message, warnings } = await run(streaming([{ type: 'hologram' } as never, ...good]))
    expect(message.parts).toEqual([{ type: 'text', text: 'It was sent.' }])
    expect(warnings).toEqual([{ type: 'other', message: expect.stringContaining('"hologram"') }])
  })

  it('keeps blocks that were never ended', async () => {
    const { message } = await run(streaming([...begun, finish]))
    expect(message.parts).toEqual([{ type: 'text', text: 'It wa' }])
  })

  it.each([{ timeoutMs: 0 }, { timeoutMs: Number.NaN }, { idleTimeoutMs: -1 }])('refuses %o', async (options) => {
    await expect(run(streaming(good), options)).rejects.toMatchObject({ code: 'invalid-option' })
  })

  it('may take as long as it likes', async () => {
    expect((await run(streaming(good), { timeoutMs: Number.POSITIVE_INFINITY, idleTimeoutMs: 2 ** 40 })).attempts).toBe(
      1,
    )
  })

  it('keeps an empty block only for its signature', async () => {
    const { message } = await run(
      streaming([
        { type: 'text-start', id: 't' },
        { type: 'text-end', id: 't' },
        { type: 'reasoning-start', id: 'r', providerMetadata: { anthropic: { redactedData: 'x' } } },
        { type: 'reasoning-end', id: 'r' },
        finish,
      ]),
    )
    expect(message.parts).toEqual([
      { type: 'reasoning', text: '', providerMetadata: { anthropic: { redactedData: 'x' } } },
    ])
  })

  it('ends with what its listener throws, even where that looks like a dropped connection', async () => {
    const model = streaming(good, good)
    const error = Object.assign(new Error('write ECONNRESET'), { code: 'ECONNRESET' })
    const onEvent = (event: ModelEvent) => {
      if (event.type === 'text-delta') throw error
    }
    await expect(callModel(model, request, { clock, onEvent, retry: quick })).rejects.toBe(error)
    expect(model.doStreamCalls).toHaveLength(1)
  })
})

describe('time and aborts', () => {
  /** Heeds no signal, as some providers do. */
  const deaf = (chunks: readonly LanguageModelV3StreamPart[] = []) => {
    let cancelled = 0
    const stream = () =>
      new ReadableStream<LanguageModelV3StreamPart>({
        start: (controller) => chunks.forEach((chunk) => controller.enqueue(chunk)),
        cancel: () => {
          cancelled++
        },
      })
    const model = new MockLanguageModelV3({
      doStream: async () => ({ stream: stream() }),
      doGenerate: () => new Promise(() => {}),
    })
    return { model, cancelled: () => cancelled }
  }

  it.each([true, false])(
    'ends an attempt that takes too long, with a provider that hears nothing (stream: %s)',
    async (stream) => {
      const time = virtualClock()
      const { model } = deaf()
      const failed = callModel(model, request, { clock: time, timeoutMs: 5000, retry: { attempts: 1 }, stream })
      const outcome = failed.catch((error: unknown) => error)
      const expected = {
        kind: 'timeout',
        retryable: true,
        message: expect.stringContaining('5000 ms'),
      }
      await time.advance(4999)
      await time.advance(2)
      expect(await outcome).toMatchObject(expected)
    },
  )

  it('ends a stream that falls silent, and lets go of it', async () => {
    const time = virtualClock()
    const { model, cancelled } = deaf([{ type: 'text-start', id: 't' }])
    const failed = callModel(model, request, {
      clock: time,
      timeoutMs: 60_000,
      idleTimeoutMs: 1000,
      retry: { attempts: 1 },
    })
    const outcome = failed.catch((error: unknown) => error)
    const expected = {
      kind: 'timeout',
      message: expect.stringContaining('sent nothing within 1000 ms'),
    }
    await time.advance(1500)
    expect(await outcome).toMatchObject(expected)
    expect(cancelled()).toBe(1)
  })

  it('tries again after a timeout', async () => {
    const time = virtualClock()
    let calls = 0
    const model = new MockLanguageModelV3({
      doGenerate: async () => {
        if (calls++ === 0) return new Promise(() => {})
        return {
          content: [{ type: 'text', text: 'late' }],
          finishReason: { unified: 'stop', raw: undefined },
          usage: v3Usage,
          warnings: [],
        }
      },
    })
    const reply = callModel(model, request, { clock: time, timeoutMs: 5000, stream: false, random: () => 0 })
    await time.advance(10_000)
    expect((await reply).attempts).toBe(2)
  })

  it('ends at once with the reason of an abort, and passes it on', async () => {
    const control = new AbortController()
    const { model, cancelled } = deaf([
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'x' },
    ])
    const reason = new Error('cancelled by the user')
    const onEvent = (event: ModelEvent) => {
      if (event.type === 'text-delta') setImmediate(() => control.abort(reason))
    }
    await expect(callModel(model, request, { clock, signal: control.signal, onEvent })).rejects.toBe(reason)
    expect(model.doStreamCalls[0].abortSignal?.reason).toBe(reason)
    expect(cancelled()).toBe(1)
    await expect(callModel(model, request, { clock, signal: control.signal })).rejects.toBe(reason)
    expect(model.doStreamCalls).toHaveLength(1)
  })

  it('leaves nothing behind on the signal of the caller', async () => {
    const control = new AbortController()
    let listeners = 0
    const { addEventListener, removeEventListener } = control.signal
    control.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++
      addEventListener.apply(control.signal, args)
    }
    control.signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      removeEventListener.apply(control.signal, args)
    }
    await run(streaming([{ type: 'text-start', id: 't' }, finish]), { signal: control.signal })
    expect(listeners).toBe(0)
  })
})

describe('the versions of the interface', () => {
  it('V2 is spoken to and understood in its own terms', async () => {
    const seen: unknown[] = []
    const model: LanguageModelV2 = {
      specificationVersion: 'v2',
      provider: 'old.chat',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: async (options) => {
        seen.push(options)
        return {
          content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'a', input: '{"b":1}' }],
          finishReason: 'unknown',
          usage: { inputTokens: 5, outputTokens: 2, totalTokens: 7, cachedInputTokens: 1 },
          warnings: [{ type: 'unsupported-setting', setting: 'topK', details: 'no' }],
        }
      },
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: [
            { type: 'stream-start', warnings: [] },
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: 'Hi' },
            { type: 'text-end', id: '1' },
            { type: 'finish', finishReason: 'stop', usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } },
          ],
        }),
      }),
    }
    const asked: ModelRequest = {
      ...request,
      tools: [{ type: 'provider', id: 'old.search', name: 'search', args: {} }],
    }
    const { message, warnings, usage } = await run(model, { stream: false }, asked)
    expect(seen[0]).toMatchObject({ tools: [{ type: 'provider-defined', id: 'old.search' }] })
    expect(message).toMatchObject({
      finish: { reason: 'other', raw: 'unknown' },
      parts: [{ type: 'tool-call', input: { b: 1 } }],
    })
    expect(warnings).toEqual([{ type: 'unsupported', feature: 'topK', message: 'no' }])
    expect(usage).toMatchObject({ input: 5, cachedInput: 1, total: 7 })
    expect((await run(model)).message.parts).toEqual([{ type: 'text', text: 'Hi' }])
  })

  it('V4 is spoken to and understood in its own terms', async () => {
    const seen: Record<string, unknown>[] = []
    const model = {
      specificationVersion: 'v4',
      provider: 'new.chat',
      modelId: 'm',
      supportedUrls: {},
      doGenerate: async () => expect.unreachable('streams'),
      doStream: async (options: Record<string, unknown>) => {
        seen.push(options)
        return {
          stream: simulateReadableStream({
            chunks: [
              { type: 'ping' },
              { type: 'text-start', id: '1' },
              { type: 'text-delta', id: '1', delta: 'Hi' },
              {
                type: 'text-end',
                id: '1',
                citations: [{ source: { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' } }],
              },
              { type: 'custom', kind: 'new.thing', providerMetadata: { new: { a: 1 } } },
              { type: 'reasoning-file', mediaType: 'image/png', data: { type: 'data', data: 'iVBORw0KGgo=' } },
              { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://a.example/b.png') } },
              { type: 'finish', finishReason: { unified: 'interrupted', raw: 'x' }, usage: v3Usage },
            ],
          }),
        }
      },
    }
    const photo = makeMessage('user', [
      { type: 'file', mediaType: 'image/png', data: { kind: 'url', url: 'https://a.example/a.png' } },
    ])
    const { message } = await run(model, {}, { messages: [photo], settings: { reasoning: 'high' } })
    expect(seen[0]).toMatchObject({
      reasoning: 'high',
      prompt: [{ content: [{ type: 'file', data: { type: 'url', url: new URL('https://a.example/a.png') } }] }],
    })
    expect(message.finish?.reason).toBe('interrupted')
    expect(message.parts.map(({ type }) => type)).toEqual(['text', 'custom', 'reasoning-file', 'file'])
    expect(message.parts[0]).toHaveProperty('citations')
    expect(message.parts[3]).toMatchObject({ data: { kind: 'url', url: 'https://a.example/b.png' } })
  })

  it('fit our own interface by type', () => {
    const models: LanguageModel[] = [{} as LanguageModelV2, {} as LanguageModelV3, new MockLanguageModelV3()]
    expect(models).toHaveLength(3)
  })

  it.each([
    ['text', 'gpt-4o', /is the text "gpt-4o"/],
    ['nothing', undefined, /not a language model/],
    ['an old version', { specificationVersion: 'v1', doGenerate() {}, doStream() {} }, /it follows "v1"/],
    ['no model', { specificationVersion: 'v3', provider: 'p', modelId: 'm' }, /not a language model/],
  ])('refuse %s', (_what, model, message) => {
    expect(() => checkModel(model as never)).toThrow(
      expect.objectContaining({ code: 'invalid-option', message: expect.stringMatching(message) }),
    )
  })
})
