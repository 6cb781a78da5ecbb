import { type Message, tool } from 'holdfast'
import { estimateTokens, makeMessage } from 'holdfast/messages'
import { safeCuts } from '#src/agent/messages/compaction.js'
import type { ModelServerRequest } from 'holdfast/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { randomly, rounds } from '../support/scale.js'
import { calls, callsIn, collect, lines, resultsIn, setUp } from './agent-setup.js'

const { talk } = setUp()

const WINDOW = 4000
const search = tool({
  inputSchema: z.object({ query: z.string() }),
  effect: 'read',
  execute: ({ query }) => ({ query, found: `${query} in blue, red and green, sizes 36 to 45. `.repeat(6) }),
})

const isSummary = ({ messages }: ModelServerRequest) => String(messages[0]?.['content']).includes('keep the memory')

/** What a provider would refuse: results without calls, and calls without results. */
function orphans({ messages }: ModelServerRequest): string[] {
  const open = new Set<string>()
  const found: string[] = []
  for (const { role, tool_calls: made = [], tool_call_id: answers } of messages as readonly any[]) {
    if (role === 'tool' && !open.delete(answers)) found.push(`result ${answers}`)
    if (role === 'user') found.push(...[...open].map((id) => `call ${id}`))
    for (const { id } of made) open.add(id)
  }
  return found
}

