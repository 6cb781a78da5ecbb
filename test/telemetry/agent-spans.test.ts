import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { agent, type AgentOptions, openHoldfast, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, collect, FAST, setUp } from '../agent/agent-setup.js'
import { named, setUpOtel, spanOf, tree } from './otel-setup.js'

const { serve } = setUp()
const { sdk, store } = setUpOtel()

async function talk(
  reply: Parameters<typeof serve>[0]['reply'],
  options: Partial<AgentOptions> = {},
  recordContent = false,
) {
  const { model, server } = await serve({ reply })
  const otel = sdk()
  const program = agent({ name: 'support', version: '1.0.0', model, retry: FAST, ...options } as AgentOptions)
  const { tracerProvider, meterProvider } = otel
  const hf = await store({ tracerProvider, meterProvider, recordContent })
  return { hf, otel, server, program, thread: hf.thread(program, { user: 'u-1' }) }
}

function orderTool(
  options: object = {},
  execute: (input: { id: string }) => unknown = ({ id }) => ({ id, state: 'sent' }),
) {
  return tool({
    description: 'Finds an order',
    inputSchema: z.object({ id: z.string() }),
    effect: 'read',
    execute,
    ...options,
  } as never)
}

describe('spans of an agent', () => {
  it('nest by the conventions: agent, model calls, tools, and what a tool does itself', async () => {
    const otelOf: { current?: ReturnType<typeof sdk> } = {}
    const getOrder = orderTool({}, ({ id }) => {
      spanOf(otelOf.current?.tracerProvider as never, 'SELECT orders', () => {})
      return { id }
    })
    const usage = { input: 120, output: 30, cachedInput: 64 }
    const { thread, otel } = await talk(
      [
        { ...(calls(['getOrder', { id: 'ORD-1' }], ['getOrder', { id: 'ORD-2' }]) as object), usage },
        { text: 'Both are on their way.', usage },
      ],
      { tools: { getOrder }, settings: { temperature: 0.5, maxOutputTokens: 500 } },
    )
    otelOf.current = otel
    expect(await thread.run({ input: 'Where are they?' })).toMatchObject({ status: 'completed' })
    const spans = otel.finished()
    expect(tree(spans)).toEqual([
      'invoke_agent support',
      '  chat scripted',
      '  execute_tool getOrder',
      '    SELECT orders',
      '  execute_tool getOrder',
      '    SELECT orders',
      '  chat scripted',
    ])
    const run = named(spans, 'invoke_agent support')
    const place = {
      'holdfast.tenant': 'default',
      'holdfast.thread': '{user=u-1}',
      'holdfast.branch': 'main',
      'holdfast.run': expect.any(String),
      'gen_ai.conversation.id': '{user=u-1}',
      'gen_ai.agent.name': 'support',
    }
    expect(run.kind).toBe(SpanKind.INTERNAL)
    expect(run.attributes).toEqual({
      ...place,
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.version': '1.0.0',
      'holdfast.program': 'support',
      'holdfast.version': '1.0.0',
      'holdfast.attempt': 1,
      'holdfast.resumed': false,
      'holdfast.outcome': 'completed',
    })
    const chat = named(spans, 'chat scripted')
    expect(chat.kind).toBe(SpanKind.CLIENT)
    expect(chat.attributes).toMatchObject({
      ...place,
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'local',
      'gen_ai.request.model': 'scripted',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 500,
      'gen_ai.request.stream': true,
      'gen_ai.response.model': 'scripted',
      'gen_ai.response.finish_reasons': ['tool_calls'],
      'gen_ai.usage.input_tokens': 120,
      'gen_ai.usage.output_tokens': 30,
      'gen_ai.usage.cache_read.input_tokens': 64,
      'holdfast.step': '0:model',
      'holdfast.model.attempts': 1,
    })
    const execution = named(spans, 'execute_tool getOrder')
    expect(execution.attributes).toEqual({
      ...place,
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'getOrder',
      'gen_ai.tool.call.id': expect.any(String),
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': 'Finds an order',
      'holdfast.effect': 'read',
      'holdfast.step': '1:tool getOrder[0]',
      'holdfast.attempt': 1,
    })
    expect(spans.every(({ status }) => status.code === SpanStatusCode.UNSET)).toBe(true)
  })

  it('hold no word of what was said, unless asked to', async () => {
    const reply = () => [calls(['getOrder', { id: 'SECRET-ID' }]), { text: 'SECRET-REPLY' }]
    const getOrder = orderTool({}, () => 'SECRET-RESULT')
    const options = { tools: { getOrder }, instructions: 'SECRET-INSTRUCTIONS' }
    const seen = async (recordContent: boolean) => {
      const { thread, otel } = await talk(reply(), options, recordContent)
      await thread.run({ input: 'SECRET-INPUT' })
      return JSON.stringify(otel.finished().map(({ name, attributes, events }) => ({ name, attributes, events })))
    }
    expect(await seen(false)).not.toContain('SECRET')
    const told = await seen(true)
    for (const word of ['ID', 'REPLY', 'RESULT', 'INSTRUCTIONS', 'INPUT']) expect(told).toContain(`SECRET-${word}`)
    const { thread, otel } = await talk(reply(), options, true)
    await thread.run({ input: 'Where is it?' })
    const [first] = otel.finished().filter(({ name }) => name === 'chat scripted')
    // The conventions' own word, where the AI SDK says tool-calls.
    expect(JSON.parse(String(first?.attributes['gen_ai.output.messages']))).toMatchObject([
      { finish_reason: 'tool_call' },
    ])
    const last = otel.finished().findLast(({ name }) => name === 'chat scripted')
    expect(JSON.parse(String(last?.attributes['gen_ai.input.messages']))).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Where is it?' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: expect.any(String), name: 'getOrder', arguments: { id: 'SECRET-ID' } }],
      },
      {
        role: 'tool',
        parts: [{ type: 'tool_call_response', id: expect.any(String), response: 'SECRET-RESULT' }],
      },
    ])
    expect(JSON.parse(String(last?.attributes['gen_ai.output.messages']))).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'SECRET-REPLY' }], finish_reason: 'stop' },
    ])
  })

  it('tell of attempts that failed, and of a run that did', async () => {
    let tries = 0
    const flaky = orderTool({ retry: { attempts: 2, initialMs: 1 } }, () => {
      if (tries++ === 0) throw new RangeError('no connection')
      return 'found'
    })
    const overloaded = { error: { status: 503, message: 'overloaded' } }
    const { thread, otel } = await talk(
      [overloaded, calls(['flaky', { id: '1' }]), { error: { status: 401, message: 'no such key' } }],
      { tools: { flaky } },
    )
    expect(await thread.run({ input: 'Go.' })).toMatchObject({ status: 'failed' })
    const spans = otel.finished()
    expect(tree(spans)).toEqual([
      'invoke_agent support',
      '  chat scripted',
      '  execute_tool flaky',
      '  execute_tool flaky',
      '  chat scripted',
    ])
    const [first, second] = spans.filter(({ name }) => name === 'execute_tool flaky')
    expect(first).toMatchObject({
      status: { code: SpanStatusCode.ERROR, message: 'no connection' },
      attributes: { 'error.type': 'RangeError', 'holdfast.attempt': 1 },
      events: [{ name: 'exception', attributes: { 'exception.type': 'RangeError' } }],
    })
    expect(second).toMatchObject({ status: { code: SpanStatusCode.UNSET }, attributes: { 'holdfast.attempt': 2 } })
    const [retried, refused] = spans.filter(({ name }) => name === 'chat scripted')
    expect(retried).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { 'holdfast.model.attempts': 2 },
      events: [{ name: 'holdfast.retry' }],
    })
    expect(refused?.status.code).toBe(SpanStatusCode.ERROR)
    expect(refused?.attributes['error.type']).toBe('auth')
    expect(named(spans, 'invoke_agent support')).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'holdfast.outcome': 'failed' },
    })
    const [failed] = await otel.points('holdfast.runs.failed')
    expect(failed).toMatchObject({ value: 1, attributes: { 'holdfast.program': 'support' } })
    expect(await otel.points('holdfast.retries')).toMatchObject([{ value: 2 }])
  })

  it('end when the run pauses, and those of its continuation link to the first', async () => {
    const refund = orderTool({ effect: 'once', needsApproval: true })
    const usage = { input: 100, output: 10 }
    const { thread, otel } = await talk(
      [
        { ...(calls(['refund', { id: '1' }]) as object), usage },
        { text: 'Done.', usage },
      ],
      { tools: { refund } },
    )
    const paused = await thread.run({ input: 'Refund it.' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    const before = otel.finished()
    expect(tree(before)).toEqual(['invoke_agent support', '  chat scripted'])
    const first = named(before, 'invoke_agent support')
    expect(first).toMatchObject({
      status: { code: SpanStatusCode.UNSET },
      attributes: { 'holdfast.outcome': 'paused' },
    })
    await thread.answer(paused.pauses[0]?.id as string, { approved: true })
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    const after = otel.finished().slice(before.length)
    expect(tree(after)).toEqual(['invoke_agent support', '  execute_tool refund', '  chat scripted'])
    const second = named(after, 'invoke_agent support')
    expect(second.attributes).toMatchObject({ 'holdfast.resumed': true, 'holdfast.attempt': 2 })
    expect(second.attributes['holdfast.run']).toBe(first.attributes['holdfast.run'])
    expect(second.links.map(({ context }) => context.spanId)).toEqual([first.spanContext().spanId])
    expect(second.links[0]?.context.traceId).toBe(first.spanContext().traceId)
    expect(await otel.points('holdfast.runs.paused')).toMatchObject([{ value: 1 }])
    expect(await otel.points('holdfast.resume.succeeded')).toMatchObject([{ value: 1 }])
    expect(await otel.points('holdfast.tokens.saved')).toMatchObject([{ value: 110 }])
  })

  it('lie below the span of the caller, also when what is said is streamed', async () => {
    const { thread, otel } = await talk([{ text: 'Hello there.' }])
    let reading: Promise<unknown> = Promise.resolve()
    spanOf(otel.tracerProvider, 'POST /chat', () => {
      reading = collect(thread.stream({ input: 'Hi.' }))
    })
    await reading
    expect(tree(otel.finished())).toEqual(['POST /chat', '  invoke_agent support', '    chat scripted'])
  })

  it('count tokens and time by model, as the conventions say', async () => {
    const usage = { input: 120, output: 30, cachedInput: 64 }
    const { thread, otel, hf } = await talk([{ text: 'Hello.', usage }])
    await thread.run({ input: 'Hi.' })
    const about = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'local',
      'gen_ai.request.model': 'scripted',
    }
    expect(await otel.points('gen_ai.client.token.usage')).toMatchObject([
      { attributes: { ...about, 'gen_ai.token.type': 'input' }, value: { sum: 120, count: 1 } },
      { attributes: { ...about, 'gen_ai.token.type': 'output' }, value: { sum: 30, count: 1 } },
    ])
    const [duration] = await otel.points<{ count: number; buckets: { boundaries: number[] } }>(
      'gen_ai.client.operation.duration',
    )
    expect(duration).toMatchObject({ attributes: about, value: { count: 1 } })
    expect(duration?.value.buckets.boundaries).toHaveLength(14)
    expect(await otel.points('holdfast.tokens.cached')).toMatchObject([{ value: 64, attributes: about }])
    const [figures] = await hf.metrics()
    expect(figures).toMatchObject({
      counters: { 'holdfast.tokens.input': 120, 'holdfast.tokens.output': 30, 'holdfast.tokens.cached': 64 },
      models: { 'local/scripted': { input: 120, output: 30, cached: 64 } },
    })
  })

  it('are not made, and nothing is counted, when telemetry is off', async () => {
    const { model } = await serve({ reply: [{ text: 'Hello.' }] })
    const hf = await openHoldfast('memory:', { telemetry: false })
    const program = agent({ name: 'support', version: '1.0.0', model })
    expect(await hf.thread(program, 't').run({ input: 'Hi.' })).toMatchObject({ status: 'completed' })
    expect(await hf.metrics()).toEqual([])
    await hf.close()
  })
})
