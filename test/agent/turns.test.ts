import { agent, type RunEvent, tenantUsage, tool } from 'holdfast'
import type { StepSettings } from 'holdfast/types'
import type { ScriptedReply } from 'holdfast/testing'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { calls, collect, FAST, lines, modelAt, setUp } from './agent-setup.js'

const { talk, serve, store } = setUp()

const look = tool({ inputSchema: z.object({}), effect: 'read', execute: () => 'seen' })
const usage = { input: 100, output: 10 }

describe('the model calls of an agent', () => {
  it('wait as long as a 429 asks, try again after 500s, and say so in events', async () => {
    const busy: ScriptedReply = { error: { status: 429, headers: { 'retry-after-ms': '40' }, message: 'Slow down.' } }
    const { thread } = await talk([busy, { error: { status: 500 } }, 'Here.'])
    const events = await collect(thread.stream({ input: 'Hello' }))
    const retries = events.flatMap((event) => (event.type === 'retry' ? [event] : []))
    expect(retries).toMatchObject([
      { step: '0:model', attempt: 1, error: { message: 'Slow down.' } },
      { step: '0:model', attempt: 2 },
    ])
    expect(retries[0]?.inMs).toBeGreaterThanOrEqual(40)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'Here.' })
  })

  it('retry a stream that broke half-way as a whole, and mark what it had streamed as superseded', async () => {
    const text = 'It was sent on Monday from Bergen.'
    const { thread, server } = await talk([{ text, drop: { afterChunks: 3 } }, { text }])
    const events = await collect(thread.stream({ input: 'Where?' }))
    const kinds = events.flatMap((event) =>
      event.type === 'token' ? [`token ${event.attempt}`] : event.type === 'superseded' ? ['superseded'] : [],
    )
    const cut = kinds.indexOf('superseded')
    expect(cut).toBeGreaterThan(0)
    expect(kinds.slice(0, cut).every((kind) => kind === 'token 1')).toBe(true)
    expect(kinds.slice(cut + 1).every((kind) => kind === 'token 2')).toBe(true)
    expect(textOf(events, 2)).toBe(text)
    expect(server.counters.requests).toBe(2)
    expect(lines((await thread.state())?.messages ?? [])).toEqual(['user: Where?', `assistant: ${text}`])
  })

  it('stream reasoning and the arguments of tool calls too', async () => {
    const { thread } = await talk(
      [{ reasoning: 'Let me look.', toolCalls: [{ name: 'look', arguments: {} }] }, 'Seen.'],
      { tools: { look } },
    )
    const events = await collect(thread.stream({ input: 'Look' }))
    const kinds = new Set(events.flatMap((event) => (event.type === 'token' ? [event.kind] : [])))
    expect(kinds).toEqual(new Set(['reasoning', 'tool-input', 'text']))
    expect(events).toContainEqual(expect.objectContaining({ kind: 'tool-input', tool: 'look' }))
    expect((await thread.state())?.messages[1]?.parts[0]).toEqual({ type: 'reasoning', text: 'Let me look.' })
  })

  it('fail the run at once on 401, and go on where it was when the thread is run again', async () => {
    const { thread, server } = await talk(
      [calls(['look']), { error: { status: 401, message: 'Bad key.' } }, 'Now it works.'],
      { tools: { look } },
    )
    const failed = await thread.run({ input: 'Look' })
    expect(failed).toMatchObject({
      status: 'failed',
      canResume: true,
      error: { message: expect.stringContaining('Bad key.') },
    })
    expect(server.counters.requests).toBe(2)
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'Now it works.' })
    expect(server.counters.requests).toBe(3)
  })

  it('take other settings, tools, instructions and another model for one turn', async () => {
    const { server, model } = await serve({ reply: [calls(['look']), 'Done.'] })
    const turns: number[] = []
    const second: StepSettings = {
      model: modelAt(server.url, 'large'),
      tools: [],
      instructions: 'Conclude.',
      settings: { temperature: 0 },
    }
    const program = agent({
      name: 'a',
      version: '1.0.0',
      model,
      instructions: () => 'Begin.',
      settings: { temperature: 1, maxOutputTokens: 99 },
      toolChoice: 'required',
      tools: { look },
      prepareStep: ({ turn }) => {
        turns.push(turn)
        return turn === 2 ? second : undefined
      },
    })
    await (await store()).thread(program, 't').run({ input: 'Go' })
    expect(turns).toEqual([1, 2])
    expect(server.requests.map(({ body }) => body)).toMatchObject([
      { model: 'scripted', temperature: 1, max_tokens: 99, tool_choice: 'required', tools: [{}] },
      { model: 'large', temperature: 0, max_tokens: 99 },
    ])
    expect(server.requests.map(({ messages, tools }) => [messages[0]?.['content'], tools.length])).toEqual([
      ['Begin.', 1],
      ['Conclude.', 0],
    ])
  })
})

