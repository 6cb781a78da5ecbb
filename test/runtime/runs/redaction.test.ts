import { inspect } from 'node:util'
import {
  agent,
  append,
  END,
  flow,
  graph,
  Holdfast,
  type Redact,
  redactCommon,
  type RunEvent,
  START,
  tool,
} from 'holdfast'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import { calls, collect, FAST, setUp } from '../../agent/agent-setup.js'
import { setUpOtel } from '../../telemetry/otel-setup.js'

const { serve } = setUp()
const { sdk } = setUpOtel()

const CARD = '4111 1111 1111 1111'
const MAIL = 'ada@example.com'
const KEY = 'sk-proj-abcdefghijklmnop'
const SECRETS = [CARD, MAIL, KEY, '4111111111111111', 'example.com']

async function open(store: MemoryStore, redact: Redact = redactCommon()): Promise<Holdfast> {
  const driver = await openMemory({ store })
  return new Holdfast(new LogStore(driver, { blobThreshold: 2048, redact }))
}

/** Everything that is stored, as text: nothing is compressed that is this small. */
function stored(store: MemoryStore): string {
  const bodies: string[] = []
  for (const threads of store.threads.values()) {
    for (const { branches } of threads.values()) {
      for (const log of branches.values()) {
        bodies.push(JSON.stringify([log.index, log.key]))
        for (const { header, body } of log.entries)
          bodies.push(Buffer.from(header).toString(), Buffer.from(body).toString())
      }
    }
  }
  for (const blobs of store.blobs.values())
    for (const { bytes } of blobs.values()) bodies.push(Buffer.from(bytes).toString())
  return `${bodies.join('\n')} ${inspect(store.items, { depth: 10, maxStringLength: null })} ${[...items(store)].join('\n')}`
}

function* items(store: MemoryStore): Generator<string> {
  for (const spaces of store.items.values()) {
    for (const { items } of spaces.values()) {
      for (const { item } of items.values()) if (item) yield Buffer.from(item.value).toString()
    }
  }
}

function expectClean(text: string): void {
  for (const secret of SECRETS) expect(text).not.toContain(secret)
}

describe('what the hook takes out', () => {
  it('is in nothing that a flow leaves: input, results, errors, questions, answers, signals, items, output', async () => {
    const store = createMemoryStore()
    const hf = await open(store)
    const seen: unknown[] = []
    const program = flow({ name: 'f', version: '1.0.0' }, async (ctx, input: { mail: string }) => {
      seen.push(input.mail)
      seen.push(
        await ctx.step('pay', { effect: 'once', input: CARD }, () => ({ card: CARD, number: 4111111111111111 })),
      )
      await ctx
        .step('fail', () => {
          throw new Error(`no such customer: ${MAIL}`)
        })
        .catch((error: Error) => seen.push(error.message))
      await ctx.step('keep', async ({ store: memory }) => {
        await memory.scope({ user: 'u' }).collection('notes').put('k', { mail: MAIL, password: 'plain words' })
      })
      seen.push(await ctx.pause(`Is ${MAIL} right?`))
      seen.push(await ctx.receive('news'))
      return { said: `Wrote to ${MAIL}` }
    })
    const thread = hf.thread(program, 't')
    const events = await collect(thread.stream({ input: { mail: MAIL } }))
    const [pause] = (await hf.pauses()).pauses
    await thread.answer(pause?.id as string, `no, ${MAIL}`)
    await thread.run()
    await thread.signal('news', { key: KEY })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: { said: 'Wrote to [redacted mail]' } })
    for (const what of [stored(store), JSON.stringify(seen), JSON.stringify(events), JSON.stringify(outcome)])
      expectClean(what)
    expect(stored(store)).not.toContain('plain words')
    expect(seen).toContainEqual({ card: '[redacted card]', number: '[redacted card]' })
    const item = await hf.store.scope({ user: 'u' }).collection('notes').get('k')
    expect(item?.value).toEqual({ mail: '[redacted mail]', password: '[redacted key]' })
    expect((await thread.replay()).status).toBe('identical')
  })

  it('is in nothing that a graph leaves, the failure of its run included', async () => {
    const store = createMemoryStore()
    const hf = await open(store)
    const program = graph({ name: 'g', version: '1.0.0', state: { said: append<string>() } })
      .node('reply', ({ said }) => ({ said: `${said.at(-1)} and ${KEY}` }))
      .node('fail', () => {
        throw new Error(`${MAIL} bounced`)
      })
      .edge(START, 'reply')
      .edge('reply', 'fail')
      .edge('fail', END)
    const outcome = await hf.thread(program, 't').run({ input: { said: MAIL } })
    expect(outcome).toMatchObject({
      status: 'failed',
      state: { said: ['[redacted mail]', '[redacted mail] and [redacted key]'] },
      error: { message: expect.stringContaining('[redacted mail] bounced') },
    })
    await hf.inspect('t').cancel({ reason: `${MAIL} asked for it` })
    expectClean(stored(store))
  })

  it('is in no message of an agent, and tools and the model see what is kept', async () => {
    const store = createMemoryStore()
    const hf = await open(store)
    const given: string[] = []
    const { model, server } = await serve({
      reply: ({ messages }) =>
        messages.some(({ role }) => role === 'tool') ? { text: `Sent to ${MAIL}` } : calls(['send', { to: MAIL }]),
    })
    const send = tool({
      description: 'sends',
      inputSchema: z.object({ to: z.string() }),
      effect: 'idempotent',
      needsApproval: true,
      execute: ({ to }) => {
        given.push(to)
        return `queued for ${MAIL}`
      },
    })
    const program = agent({ name: 'a', version: '1.0.0', model, retry: FAST, tools: { send } })
    const thread = hf.thread(program, 't')
    const events: RunEvent[] = []
    for await (const event of thread.stream({ input: `Write to ${MAIL}` })) events.push(event)
    const paused = await thread.run()
    if (paused.status !== 'paused') throw new Error(paused.status)
    expect(paused.pauses[0]?.question).toMatchObject({ input: { to: '[redacted mail]' } })
    await thread.answer(paused.pauses[0]?.id as string, { approved: true })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'Sent to [redacted mail]' })
    expect(given).toEqual(['[redacted mail]'])
    expectClean(stored(store))
    expectClean(JSON.stringify(server.requests.slice(1)))
    expectClean(JSON.stringify(events.filter(({ type }) => type !== 'token')))
  })

  it('is in no span, with content and without', async () => {
    for (const recordContent of [false, true]) {
      const { tracerProvider, meterProvider, finished } = sdk()
      const { openHoldfast } = await import('holdfast')
      const telemetry = { tracerProvider, meterProvider, recordContent }
      const hf = await openHoldfast('memory:', { redact: redactCommon(), telemetry })
      const { model } = await serve({ reply: () => ({ text: `It is ${MAIL}` }) })
      const program = agent({ name: 'a', version: '1.0.0', model, retry: FAST })
      await hf.thread(program, 't').run({ input: `Who is ${MAIL}?` })
      const failing = flow({ name: 'f', version: '1.0.0' }, (ctx) =>
        ctx.step(`look for ${MAIL}`, () => {
          throw new Error(`${CARD} declined`)
        }),
      )
      await hf.thread(failing, 'u').run({ input: 1 })
      await hf.close()
      const told = finished().map(({ attributes, events, status }) => ({ attributes, events, status }))
      expect(told.length).toBeGreaterThan(3)
      expectClean(inspect(told, { depth: 10, maxStringLength: null }))
    }
  })
})

