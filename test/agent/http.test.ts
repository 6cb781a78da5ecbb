import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { callModel, type CallOptions } from '#src/agent/model/model.js'
import type { ModelRequest, ModelTool } from '#src/agent/model/model-types.js'
import { isHoldfastError, textOf } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { checkMessage, makeMessage, type ModelEvent } from 'holdfast/messages'
import { type ModelServer, type ModelServerOptions, type ScriptedReply, startModelServer } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'

// The real provider package over real HTTP: what is tested here is what users have.

const clock = systemClock()
let server: ModelServer | undefined
/** How long to wait for what is about to happen, on a machine that may be busy. */
const soon = { timeout: 600_000 }

afterEach(async () => {
  await server?.close()
  server = undefined
})

const getOrder: ModelTool = {
  type: 'function',
  name: 'getOrder',
  description: 'Finds an order',
  inputSchema: { type: 'object', properties: { orderId: { type: 'string' } } },
}
const question: ModelRequest = {
  messages: [makeMessage('system', 'Be kind.'), makeMessage('user', 'Where is it?')],
  tools: [getOrder],
}

async function start(options: ModelServerOptions) {
  server = await startModelServer(options)
  return createOpenAICompatible({
    name: 'local',
    baseURL: server.url,
    apiKey: 'sk-test-secret-key',
    includeUsage: true,
  })('m-1')
}

async function call(
  reply: ModelServerOptions['reply'],
  options: Partial<CallOptions> = {},
  more: Partial<ModelServerOptions> = {},
) {
  const model = await start({ ...more, reply })
  const events: ModelEvent[] = []
  const result = await callModel(model, question, {
    clock,
    retry: { initialMs: 1, maxMs: 5 },
    onEvent: (event) => events.push(event),
    ...options,
  })
  checkMessage(result.message)
  return { ...result, events, kinds: events.map(({ type }) => type) }
}