describe('a run ends', () => {
  const again = () => ({ ...(calls(['look']) as object), usage }) as ScriptedReply

  it.each([
    [{ maxTurns: 3 }, 'limited', 'max-turns', 3],
    [{ budget: { tokens: 200 } }, 'limited', 'token-budget', 2],
    [{ budget: { cost: 0.25 }, prices: { scripted: { input: 1000, output: 0 } } }, 'limited', 'cost-budget', 3],
    [{ isComplete: ({ state }: any) => state.turn === 4 }, 'completed', 'complete', 4],
  ] as const)('with a stated reason: %j', async (options, status, reason, turns) => {
    const { thread, server } = await talk(again, { tools: { look }, ...options })
    const outcome = await thread.run({ input: 'Go' })
    expect(outcome).toMatchObject({ status, ...(status === 'limited' ? { limit: reason } : {}) })
    expect(outcome.state.ended).toMatchObject({ reason, message: expect.any(String) })
    expect(outcome.state.turn).toBe(turns)
    expect(server.counters.requests).toBe(turns)
    // No call is left without its result, so the conversation can go on.
    expect(lines(outcome.state.messages).at(-1)).toBe('text look seen')
  })

  it('when the reply is cut or held back', async () => {
    const { thread } = await talk([
      { text: 'It was', finishReason: 'length' },
      { text: '', finishReason: 'content_filter' },
    ])
    expect((await thread.run({ input: 'One' })).state.ended?.reason).toBe('length')
    expect((await thread.run({ input: 'Two' })).state.ended?.reason).toBe('content-filter')
  })

  it('before the first call, when the budget of the thread is used up', async () => {
    const { thread, server } = await talk([{ text: 'Hi.', usage }], { budget: { tokens: 100, per: 'thread' } })
    await thread.run({ input: 'One' })
    const outcome = await thread.run({ input: 'Two' })
    expect(outcome.state.ended?.reason).toBe('token-budget')
    expect(server.counters.requests).toBe(1)
  })
})

describe('usage and cost', () => {
  it('are kept per step, run, thread and tenant', async () => {
    const { thread, hf, program } = await talk(
      ({ messages }) => (messages.length === 1 ? { ...(calls(['look']) as object), usage } : { text: 'Ok.', usage }),
      { tools: { look }, prices: { scripted: { input: 2, output: 10 } } },
    )
    const events = await collect(thread.stream({ input: 'One' }))
    const steps = events.flatMap((event) => (event.type === 'usage' ? [event] : []))
    expect(steps).toMatchObject([
      { step: '0:model', usage: { input: 100, output: 10, cost: 0.0003, attempts: 1 } },
      { step: '2:model', usage: { input: 100, output: 10, cost: 0.0003 } },
    ])
    const { state } = await thread.run({ input: 'Two' })
    expect(state.runUsage).toMatchObject({ calls: 1, total: 110, cost: 0.0003 })
    expect(state.usage).toMatchObject({ calls: 3, total: 330, unpriced: 0 })
    expect(state.usage.cost).toBeCloseTo(0.0009, 10)
    await hf.thread(program, 'another').run({ input: 'Hello' })
    expect(await tenantUsage(hf)).toMatchObject({ calls: 5, total: 550 })
    expect(await tenantUsage(hf.tenant('globex'))).toMatchObject({ calls: 0, total: 0, cost: 0 })
    await hf.erase('another')
    expect(await tenantUsage(hf)).toMatchObject({ calls: 5 })
  })

  it('of a resumed run: memory is refreshed before its next turn, and what was not spent again is counted', async () => {
    const approve = tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'done' })
    const resumed: unknown[] = []
    const { thread, server } = await talk(
      ({ messages }) =>
        messages.at(-1)?.role === 'tool' ? { text: 'Done.', usage } : { ...(calls(['approve']) as object), usage },
      {
        tools: { approve },
        onResume: ({ context, state }) => {
          resumed.push([context, state.turn])
          return { weather: 'rain' }
        },
      },
    )
    const paused = await thread.run({ input: 'Go', context: { hour: 9 } })
    if (paused.status !== 'paused') throw new Error(paused.status)
    expect(resumed).toEqual([])
    await thread.answer(paused.pauses[0]?.id ?? '', { approved: true })
    const { state } = await thread.run({ context: { hour: 17 } })
    expect(resumed).toEqual([[{ hour: 17 }, 1]])
    expect(state.memory).toEqual({ weather: 'rain' })
    expect(state.resumes).toEqual({ count: 1, tokensSaved: 110 })
    expect(JSON.stringify(server.requests[1]?.messages)).toContain('weather: rain')
    // A new run of the same thread is none that was resumed.
    const next = await thread.run({ input: 'Again' })
    expect(next.state.resumes.count).toBe(1)
    expect(resumed).toHaveLength(1)
  })
})