describe('compaction', () => {
  it('keeps 200 turns inside a window of 4,000 tokens, with every third summary failing', async () => {
    const seen = { longest: 0, orphans: [] as string[], refused: 0, summaries: 0 }
    const { thread, server, hf } = await talk(
      (request) => {
        seen.longest = Math.max(seen.longest, request.promptTokens)
        seen.orphans.push(...orphans(request))
        if (isSummary(request)) {
          seen.summaries++
          if (seen.summaries % 6 === 0) return { error: { status: 400, message: 'Not now.' } }
          if (seen.summaries % 6 === 3) return ''
          return `Summary ${seen.summaries}: the customer looks for shoes and has not decided.`
        }
        const said = String(request.messages.at(-1)?.['content'])
        const turn = Number(/turn (\d+)/.exec(said)?.[1] ?? 0)
        if (turn % 3 === 0 && turn > 0)
          return calls(['search', { query: `shoe ${turn}` }], ['search', { query: 'lace' }])
        return 'There are several pairs that may fit you; which colour would you like best? '.repeat(2)
      },
      { tools: { search }, instructions: 'You sell shoes.', compaction: { window: WINDOW } },
      { windowTokens: WINDOW, keep: 2000 },
    )
    for (let turn = 1; turn <= 200; turn++) {
      const outcome = await thread.run({ input: `This is turn ${turn}: do you have something for rainy days?` })
      if (outcome.status !== 'completed') throw new Error(JSON.stringify(outcome))
    }
    seen.refused = server.requests.filter(({ promptTokens }) => promptTokens > WINDOW).length
    expect(seen.refused).toBe(0)
    expect(seen.longest).toBeLessThanOrEqual(WINDOW)
    expect(seen.orphans).toEqual([])
    expect(seen.summaries).toBeGreaterThan(10)
    const state = await thread.state()
    // The whole history is still there, and every prompt began with the instructions.
    expect(state?.messages.filter(({ role }) => role === 'user')).toHaveLength(200)
    expect(lines(state?.messages ?? [])[0]).toBe('user: This is turn 1: do you have something for rainy days?')
    expect(state?.summary?.text).toMatch(/^Summary \d+/)
    const asked = server.requests.filter((request) => !isSummary(request))
    expect(asked.every(({ messages }) => messages[0]?.['content'] === 'You sell shoes.')).toBe(true)
    expect(asked.at(-1)?.messages[1]).toMatchObject({ role: 'user', content: expect.stringContaining('Summary') })
    expect(asked.at(-1)?.messages.at(-1)).toMatchObject({ content: expect.stringContaining('turn 200') })
    expect(await hf.verify('thread-1')).toMatchObject({ ok: true })
  }, 600_000)

  it('is a recorded step, whose tokens count', async () => {
    const { thread, server } = await talk(
      (request) => (isSummary(request) ? { text: 'Short.', usage: { input: 500, output: 7 } } : 'word '.repeat(300)),
      { compaction: { window: 1000 } },
    )
    await thread.run({ input: 'one' })
    await thread.run({ input: 'two' })
    const stream = thread.stream({ input: 'three' })
    const steps: string[] = []
    for await (const event of stream) if (event.type === 'step') steps.push(event.step)
    expect(steps).toEqual(['0:model', '1:compact', '2:model'])
    const { state } = await stream.outcome
    expect(state).toMatchObject({ summary: { text: 'Short.', upTo: 4 }, turn: 1, runUsage: { calls: 2 } })
    expect(server.requests.at(-1)?.messages).toHaveLength(2)
  })

  it('is triggered once by a provider that says the prompt is too long', async () => {
    const { thread, server } = await talk(
      (request) => (isSummary(request) ? 'They talked.' : 'word '.repeat(400)),
      {},
      { windowTokens: 1000 },
    )
    for (const input of ['one', 'two']) await thread.run({ input })
    const { state, status } = await thread.run({ input: 'three' })
    expect(status).toBe('completed')
    expect(state.summary?.text).toBe('They talked.')
    expect(server.requests.map(({ outcome }) => outcome)).toEqual([
      'answered',
      'answered',
      'error',
      'answered',
      'answered',
    ])
    expect(state.messages).toHaveLength(6)
  })

  it('does not go round in circles when a prompt stays too long', async () => {
    const { thread, server } = await talk(() => 'word '.repeat(100), {}, { windowTokens: 60 })
    const outcome = await thread.run({ input: 'hello '.repeat(100) })
    expect(outcome).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('context length') } })
    expect(server.counters.requests).toBe(1)
    expect(outcome.state.messages).toHaveLength(1)
  })

  it('leaves the conversation as it was when the summary fails or is empty', async () => {
    for (const bad of ['', { error: { status: 400, message: 'No.' } }, 'word '.repeat(2000)]) {
      const { thread, server } = await talk((request) => (isSummary(request) ? bad : 'word '.repeat(300)), {
        compaction: { window: 1000 },
      })
      for (const input of ['one', 'two']) await thread.run({ input })
      const { state, status } = await thread.run({ input: 'three' })
      expect(status).toBe('completed')
      expect(state.summary).toBeNull()
      expect(state.messages).toHaveLength(6)
      expect(server.requests.at(-1)?.messages).toHaveLength(5)
    }
  })

  it('reaches far enough when a provider takes less than the window that was declared', async () => {
    const { thread } = await talk(
      (request) => (isSummary(request) ? 'They talked.' : 'word '.repeat(100)),
      { compaction: { window: 100_000 } },
      { windowTokens: 1000 },
    )
    for (let i = 0; i < 6; i++) await thread.run({ input: `This is question ${i}.` })
    const outcome = await thread.run({ input: 'word '.repeat(400) })
    expect(outcome.status).toBe('completed')
    expect(outcome.state.summary?.text).toBe('They talked.')
  })

  it('gets a long history that was brought along into the window, in as many steps as that takes', async () => {
    const { thread, server } = await talk((request) => (isSummary(request) ? 'They talked.' : 'Go on.'), {
      maxTurns: 1,
      compaction: { window: 1000 },
    })
    const history = Array.from({ length: 600 }, (_, i) =>
      makeMessage(i % 2 === 0 ? 'user' : 'assistant', `This is message ${i}, of which there are many. `.repeat(4)),
    )
    const outcome = await thread.run({ input: [...history, makeMessage('user', 'Where were we?')] })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Go on.' })
    expect(Math.max(...server.requests.map(({ promptTokens }) => promptTokens))).toBeLessThan(1000)
  })

  it('does not take a summary that the provider held back half-way', async () => {
    const held = { text: 'The customer wants', finishReason: 'content_filter' }
    const { thread } = await talk((request) => (isSummary(request) ? held : 'word '.repeat(300)), {
      compaction: { window: 1000 },
    })
    for (const input of ['one', 'two']) await thread.run({ input })
    expect((await thread.run({ input: 'three' })).state.summary).toBeNull()
  })

  it('says how long a summary may be, and shows its retries in events', async () => {
    let failures = 0
    const { thread, server } = await talk(
      (request) => {
        if (!isSummary(request)) return 'word '.repeat(300)
        return failures++ === 0 ? { error: { status: 503 } } : 'They talked.'
      },
      { compaction: { window: 1000 } },
    )
    for (const input of ['one', 'two']) await thread.run({ input })
    const events = await collect(thread.stream({ input: 'three' }))
    expect(events.filter(({ type }) => type === 'retry')).toMatchObject([{ step: '1:compact', attempt: 1 }])
    expect(events.filter((event) => event.type === 'token' && event.step === '1:compact')).toEqual([])
    const asked = server.requests.filter(isSummary).at(-1)
    expect(asked?.body['max_tokens']).toBe(125)
    expect(asked?.messages[0]?.['content']).toMatch(/at most 62 words/)
  })

  it('is forgotten on a branch whose messages are others', async () => {
    const { thread, server } = await talk(
      (request) => (isSummary(request) ? 'They talked of the past.' : 'word '.repeat(300)),
      { compaction: { window: 1000 } },
    )
    for (const input of ['one', 'two', 'three']) await thread.run({ input })
    const [{ id }] = (await thread.history({ limit: 1 })) as unknown as [{ id: string }]
    const messages = [makeMessage('user', 'Something else.'), makeMessage('assistant', 'Yes?')]
    for (const kept of [messages, [...messages, ...messages, ...messages, ...messages]]) {
      const fork = await thread.at(id).fork({ set: { messages: kept } })
      await fork.run({ input: 'Go on' })
      expect(JSON.stringify(server.requests.at(-1)?.messages)).not.toContain('They talked of the past')
      expect(server.requests.at(-1)?.messages).toHaveLength(kept.length + 1)
    }
  })

  it('counts every message once, however many turns follow it', async () => {
    const question = 'Which of these forty shoes do you have?'
    const counted: string[] = []
    const count = (text: string) => {
      counted.push(text)
      return Math.ceil(text.length / 4)
    }
    const { thread } = await talk(
      ({ messages }) => (messages.length < 40 ? calls(['search', { query: `shoe ${messages.length}` }]) : 'None.'),
      { tools: { search }, compaction: { window: 100_000, count } },
    )
    expect(await thread.run({ input: question })).toMatchObject({ output: 'None.', state: { turn: 21 } })
    // Twice: as it came in, and as it was stored.
    expect(counted.filter((text) => text === question).length).toBeLessThanOrEqual(2)
    const shoes = counted.filter((text) => text.includes('"shoe '))
    expect(shoes).toHaveLength(new Set(shoes).size)
    expect(shoes).toHaveLength(40)
  })

  it('does nothing when it is switched off', async () => {
    const { thread, server } = await talk(() => 'word '.repeat(100), { compaction: false }, { windowTokens: 100 })
    await thread.run({ input: 'one' })
    expect(await thread.run({ input: 'two' })).toMatchObject({ status: 'failed' })
    expect(server.counters.requests).toBe(2)
  })
})