describe.each([true, false])('a model over HTTP (stream: %s)', (stream) => {
  it('answers with text, reasoning and usage', async () => {
    const usage = { input: 120, output: 30, cachedInput: 64, reasoning: 12 }
    const { message, events } = await call([{ text: 'It was sent on Monday.', reasoning: 'Let me see.', usage }], {
      stream,
    })
    expect(message).toMatchObject({
      parts: [
        { type: 'reasoning', text: 'Let me see.' },
        { type: 'text', text: 'It was sent on Monday.' },
      ],
      usage: { input: 120, cachedInput: 64, output: 30, reasoning: 12, total: 150, basis: 'provider' },
      model: { provider: 'local.chat', id: 'm-1', responseId: expect.stringMatching(/^chatcmpl-/) },
      finish: { reason: 'stop' },
    })
    const texts = events.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
    expect(texts.join('')).toBe('It was sent on Monday.')
    expect(texts.length > 1).toBe(stream)
    expect(server?.requests[0]).toMatchObject({
      stream,
      tools: [{ function: { name: 'getOrder' } }],
      messages: [{ role: 'system' }, { role: 'user' }],
    })
  })

  it('calls tools, several at once', async () => {
    const toolCalls = ['A', 'B', 'C'].map((orderId) => ({ name: 'getOrder', arguments: { orderId } }))
    const { message, finish } = await call([{ text: 'I will look.', toolCalls }], { stream })
    const calls = message.parts.filter((part) => part.type === 'tool-call')
    expect(calls.map(({ input }) => input)).toEqual([{ orderId: 'A' }, { orderId: 'B' }, { orderId: 'C' }])
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(3)
    expect(finish).toBe('tool-calls')
  })

  it('keeps malformed arguments, to be answered with an error', async () => {
    const raw = '{"orderId": "ORD-2024-8847", "amount": 12.'
    const { message } = await call(
      [
        {
          toolCalls: [
            { name: 'getOrder', arguments: raw },
            { name: 'getOrder', arguments: '{}' },
          ],
        },
      ],
      { stream },
    )
    expect(message.parts).toMatchObject([{ invalid: true, raw, input: {} }, { input: {} }])
  })

  it('estimates usage where the server gives none', async () => {
    const { usage } = await call([{ text: 'Yes.', usage: false }], { stream })
    expect(usage.basis).toBe('estimate')
    expect(usage.input).toBeGreaterThan(20)
  })

  it('waits as long as a 429 asks, in seconds and in milliseconds, and tries again', async () => {
    const limited = (headers: Record<string, string>): ScriptedReply => ({
      error: { status: 429, headers, message: 'slow', code: 'rate_limit_exceeded' },
    })
    const { attempts, events, kinds } = await call(
      [limited({ 'retry-after-ms': '40' }), limited({ 'retry-after': '0.05' }), 'ok'],
      { stream, random: () => 0 },
    )
    expect(attempts).toBe(3)
    expect(kinds.slice(0, 5)).toEqual(['attempt', 'failure', 'attempt', 'failure', 'attempt'])
    const failures = events.flatMap((event) => (event.type === 'failure' ? [event] : []))
    expect(failures.map(({ delayMs }) => delayMs)).toEqual([40, 50])
    expect(failures[0].failure).toMatchObject({
      kind: 'rate-limit',
      status: 429,
      providerCode: 'rate_limit_exceeded',
      message: 'slow',
    })
  })

  it('outlasts 500s, also those that are no JSON', async () => {
    const { attempts, message } = await call(
      [{ error: { status: 500 } }, { error: { status: 502, body: '<html>Bad gateway</html>' } }, 'ok'],
      { stream },
    )
    expect(attempts).toBe(3)
    expect(textOf(message)).toBe('ok')
  })

  it('outlasts connections that drop before the reply and in the middle of it', async () => {
    const text = 'one two three four five six'
    const { attempts, message } = await call([{ text, drop: 'before' }, { text, drop: { afterChunks: 4 } }, text], {
      stream,
    })
    expect(attempts).toBe(3)
    expect(textOf(message)).toBe(text)
    expect(server?.counters).toMatchObject({ dropped: 2, answered: 1 })
  })

  it('outlasts replies that end too early, and errors inside a reply', async () => {
    const text = 'one two three four'
    const { attempts, message } = await call(
      [
        { text, cutAfterChunks: 3 },
        { text, errorAfterChunks: { chunks: 3, error: { message: 'overloaded', type: 'overloaded_error' } } },
        text,
      ],
      { stream },
    )
    expect(attempts).toBe(3)
    expect(textOf(message)).toBe(text)
  })

  it('outlasts a server that hangs', async () => {
    const hangs: ScriptedReply[] = [{ hang: true }, { text: 'a b c', hang: { afterChunks: 2 } }]
    const { attempts, events, message } = await call(({ index }) => hangs[index] ?? 'ok', {
      stream,
      timeoutMs: 1000,
      retry: { attempts: 50, initialMs: 1, maxMs: 5 },
    })
    // A slow machine may need more of them.
    expect(attempts).toBeGreaterThanOrEqual(3)
    const kinds = events.flatMap((event) => (event.type === 'failure' ? [event.failure.kind] : []))
    expect(new Set(kinds)).toEqual(new Set(['timeout']))
    expect(textOf(message)).toBe('ok')
  })

  it.each([
    [400, 'invalid-request'],
    [401, 'auth'],
    [403, 'auth'],
    [404, 'not-found'],
    [422, 'invalid-request'],
  ])('fails at once after %i', async (status, kind) => {
    const failed = call([{ error: { status, message: 'Incorrect API key provided: sk-test-secret-key.' } }, 'ok'], {
      stream,
    })
    const error = await failed.catch((thrown: unknown) => thrown)
    expect(isHoldfastError(error, 'model')).toBe(true)
    expect(error).toMatchObject({ kind, data: { status, attempts: 1, provider: 'local.chat', model: 'm-1' } })
    expect(server?.counters.requests).toBe(1)
    expect(`${String(error)} ${JSON.stringify(error)} ${JSON.stringify((error as Error).cause)}`).not.toContain(
      'secret',
    )
  })

  it('tells a prompt that is too long from other refusals', async () => {
    const failed = call(['ok'], { stream }, { windowTokens: 10 })
    await expect(failed).rejects.toMatchObject({
      kind: 'context-too-long',
      retryable: false,
      data: { providerCode: 'context_length_exceeded' },
    })
  })

  it('ends at once when aborted, and the server sees the client go', async () => {
    const control = new AbortController()
    const reason = new Error('the user left')
    const replies = ({ index }: { index: number }): ScriptedReply =>
      index === 0 ? { text: 'a b c d', hang: { afterChunks: 2 } } : 'never'
    const failed = call(replies, { stream, signal: control.signal })
    await expect.poll(() => server?.counters.requests, soon).toBe(1)
    setTimeout(() => control.abort(reason), 20)
    await expect(failed).rejects.toBe(reason)
    await expect.poll(() => server?.requests[0].outcome, soon).toMatch(/hung|left/)
    expect(server?.counters.requests).toBe(1)
  })
})