describe('a run that is stopped in the middle of a model call', () => {
  it('goes on there, with its memory refreshed and nothing asked twice', async () => {
    let ran = 0
    const count = tool({ inputSchema: z.object({}), execute: () => ++ran })
    let hang = true
    const { thread, server } = await talk(
      ({ messages }) => {
        if (messages.at(-1)?.role !== 'tool') return { ...(calls(['count']) as object), usage }
        return hang ? { hang: { afterChunks: 2 }, text: 'Not to be heard.' } : { text: 'Done.', usage }
      },
      { tools: { count }, onResume: ({ context }) => ({ back: context as string }) },
    )
    const stream = thread.stream({ input: 'Go' })
    for await (const event of stream) {
      if (event.type !== 'token' || event.kind !== 'text') continue
      stream.abort()
      break
    }
    await expect(stream.outcome).rejects.toThrow('stopped')
    hang = false
    const outcome = await thread.run({ context: 'later' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Done.' })
    expect(outcome.state.resumes).toEqual({ count: 1, tokensSaved: 110 })
    expect(outcome.state.memory).toEqual({ back: 'later' })
    expect(outcome.state.usage.calls).toBe(2)
    expect(server.counters.requests).toBe(3)
    expect(ran).toBe(1)
  })

  it('is taken up by a worker too', async () => {
    const { thread, hf, program } = await talk([calls(['look']), 'Done.'], { tools: { look } })
    const stream = thread.stream({ input: 'Go' })
    for await (const event of stream) {
      if (event.type !== 'step') continue
      stream.abort()
      break
    }
    await expect(stream.outcome).rejects.toThrow('stopped')
    const worker = hf.worker({ programs: [program], pollMs: 20, handleSignals: false })
    try {
      // What a worker's run comes to is the same as `run` returns: what the agent said, not its state.
      const outcome = await thread.waitFor({ timeoutMs: 20_000 })
      expect(outcome).toMatchObject({ status: 'completed', output: 'Done.' })
      if (outcome.status === 'completed') expectTypeOf(outcome.output).toEqualTypeOf<string>()
    } finally {
      await worker.stop()
    }
  })
})

describe('an agent with few writes', () => {
  it('writes only at the ends of a run', async () => {
    const { model } = await serve({ reply: [calls(['look']), calls(['look']), 'Done.'] })
    const options = { name: 'a', version: '1.0.0', model, tools: { look }, retry: FAST, frequency: 'boundary' } as const
    const hf = await store()
    const outcome = await hf.thread(agent(options), 't').run({ input: 'Go' })
    expect(outcome.status).toBe('completed')
    expect((await hf.log('t')).fold.seq).toBeLessThanOrEqual(2)
  })

  it('keeps nothing at all when it is asked for a single answer', async () => {
    const { thread, hf } = await talk([calls(['look']), 'Done.'], { tools: { look } })
    const outcome = await thread.run({ input: 'Go', frequency: 'none' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Done.', checkpoint: undefined })
    expect((await hf.threads()).threads).toEqual([])
  })
})

function textOf(events: readonly RunEvent[], attempt: number): string {
  return events
    .flatMap((e) => (e.type === 'token' && e.kind === 'text' && e.attempt === attempt ? [e.text] : []))
    .join('')
}