describe('a resumed run', () => {
  it('sees exactly what an uninterrupted one saw, from its first step on', async () => {
    const play = async (crash: boolean) => {
      const hf = await open(createMemoryStore())
      const seen: unknown[] = []
      let crashed = !crash
      const program = flow({ name: 'f', version: '1.0.0' }, async (ctx, input: string) => {
        const first = await ctx.step('first', { input }, () => `${input} has ${CARD}`)
        const second = await ctx.step('second', { input: first }, () => {
          if (!crashed) {
            crashed = true
            throw new Error(`lost ${MAIL}`)
          }
          return { first, key: KEY }
        })
        seen.push(input, first, second)
        return [input, first, second]
      })
      const thread = hf.thread(program, 't')
      const first = await thread.run({ input: MAIL })
      const outcome = first.status === 'completed' ? first : await thread.run()
      if (outcome.status !== 'completed') throw new Error(outcome.status)
      return { seen, output: outcome.output }
    }
    expect(await play(true)).toEqual(await play(false))
  })

  it('takes the same input for the same, and another for another', async () => {
    const hf = await open(createMemoryStore())
    let paid = 0
    const program = flow({ name: 'f', version: '1.0.0' }, async (ctx, to: string) => {
      await ctx.step('pay', { effect: 'once' }, () => ++paid)
      return ctx.step('say', () => to)
    })
    const thread = hf.thread(program, 't')
    // Keys are identity, not content: they are kept as they are.
    for (let i = 0; i < 2; i++) await thread.run({ input: MAIL, key: `invoice-${MAIL}` })
    expect(paid).toBe(1)
    await thread.run({ input: MAIL, key: 'invoice-2' })
    expect(paid).toBe(2)
  })
})

describe('a hook', () => {
  const program = flow({ name: 'f', version: '1.0.0' }, (ctx, input: string) => ctx.step('s', () => `${input}!`))

  it('that fails, or returns something else, keeps the value from being written', async () => {
    for (const hook of [
      () => {
        throw new Error('no dictionary')
      },
      () => undefined as never,
      async () => 'later' as never,
    ]) {
      const store = createMemoryStore()
      const hf = await open(store, hook as unknown as Redact)
      await expect(hf.thread(program, 't').run({ input: MAIL })).rejects.toThrow(/no dictionary|option redact returned/)
      expectClean(stored(store))
    }
  })

  it('is told the name of the property, and sees texts and long numbers only', async () => {
    const asked: [string, string | undefined][] = []
    const hf = await open(createMemoryStore(), (text, key) => {
      asked.push([text, key])
      return text
    })
    const values = flow({ name: 'f', version: '1.0.0' }, (ctx) =>
      ctx.step('s', () => ({
        a: 'x',
        b: [1, 'y', new Date(0)],
        c: { d: 4111111111111111n, e: true, f: new Uint8Array(3) },
      })),
    )
    const outcome = await hf.thread(values, 't').run({ input: null })
    expect(outcome).toMatchObject({ status: 'completed', output: { c: { d: 4111111111111111n } } })
    const expected = [
      ['x', 'a'],
      ['y', 'b'],
      ['4111111111111111', 'd'],
    ]
    expect(asked).toEqual([...expected, ...expected])
  })

  it('that is none is refused', async () => {
    await expect(open(createMemoryStore(), 'cards' as never)).rejects.toMatchObject({ data: { field: 'redact' } })
  })
})
