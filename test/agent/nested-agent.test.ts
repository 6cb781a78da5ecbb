import { agent, agentTool, append, END, graph, last, openHoldfast, send, START, tenantUsage, tool } from 'holdfast'
import type { ModelServerRequest, ScriptedReply } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { serve, store } = setUp()

/** Plays a model by its instructions: what each agent says next, by how much it has heard. */
type Script = Readonly<Record<string, (heard: number, request: ModelServerRequest) => ScriptedReply>>

async function play(script: Script) {
  const asked: string[] = []
  const { model, server } = await serve({
    reply: (request) => {
      const who = String(request.messages[0]?.['content'])
      asked.push(who)
      return script[who]?.(request.messages.length - 1, request) ?? { text: '?' }
    },
  })
  return { model, server, asked }
}

/** A clerk who refunds with approval, and a boss who has the clerk do it. */
async function office(more: Script = {}, clerkOptions: object = {}) {
  const { model, asked } = await play({
    boss: (heard) => (heard === 1 ? calls(['clerk', { request: 'Refund order 7.' }]) : { text: 'It is refunded.' }),
    clerk: (heard) => (heard === 1 ? calls(['find'], ['refund', { id: 7 }]) : { text: 'Refunded 7.' }),
    ...more,
  })
  const done: string[] = []
  const clerk = agent({
    name: 'clerk',
    version: '1.0.0',
    model,
    instructions: 'clerk',
    tools: {
      find: tool({
        inputSchema: z.object({}),
        effect: 'once',
        execute: () => {
          done.push('find')
          return 'found'
        },
      }),
      refund: tool({
        inputSchema: z.object({ id: z.number() }),
        effect: 'once',
        needsApproval: true,
        execute: ({ id }, { idempotencyKey }) => {
          done.push(`refund ${id} ${idempotencyKey.length}`)
          return 'ok'
        },
      }),
    },
    ...clerkOptions,
  })
  const boss = agent({
    name: 'boss',
    version: '1.0.0',
    model,
    instructions: 'boss',
    tools: { clerk: agentTool(clerk, { description: 'Refunds orders.' }) },
  })
  return { boss, clerk, done, asked, model }
}