describe('a cut through a conversation', () => {
  const turn = fc.record({ calls: fc.integer({ min: 0, max: 3 }), rounds: fc.integer({ min: 0, max: 3 }) })

  it('never parts a call from its result', () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 6 }), fc.nat(20), (turns, start) => {
        const messages = turns.flatMap((made, t) => converse(made, t))
        const from = Math.min(start, messages.length)
        for (const cut of safeCuts(messages, 0).filter((place) => place > from)) {
          const before = messages.slice(0, cut)
          const after = messages.slice(cut)
          const called = new Set(before.flatMap((message) => callsIn(message)))
          expect(before.flatMap((message) => resultsIn(message)).length).toBe(called.size)
          expect(after.flatMap((message) => resultsIn(message)).some((id) => called.has(id))).toBe(false)
        }
        expect(estimateTokens(messages)).toBeGreaterThan(0)
      }),
      randomly(rounds(200)),
    )
  })

  function converse(made: { readonly calls: number; readonly rounds: number }, t: number): Message[] {
    const messages = [makeMessage('user', `turn ${t}`)]
    for (let r = 0; r < made.rounds; r++) {
      const ids = Array.from({ length: made.calls }, (_, c) => `${t}-${r}-${c}`)
      messages.push(
        makeMessage('assistant', [
          { type: 'text', text: 'Looking.' },
          ...ids.map((callId) => ({ type: 'tool-call', callId, name: 'look', input: {} }) as const),
        ]),
        ...ids.map((callId) =>
          makeMessage('tool', [{ type: 'tool-result', callId, name: 'look', output: { type: 'text', value: 'x' } }]),
        ),
      )
    }
    return [...messages, makeMessage('assistant', 'Done.')]
  }
})
