import { agent, append, merge, tool } from 'holdfast'
import { fromAiSdkMessages } from 'holdfast/messages'
import type { ModelServer } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, modelAt, setUp } from './agent-setup.js'

const { talk, serve, store } = setUp()

/** A tool that moves money, and what it moved. */
function makeTransfer() {
  const moved: unknown[] = []
  const transfer = tool({
    inputSchema: z.object({ amount: z.number().optional() }),
    effect: 'once',
    execute: (input) => {
      moved.push(input)
      return { moved: input.amount ?? 'everything' }
    },
  })
  return { transfer, moved }
}

/** The calls of the first reply, as the second request sends them back. */
function callsSent({ requests }: ModelServer) {
  const sent = (requests[1]?.messages[1]?.['tool_calls'] ?? []) as { function: { name: string; arguments: string } }[]
  return sent.map((call) => call.function)
}

describe('a reply that calls tools', () => {
  it('and was cut before any argument came is no call without arguments', async () => {
    const { transfer, moved } = makeTransfer()
    const cut = { toolCalls: [{ name: 'transfer', arguments: '' }], finishReason: 'length' }
    const { thread } = await talk([cut, 'I will be shorter.'], { tools: { transfer } })
    const { state } = await thread.run({ input: 'Send 5 to Ada' })
    expect(moved).toEqual([])
    expect(lines(state.messages)[2]).toMatch(/^error transfer .*cut off.*nothing was done/s)
  })

  it('runs the calls that were whole when it was cut, and says of the other that it was cut off', async () => {
    const { transfer, moved } = makeTransfer()
    const toolCalls = [
      { name: 'transfer', arguments: { amount: 1 } },
      { name: 'transfer', arguments: '{"amou' },
    ]
    const { thread } = await talk([{ toolCalls, finishReason: 'length' }, 'One of two.'], { tools: { transfer } })
    const { state } = await thread.run({ input: 'Send 1, then 2' })
    expect(moved).toEqual([{ amount: 1 }])
    expect(lines(state.messages).filter((line) => line.startsWith('error'))[0]).toMatch(/cut off/)
  })

  it('makes a call once that is there twice, word for word and with the same id (of a stream the provider gives new ids)', async () => {
    const { transfer, moved } = makeTransfer()
    const call = { id: 'call-1', name: 'transfer', arguments: { amount: 5 } }
    const { thread, server } = await talk([{ toolCalls: [call, call] }, 'Done.'], {
      tools: { transfer },
      stream: false,
    })
    await thread.run({ input: 'Send 5 to Ada' })
    expect(moved).toEqual([{ amount: 5 }])
    expect(server.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
  })

  it('makes both calls that share an id but not their arguments, under ids of their own', async () => {
    const { transfer, moved } = makeTransfer()
    const toolCalls = [5, 6].map((amount) => ({ id: 'transfer', name: 'transfer', arguments: { amount } }))
    const { thread, server } = await talk([{ toolCalls }, 'Done.'], { tools: { transfer } })
    await thread.run({ input: 'Send 5 and 6' })
    expect(moved).toHaveLength(2)
    expect(moved).toEqual(expect.arrayContaining([{ amount: 5 }, { amount: 6 }]))
    const [, , first, second] = server.requests[1]?.messages ?? []
    expect(first?.['tool_call_id']).toBe('transfer')
    expect(second?.['tool_call_id']).not.toBe('transfer')
  })

  it('may use the ids of earlier turns again, also after a run that was cancelled', async () => {
    const { transfer } = makeTransfer()
    const guarded = tool({ ...transfer, needsApproval: ({ amount }) => (amount ?? 0) > 10 })
    const same = (amount: number) => ({ toolCalls: [{ id: 'call_0', name: 'transfer', arguments: { amount } }] })
    const { thread, server } = await talk([same(1), 'One.', same(50), same(2), 'Two.'], {
      tools: { transfer: guarded },
    })
    await thread.run({ input: 'Send 1' })
    await thread.run({ input: 'Send 50' })
    await thread.cancel()
    await thread.run({ input: 'Only 2, then' })
    const seen = server.requests.at(-1)?.messages ?? []
    expect(seen.map(({ role }) => role).join(' ')).toBe(
      'user assistant tool assistant user assistant tool user assistant tool',
    )
    expect(String(seen[6]?.['content'])).toMatch(/The call was not made/)
  })

  it('is sent back with an object of arguments, whatever JSON the model wrote: some providers take nothing else', async () => {
    const { transfer, moved } = makeTransfer()
    const toolCalls = ['5', '"all"', '[1]', 'null'].map((text) => ({ name: 'transfer', arguments: text }))
    const { thread, server } = await talk([{ toolCalls }, 'Done.'], { tools: { transfer } })
    const { state } = await thread.run({ input: 'Go' })
    const sent = callsSent(server).map((call) => call.arguments)
    expect(sent).toEqual(['{}', '{}', '{}', '{}'])
    expect(lines(state.messages).slice(1, 5)).toEqual([5, '"all"', '[1]', null].map((raw) => `call transfer ${raw}`))
    expect(lines(state.messages)[5]).toMatch(/^error transfer .*not a JSON object, so nothing was done. They began: 5/)
    // Null is how some servers write that there are none.
    expect(moved).toEqual([{}])
  })

  it('is sent back with a name that providers accept, also if the model made one up', async () => {
    const { transfer } = makeTransfer()
    const { thread, server } = await talk([calls(['multi_tool_use.parallel', {}], ['', {}]), 'Sorry.'], {
      tools: { transfer },
      stream: false,
    })
    const { state } = await thread.run({ input: 'Go' })
    const names = callsSent(server).map((call) => call.name)
    expect(names).toHaveLength(2)
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(lines(state.messages).join('\n')).toContain('There is no tool named "multi_tool_use.parallel"')
  })
})

describe('a reply without a word', () => {
  it('is no repetition of what was said in the run before', async () => {
    const { thread } = await talk(['Your card was charged.', ''])
    await thread.run({ input: 'Charge it' })
    const outcome = await thread.run({ input: 'Anything else?' })
    expect(outcome).toMatchObject({ status: 'completed', output: '' })
  })
})

describe('a tool', () => {
  it('may change the state in several steps, of which none is lost', async () => {
    const note = tool({
      inputSchema: z.object({}),
      effect: 'read',
      execute: (_input, { update }) => {
        update({ memory: { a: 1 }, log: 'first', seen: { x: 1 } })
        update({ memory: { b: 2 }, log: ['second', 'third'], seen: { y: 2 } })
        return 'noted'
      },
    })
    const { model } = await serve({ reply: [calls(['note']), 'Done.'] })
    const state = { log: append<string>(), seen: merge<Record<string, number>>(undefined, { initial: () => ({}) }) }
    const program = agent({ name: 'support', version: '1.0.0', model, state, tools: { note } })
    const outcome = await (await store()).thread(program, 't').run({ input: 'Go' })
    expect(outcome.state).toMatchObject({
      memory: { a: 1, b: 2 },
      log: ['first', 'second', 'third'],
      seen: { x: 1, y: 2 },
    })
  })

  it('that shows the model no output there is fails with a reason, and the conversation goes on', async () => {
    const shown = (output: unknown) =>
      tool({ inputSchema: z.object({}), effect: 'read', execute: () => 1, toModelOutput: () => output as never })
    const tools = {
      odd: shown({ type: 'html', value: '<p>' }),
      none: shown(undefined),
      // The AI SDK's words for the same things.
      theirs: shown({ type: 'error-text', value: 'sold out' }),
    }
    const { thread } = await talk([calls(['odd'], ['none'], ['theirs']), 'Done.'], { tools })
    const outcome = await thread.run({ input: 'Go' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Done.' })
    const said = lines(outcome.state.messages)
    expect(said[4]).toMatch(/^error odd .*toModelOutput.*"html"/s)
    expect(said[5]).toMatch(/^error none .*toModelOutput/s)
    expect(said[6]).toBe('error theirs sold out')
  })

  it('shows the model what is in errors, maps and sets', async () => {
    const result = { failed: new TypeError('no stock'), left: new Map([['blue', 3]]), sizes: new Set([40, 41]) }
    const look = tool({ inputSchema: z.object({}), effect: 'read', execute: () => result })
    const { thread } = await talk([calls(['look']), 'Seen.'], { tools: { look } })
    expect(lines((await thread.run({ input: 'Look' })).state.messages)[2]).toBe(
      'json look {"failed":{"name":"TypeError","message":"no stock"},"left":{"blue":3},"sizes":[40,41]}',
    )
  })

  it('whose result holds itself, as replies of HTTP clients do, is shown without the circle', async () => {
    const look = tool({
      inputSchema: z.object({}),
      effect: 'read',
      execute: () => {
        const response: Record<string, unknown> = { status: 200 }
        const request: Record<string, unknown> = { response, also: response, agent: {} }
        Object.assign(request['agent'] as object, { request, response })
        return Object.assign(response, { request, config: request })
      },
    })
    const { thread } = await talk([calls(['look']), 'Seen.'], { tools: { look } })
    const outcome = await thread.run({ input: 'Look' })
    expect(outcome.status).toBe('completed')
    expect(lines(outcome.state.messages)[2]).toBe(
      'json look {"status":200,"request":{"agent":{}},"config":{"agent":{}}}',
    )
  })
})

describe('usage', () => {
  it('that a server reports as nothing is estimated: no prompt is empty', async () => {
    const { thread } = await talk([{ text: 'Good morning!', usage: { input: 0, output: 0 } }])
    const { state } = await thread.run({ input: 'Hello' })
    expect(state.usage.input).toBeGreaterThan(0)
    expect(state.usage.basis).not.toBe('provider')
  })
})

describe('an image of the ai package', () => {
  it('keeps the media type that its address names', () => {
    const image = 'data:image/png;base64,iVBORw0KGgo='
    const [message] = fromAiSdkMessages([{ role: 'user', content: [{ type: 'image', image }] }])
    expect(message?.parts[0]).toMatchObject({ type: 'file', mediaType: 'image/png' })
  })
})

describe('a budget in money', () => {
  it('wants to know what the model costs that writes the summaries', async () => {
    const { model, server } = await serve({ reply: [] })
    const make = () =>
      agent({
        name: 'support',
        version: '1.0.0',
        model,
        budget: { cost: 1 },
        prices: { scripted: { input: 1, output: 1 } },
        compaction: { window: 4000, model: modelAt(server.url, 'writer') },
      })
    expect(make).toThrow(/local\.chat\/writer/)
  })
})
