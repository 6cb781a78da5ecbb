import { agent, last, NotExecutedError, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, collect, lines, setUp } from './agent-setup.js'

const { talk, serve, store } = setUp()

const orderId = z.object({ orderId: z.string() })
const getOrder = tool({ inputSchema: orderId, effect: 'read', execute: ({ orderId }) => ({ orderId, status: 'sent' }) })

describe('an agent', () => {
  it('answers, and its outcome has the text and the conversation', async () => {
    const { thread, server, hf } = await talk(['Good morning!'], { instructions: 'Be kind.' })
    const outcome = await thread.run({ input: 'Hello' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Good morning!' })
    expect(outcome.state).toMatchObject({ turn: 1, ended: { reason: 'finished' }, usage: { calls: 1 } })
    expect(lines(outcome.state.messages)).toEqual(['user: Hello', 'assistant: Good morning!'])
    expect(server.requests[0]?.messages).toMatchObject([
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hello' },
    ])
    expect(await hf.threads()).toMatchObject({ threads: [{ status: 'completed' }] })
  })

  it('continues the conversation with each further input, and sends it all', async () => {
    const { thread, server } = await talk(({ messages }) => `reply ${messages.length}`)
    await thread.run({ input: 'one' })
    await thread.run({ input: 'two' })
    const { state } = await thread.run({ input: 'three' })
    expect(lines(state.messages).filter((line) => line.startsWith('assistant'))).toEqual([
      'assistant: reply 1',
      'assistant: reply 3',
      'assistant: reply 5',
    ])
    expect(server.requests.at(-1)?.messages).toHaveLength(5)
    expect(state).toMatchObject({ turn: 1, usage: { calls: 3 }, runUsage: { calls: 1 } })
  })

  it('runs parallel calls side by side, each recorded, and puts their results in the order of the calls', async () => {
    const begun: string[] = []
    let release = () => {}
    const both = new Promise<void>((resolve) => {
      release = resolve
    })
    const look = tool({
      inputSchema: orderId,
      effect: 'read',
      execute: async ({ orderId }) => {
        begun.push(orderId)
        if (begun.length === 2) release()
        // Ends only if the other has begun too, and the first call ends last.
        await both
        if (orderId === 'A') await new Promise((resolve) => setTimeout(resolve, 20))
        return orderId
      },
    })
    const { thread, hf } = await talk([calls(['look', { orderId: 'A' }], ['look', { orderId: 'B' }]), 'Both there.'], {
      tools: { look },
    })
    const events = await collect(thread.stream({ input: 'Where are they?' }))
    const done = events.flatMap((event) => (event.type === 'step' ? [event.step] : []))
    expect(done).toEqual(['0:model', '1:tool look[1]', '1:tool look[0]', '2:model'])
    expect(lines((await thread.state())?.messages ?? [])).toEqual([
      'user: Where are they?',
      'call look {"orderId":"A"}',
      'call look {"orderId":"B"}',
      'text look A',
      'text look B',
      'assistant: Both there.',
    ])
    // Claim with input, model, the first tool to land, the second with the closing, model with the end and release.
    expect((await hf.log('thread-1')).fold.seq).toBe(4)
  })

  it('shows as waiting_tool while tools run, and as active while the model is asked', async () => {
    const seen: string[] = []
    const status = async () => (await hf.threads()).threads[0]?.status ?? ''
    const slow = tool({
      inputSchema: z.object({}),
      effect: 'read',
      execute: async () => void seen.push(await status()),
    })
    const { thread, hf } = await talk(
      async ({ messages }) => {
        seen.push(await status())
        return messages.at(-1)?.role === 'tool' ? 'Done.' : calls(['slow'])
      },
      { tools: { slow } },
    )
    await thread.run({ input: 'Go' })
    expect(seen).toEqual(['active', 'waiting_tool', 'active'])
  })

  it('tells the model about arguments that do not parse or fit, and about tools that do not exist', async () => {
    let ran = 0
    const look = tool({ inputSchema: orderId, effect: 'once', execute: () => ++ran })
    const bad = { toolCalls: [{ name: 'look', arguments: '{"orderId": ' }] }
    const { thread } = await talk(
      [bad, calls(['look', { orderId: 7 }], ['fly', {}]), calls(['look', { orderId: 'A' }]), 'Found.'],
      { tools: { look } },
    )
    const { state } = await thread.run({ input: 'Look' })
    const said = lines(state.messages)
    expect(said[2]).toMatch(/^error look The arguments of look are not a JSON object, so nothing was done/)
    expect(said[5]).toMatch(/^error look The arguments of look do not fit, so nothing was done:\n- orderId: /)
    expect(said[6]).toMatch(/^error fly There is no tool named "fly". The tools are: look\./)
    expect(said.slice(7)).toEqual(['call look {"orderId":"A"}', 'json look 1', 'assistant: Found.'])
    expect(ran).toBe(1)
  })

  it('shows the model the error of a tool that only reads, and of one that did nothing', async () => {
    const broken = tool({
      inputSchema: z.object({}),
      effect: 'read',
      execute: () => Promise.reject(new Error('The catalogue is down.')),
    })
    const refused = tool({
      inputSchema: z.object({}),
      effect: 'once',
      execute: () => {
        throw new NotExecutedError('The card was declined.')
      },
    })
    const { thread } = await talk([calls(['broken'], ['refused']), 'Sorry.'], { tools: { broken, refused } })
    const outcome = await thread.run({ input: 'Pay' })
    expect(outcome.status).toBe('completed')
    expect(lines(outcome.state.messages).slice(3, 5)).toEqual([
      'error broken The catalogue is down.',
      'error refused The card was declined. Nothing was done: correct the cause and call it again.',
    ])
  })

  it('shows the model that a tool which hangs took too long', async () => {
    const hang = tool({
      inputSchema: z.object({}),
      effect: 'read',
      timeoutMs: 30,
      execute: () => new Promise(() => {}),
    })
    const { thread } = await talk([calls(['hang']), 'It takes too long.'], { tools: { hang } })
    const { state } = await thread.run({ input: 'Go' })
    expect(lines(state.messages)[2]).toMatch(/^error hang .*took longer than 30 ms/)
  })

  it('asks a person before the model hears of a failure that may have happened after all', async () => {
    let charged = 0
    const charge = tool({
      inputSchema: z.object({ amount: z.number() }),
      execute: () => {
        charged++
        throw new Error('socket hang up')
      },
    })
    const { thread, server, hf } = await talk(
      [calls(['charge', { amount: 5 }]), 'Paid.', calls(['charge', { amount: 6 }]), 'Not paid.'],
      { tools: { charge } },
    )
    const first = await thread.run({ input: 'Pay 5' })
    if (first.status !== 'paused') throw new Error(first.status)
    expect(first.pauses).toMatchObject([{ kind: 'unknown-effect', question: { error: 'socket hang up' } }])
    expect(await hf.threads()).toMatchObject({ threads: [{ status: 'waiting_human' }] })
    expect(server.counters.requests).toBe(1)
    await thread.answer(first.pauses[0]?.id ?? '', { outcome: 'succeeded', result: { receipt: 'R-1' } })
    const second = await thread.run()
    expect(second).toMatchObject({ status: 'completed', output: 'Paid.' })
    expect(lines(second.state.messages)).toContain('json charge {"receipt":"R-1"}')

    const third = await thread.run({ input: 'Pay 6' })
    if (third.status !== 'paused') throw new Error(third.status)
    await thread.answer(third.pauses[0]?.id ?? '', { outcome: 'failed', message: 'The bank says no.' })
    const fourth = await thread.run()
    expect(fourth).toMatchObject({ status: 'completed', output: 'Not paid.' })
    expect(lines(fourth.state.messages)).toContain('error charge The bank says no.')
    expect(charged).toBe(2)
  })

  it('repeats an idempotent tool with the same key, and asks the other side where it can', async () => {
    const keys: string[] = []
    const send = tool({
      inputSchema: z.object({ to: z.string() }),
      effect: 'idempotent',
      retry: { attempts: 3, initialMs: 1 },
      execute: (_input, { idempotencyKey }) => {
        keys.push(idempotencyKey)
        if (keys.length < 3) throw new Error('ECONNRESET')
        return 'sent'
      },
    })
    const asked: unknown[] = []
    const book = tool({
      inputSchema: z.object({ room: z.number() }),
      effect: 'reconcilable',
      idempotencyKey: ({ room }) => `room-${room}`,
      reconcile: (key, input) => {
        asked.push([key, input])
        return { outcome: 'executed', result: { booked: true } }
      },
      execute: () => Promise.reject(new Error('timeout')),
    })
    const { thread } = await talk([calls(['send', { to: 'a' }], ['book', { room: 7 }]), 'Both done.'], {
      tools: { send, book },
    })
    const { state, status } = await thread.run({ input: 'Go' })
    expect(status).toBe('completed')
    expect(new Set(keys).size).toBe(1)
    expect(keys).toHaveLength(3)
    expect(asked).toEqual([['room-7', { room: 7 }]])
    expect(lines(state.messages)).toContain('json book {"booked":true}')
  })

  it('asks a person where the arguments of a call that may have happened do not fit any more', async () => {
    let charged = 0
    let begun = () => {}
    const charging = new Promise<void>((resolve) => {
      begun = resolve
    })
    const charge = (amount: z.ZodNumber) =>
      tool({
        inputSchema: z.object({ amount }),
        effect: 'reconcilable',
        execute: (_, { abortSignal: signal }) => {
          charged++
          begun()
          return new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
        reconcile: () => ({ outcome: 'executed', result: 'paid' }),
      })
    const { thread, hf, model, server } = await talk([calls(['charge', { amount: 80 }]), 'Done.'], {
      tools: { charge: charge(z.number()) },
    })
    const stopped = thread.stream({ input: 'Pay' })
    await charging
    stopped.abort()
    await stopped.outcome.catch(() => {})
    const stricter = agent({ name: 'support', version: '1.0.1', model, tools: { charge: charge(z.number().max(50)) } })
    const outcome = await hf.thread(stricter, 'thread-1').run()
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect([charged, server.counters.requests]).toEqual([1, 1])
  })

  it('hands a tool without execute to the caller of the run', async () => {
    const locate = tool({ inputSchema: z.object({}) })
    const { thread } = await talk([calls(['locate']), 'You are in Oslo.'], { tools: { locate } })
    const paused = await thread.run({ input: 'Where am I?' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    expect(paused.pauses).toMatchObject([{ kind: 'question', question: { tool: 'locate', input: {} } }])
    await thread.answer(paused.pauses[0]?.id ?? '', { result: 'Oslo' })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ output: 'You are in Oslo.' })
    expect(lines(outcome.state.messages)).toContain('text locate Oslo')
  })

  it('lets tools read and change the declared state and the memory, with the record of the call', async () => {
    const remember = tool({
      inputSchema: z.object({ name: z.string() }),
      effect: 'read',
      execute: ({ name }, { update, state }) => {
        update({ customer: name, memory: { tone: 'formal' } })
        return `was ${String(state['customer'])}`
      },
    })
    const { model, server } = await serve({ reply: [calls(['remember', { name: 'Ada' }]), 'Hello Ada.'] })
    const program = agent({
      name: 'support',
      version: '1.0.0',
      model,
      state: { customer: last<string>(undefined, { initial: 'nobody' }) },
      tools: { remember },
    })
    const { state } = await (await store()).thread(program, 't').run({ input: 'I am Ada' })
    expect(state.customer).toBe('Ada')
    expect(state.memory).toEqual({ tone: 'formal' })
    expect(lines(state.messages)).toContain('text remember was nobody')
    expect(server.requests[1]?.messages[0]).toMatchObject({ role: 'system', content: 'What you know:\n- tone: formal' })
  })

  it('records the versions of tools with each call and in the state', async () => {
    const v = tool({ ...getOrder, version: '2.1' })
    const { thread } = await talk([calls(['getOrder', { orderId: 'A' }]), 'Sent.'], { tools: { getOrder: v } })
    const { state } = await thread.run({ input: 'Where?' })
    expect(state.toolVersions).toEqual({ getOrder: '2.1' })
    expect(state.messages[1]?.parts[0]).toMatchObject({ type: 'tool-call', version: '2.1' })
  })

  it('refuses a declaration that could only fail later', async () => {
    const { model } = await serve({ reply: [] })
    const make = (options: object) => () => agent({ name: 'a', version: '1.0.0', model, ...options })
    expect(make({ state: { messages: last() } })).toThrow(/has a key "messages" of its own/)
    expect(make({ maxTurns: 0 })).toThrow(/maxTurns/)
    expect(make({ budget: { cost: 1 } })).toThrow(/without prices/)
    expect(make({ model: 'gpt-4o' })).toThrow(/not a language model|is the text/)
    expect(make({ version: 'one' })).toThrow(/version/)
    expect(make({ tools: { 'bad name': getOrder } })).toThrow(/providers refuse/)
    expect(make({ compaction: { window: 4000, at: 0.2 } })).toThrow(/compaction.keep/)
  })

  it('gives the model an answer for calls that a cancelled run left open', async () => {
    const approve = tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'done' })
    const { thread, server } = await talk([calls(['approve']), 'All right.'], { tools: { approve } })
    await thread.run({ input: 'Do it' })
    await thread.cancel()
    expect(await thread.run({ input: 'Never mind' })).toMatchObject({ output: 'All right.' })
    expect(server.requests[1]?.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant' },
      { role: 'tool', content: expect.stringContaining('The call was not made') },
      { role: 'user', content: 'Never mind' },
    ])
  })
})
