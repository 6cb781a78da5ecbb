import { agent, type LanguageModel, type RunEvent, tool } from 'holdfast'
import { MockLanguageModelV3 } from 'ai/test'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, collect, setUp } from './agent-setup.js'

const { talk, store } = setUp()

type Of<Type extends RunEvent['type']> = Extract<RunEvent, { readonly type: Type }>

function of<Type extends RunEvent['type']>(events: readonly RunEvent[], type: Type): Of<Type>[] {
  return events.filter((event): event is Of<Type> => event.type === type)
}

describe('tool calls and their results', () => {
  it('are events of the stream, with the ids that the messages have', async () => {
    const find = tool({
      inputSchema: z.object({ id: z.string() }),
      effect: 'read',
      execute: ({ id }) => ({ found: id }),
    })
    const both = calls(['find', { id: 'a' }], ['find', { id: 7 }], ['find', { id: 'b' }])
    const { thread } = await talk([both, 'Both.'], { tools: { find } })
    const stream = thread.stream({ input: 'Find them' })
    const events = await collect(stream)
    const { messages } = (await stream.outcome).state
    const parts = messages.flatMap(({ id, parts: all }) => all.map((part) => ({ message: id, ...part })))
    const made = parts.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
    const results = parts.flatMap((part) => (part.type === 'tool-result' ? [part] : []))
    expect(
      of(events, 'tool-call').map(({ message, callId, tool: name, input }) => [message, callId, name, input]),
    ).toEqual(made.map(({ message, callId, name, input }) => [message, callId, name, input]))
    const told = of(events, 'tool-result').map(({ message, callId, tool: name, output }) => [
      message,
      callId,
      name,
      output,
    ])
    expect(told).toHaveLength(3)
    expect(told).toEqual(
      expect.arrayContaining(results.map(({ message, callId, name, output }) => [message, callId, name, output])),
    )
    // Streamed text is of the message that it becomes.
    expect(new Set(of(events, 'token').map(({ message }) => message))).toEqual(
      new Set(messages.filter(({ role }) => role === 'assistant').map(({ id }) => id)),
    )
  })

  it('are told once they are recorded, also when a person decided, and not again by who resumes', async () => {
    const pay = tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' })
    const look = tool({ inputSchema: z.object({}), effect: 'read', execute: () => 'seen' })
    const { thread } = await talk([calls(['pay'], ['look']), 'Done.'], { tools: { pay, look } })
    const first = await collect(thread.stream({ input: 'Pay' }))
    expect(of(first, 'tool-call').map(({ tool: name }) => name)).toEqual(['pay', 'look'])
    expect(of(first, 'tool-result').map(({ tool: name }) => name)).toEqual(['look'])
    const at = first.findIndex(({ type }) => type === 'tool-call')
    expect(first.slice(0, at).some((event) => event.type === 'step' && event.status === 'completed')).toBe(true)
    await thread.answer((await thread.pauses())[0]?.id as string, { approved: false, reason: 'No.' })
    const second = await collect(thread.stream({}))
    expect(of(second, 'tool-call')).toEqual([])
    expect(of(second, 'tool-result')).toMatchObject([{ tool: 'pay', output: { type: 'denied', reason: 'No.' } }])
  })
})

describe('a model that can only give whole replies', () => {
  const reply = {
    content: [{ type: 'text' as const, text: 'Whole.' }],
    finishReason: { unified: 'stop' as const, raw: undefined },
    usage: {
      inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 1, text: undefined, reasoning: undefined },
    },
    warnings: [],
  }

  it.each<[string, () => LanguageModel]>([
    ['a mock of the AI SDK', () => new MockLanguageModelV3({ doGenerate: async () => reply })],
    [
      'one without doStream',
      () => ({ specificationVersion: 'v3', provider: 'mock', modelId: 'mock', doGenerate: async () => reply }),
    ],
  ])('is asked for them: %s', async (_, make) => {
    const hf = await store()
    const program = agent({ name: 'support', version: '1.0.0', model: make() })
    const stream = hf.thread(program, 'thread-1').stream({ input: 'Hello' })
    const events = await collect(stream)
    expect(await stream.outcome).toMatchObject({ status: 'completed', output: 'Whole.' })
    expect(of(events, 'token')).toMatchObject([{ kind: 'text', text: 'Whole.' }])
  })

  it('is refused by name where only streams are there and none is wanted', async () => {
    const hf = await store()
    const { doGenerate: _, ...model } = {
      specificationVersion: 'v3',
      provider: 'mock',
      modelId: 'mock',
      doGenerate: undefined,
      doStream: async () => ({}),
    }
    const program = agent({ name: 'support', version: '1.0.0', model, stream: false })
    expect(await hf.thread(program, 'thread-1').run({ input: 'Hello' })).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('the model has no doGenerate') },
    })
  })
})