describe('an agent as a tool of another', () => {
  it('pauses the whole run when its tool asks, and goes on inside with the answer', async () => {
    const { boss, done, asked } = await office()
    const hf = await store()
    const thread = hf.thread(boss, 't')
    const paused = await thread.run({ input: 'Refund order 7, please.' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    expect(paused.pauses).toMatchObject([{ kind: 'approval', question: { tool: 'refund', input: { id: 7 } } }])
    expect(done).toStrictEqual(['find'])
    await hf.inspect('t').answer(paused.pauses[0]?.id ?? '', { approved: true })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'It is refunded.' })
    expect(lines(outcome.state.messages)).toStrictEqual([
      'user: Refund order 7, please.',
      'call clerk {"request":"Refund order 7."}',
      'text clerk Refunded 7.',
      'assistant: It is refunded.',
    ])
    expect(done).toStrictEqual(['find', 'refund 7 32'])
    expect(asked).toStrictEqual(['boss', 'clerk', 'clerk', 'boss'])
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
    // Each of the two spent on its own, and both count for the tenant.
    const { calls: made } = await tenantUsage(hf)
    expect(made).toBe(4)
  })

  it('goes on where it was when the process stops in the middle: nothing on record is done again', async () => {
    const stop = new AbortController()
    const { boss, done, asked } = await office({
      clerk: (heard) => {
        if (heard === 1) return calls(['find'])
        if (!stop.signal.aborted) {
          stop.abort()
          return { text: 'never heard' }
        }
        return { text: 'Found it.' }
      },
    })
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(boss, 't')
    await expect(thread.run({ input: 'Go', signal: stop.signal })).rejects.toMatchObject({ name: 'AbortError' })
    await using _ = hf.worker({ programs: [boss], pollMs: 5, handleSignals: false })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'It is refunded.' })
    expect(done).toStrictEqual(['find'])
    expect(asked).toStrictEqual(['boss', 'clerk', 'clerk', 'clerk', 'boss'])
  })

  it('is asked for first where it needs approval, and not at all after a no', async () => {
    const { clerk, model, asked } = await office()
    const boss = agent({
      name: 'boss',
      version: '1.0.0',
      model,
      instructions: 'boss',
      tools: { clerk: agentTool(clerk, { description: 'Refunds orders.', needsApproval: true }) },
    })
    const thread = (await store()).thread(boss, 't')
    const paused = await thread.run({ input: 'Go' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await thread.answer(paused.pauses[0]?.id ?? '', { approved: false, reason: 'not now' })
    expect(lines((await thread.run()).state.messages)).toContain('denied clerk not now')
    expect(asked).toStrictEqual(['boss', 'boss'])
  })

  it('tells of its limit as an error, with what it had done by then', async () => {
    const { boss } = await office({ clerk: () => calls(['find']) }, { maxTurns: 1 })
    const outcome = await (await store()).thread(boss, 't').run({ input: 'Go' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'It is refunded.' })
    expect(lines(outcome.state.messages)[2]).toBe(
      'error-json clerk {"error":"The run reached its limit of 1 turns.","done":[{"tool":"find","output":{"type":"text","value":"found"}}]}',
    )
  })

  it('leaves what it had done in the conversation when the run is cancelled', async () => {
    const { boss } = await office()
    const thread = (await store()).thread(boss, 't')
    await thread.run({ input: 'Go' })
    await thread.cancel()
    const { messages } = (await thread.state()) ?? { messages: [] }
    expect(lines(messages).at(-1)).toContain('"done":[{"tool":"find"')
  })

  it('takes arguments of its own, and says what it is told for them', async () => {
    const { model } = await play({
      boss: (heard) => (heard === 1 ? calls(['poet', { topic: 'rain', verses: 2 }]) : { text: 'There.' }),
      poet: (_, { messages }) => ({ text: `On ${String(messages[1]?.['content'])}` }),
    })
    const poet = agent({ name: 'poet', version: '1.0.0', model, instructions: 'poet' })
    const boss = agent({
      name: 'boss',
      version: '1.0.0',
      model,
      instructions: 'boss',
      tools: {
        poet: agentTool(poet, {
          description: 'Writes.',
          inputSchema: z.object({ topic: z.string(), verses: z.number() }),
          input: ({ topic, verses }) => `${verses} verses on ${topic}`,
        }),
      },
    })
    const outcome = await (await store()).thread(boss, 't').run({ input: 'Write' })
    expect(lines(outcome.state.messages)).toContain('text poet On 2 verses on rain')
  })

  it('is refused when it is none, or nobody says what it is for', async () => {
    const { clerk } = await office()
    expect(() => agentTool({} as never, { description: 'x' })).toThrow(/not an agent/)
    expect(() => agentTool(clerk, {} as never)).toThrow(/description is missing/)
    expect(() => agentTool(clerk, { description: 'x', inputs: 1 } as never)).toThrow(/Did you mean input/)
  })
})

describe('an agent as a node of a graph', () => {
  it('is told what the graph says, asks through the graph, and gives back what it said', async () => {
    const { clerk, done } = await office()
    const desk = graph({ name: 'desk', version: '1.0.0', state: { order: last<number>(), log: append<string>() } })
      .node('clerk', clerk, {
        input: ({ order }) => `Refund ${order}`,
        output: ({ output, state }) => ({ log: `${output} after ${state.turn} turns` }),
      })
      .edge(START, 'clerk')
      .edge('clerk', END)
    const hf = await store()
    const thread = hf.thread(desk, 't')
    const paused = await thread.run({ input: { order: 7 } })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await thread.answer(paused.pauses[0]?.id ?? '', { approved: true })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { log: ['Refunded 7. after 2 turns'] } })
    expect(done).toStrictEqual(['find', 'refund 7 32'])
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
  })

  it('runs once for each item of a fan-out', async () => {
    const { model } = await play({
      poet: (_, { messages }) => ({ text: `On ${String(messages[1]?.['content'])}` }),
    })
    const poet = agent({ name: 'poet', version: '1.0.0', model, instructions: 'poet', maxTurns: 1 })
    const book = graph({ name: 'book', version: '1.0.0', state: { poems: append<string>() } })
      .node('plan', () => ({}))
      .node('poet', poet, { input: (_, topic) => String(topic), output: ({ output }) => ({ poems: output }) })
      .edge(START, 'plan')
      .branch('plan', () => ['rain', 'sun', 'snow'].map((topic) => send('poet', topic)), ['poet'])
      .edge('poet', END)
    expect(await (await store()).thread(book, 't').run({ input: {} })).toMatchObject({
      state: { poems: ['On rain', 'On sun', 'On snow'] },
    })
  })

  it('is refused without its input and output', async () => {
    const { clerk } = await office()
    const empty = graph({ name: 'g', version: '1.0.0', state: { log: append<string>() } })
    expect(() => empty.node('clerk', clerk, undefined as never)).toThrow(/what its input is/)
  })
})