describe('many models over HTTP', () => {
  it('marks what a broken stream had said as superseded', async () => {
    const { events, message } = await call([{ text: 'It was never sent.', drop: { afterChunks: 4 } }, 'It was sent.'])
    const superseded = events.findIndex(({ type }) => type === 'superseded')
    const before = events.slice(0, superseded).flatMap((event) => (event.type === 'text-delta' ? [event.text] : []))
    expect(before.join('')).toMatch(/^It was/)
    expect(events[superseded].attempt).toBe(1)
    expect(events.slice(superseded + 1).every(({ type, attempt }) => type === 'failure' || attempt === 2)).toBe(true)
    expect(textOf(message)).toBe('It was sent.')
  })

  it('streams the arguments of a tool as they are written', async () => {
    const { events } = await call([
      { toolCalls: [{ name: 'getOrder', arguments: { orderId: 'ORD-2024-8847', note: 'a longer text' } }] },
    ])
    const pieces = events.flatMap((event) => (event.type === 'tool-input-delta' ? [event.text] : []))
    expect(pieces.length).toBeGreaterThan(3)
    expect(JSON.parse(pieces.join(''))).toEqual({ orderId: 'ORD-2024-8847', note: 'a longer text' })
    const started = events.find(({ type }) => type === 'tool-input-start')
    expect(started).toMatchObject({ name: 'getOrder', callId: expect.stringMatching(/^call_/) })
  })

  it('sends a whole conversation back in the shape that OpenAI wants', async () => {
    const model = await start({ reply: () => 'ok' })
    const messages = [
      makeMessage('system', 'Be kind.'),
      makeMessage('user', 'Where is it?'),
      makeMessage('assistant', [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'tool-call', callId: 'c1', name: 'getOrder', input: { orderId: 'A' } },
        { type: 'tool-call', callId: 'c2', name: 'getOrder', input: {}, invalid: true, raw: '{"' },
      ]),
      makeMessage('tool', [
        {
          type: 'tool-result',
          callId: 'c1',
          name: 'getOrder',
          output: { type: 'json', value: { sentAt: new Date(0) } },
        },
        { type: 'tool-result', callId: 'c2', name: 'getOrder', output: { type: 'error', value: 'no JSON' } },
      ]),
    ]
    await callModel(model, { messages }, { clock })
    expect(server?.requests[0].messages).toEqual([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Where is it?' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'Hm.',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'getOrder', arguments: '{"orderId":"A"}' } },
          { id: 'c2', type: 'function', function: { name: 'getOrder', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"sentAt":"1970-01-01T00:00:00.000Z"}' },
      { role: 'tool', tool_call_id: 'c2', content: 'no JSON' },
    ])
  })

  it('plays a turn with a tool, as docs/models.md shows it', async () => {
    const model = await start({
      reply: ({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? 'It was sent on Monday.'
          : { toolCalls: [{ name: 'getOrder', arguments: { orderId: 'ORD-1' } }] },
    })
    const first = await callModel(model, question, { clock })
    const [called] = first.message.parts.filter((part) => part.type === 'tool-call')
    const { callId, name } = called
    const result = makeMessage('tool', [{ type: 'tool-result', callId, name, output: { type: 'text', value: 'sent' } }])
    const messages = [...question.messages, first.message, result]
    const second = await callModel(model, { ...question, messages }, { clock })
    expect(textOf(second.message)).toBe('It was sent on Monday.')
    expect(server?.requests[1].messages.at(-1)).toEqual({ role: 'tool', tool_call_id: callId, content: 'sent' })
  })

  it('gets every answer through a server that fails a third of the time', async () => {
    const model = await start({
      reply: ({ messages }) => `You said: ${String(messages.at(-1)?.['content'])}. And a few more words.`,
      faults: { seed: 11, rate429: 0.1, rate500: 0.1, dropRate: 0.15 },
    })
    const replies = await Promise.all(
      Array.from({ length: 150 }, (_, i) =>
        callModel(
          model,
          { messages: [makeMessage('user', `number ${i}`)] },
          { clock, retry: { attempts: 12, initialMs: 1, maxMs: 4 } },
        ),
      ),
    )
    replies.forEach(({ message }, i) => expect(textOf(message)).toBe(`You said: number ${i}. And a few more words.`))
    const attempts = replies.reduce((all, reply) => all + reply.attempts, 0)
    expect(server?.counters).toMatchObject({ requests: attempts, answered: 150 })
    expect(attempts).toBeGreaterThan(170)
  })
})
