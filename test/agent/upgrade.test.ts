import { agent, type LanguageModel, tool, type ToolOptions } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { serve, store } = setUp()

const returns: unknown[] = []
const approved = { needsApproval: true, effect: 'once' } as const
const asked = calls(['openReturn', { order: 'ORD-1', express: 'yes' }])

function version1(model: LanguageModel) {
  const openReturn = tool({
    ...approved,
    version: '1',
    inputSchema: z.object({ order: z.string(), express: z.enum(['yes', 'no']) }),
    execute: () => 'the old way',
  })
  return agent({ name: 'support', version: '1.0.0', model, tools: { openReturn } })
}

function version12(model: LanguageModel, more: Partial<ToolOptions> = {}, name = 'openReturn') {
  const openReturn = tool({
    ...approved,
    version: '2',
    inputSchema: z.object({ orderId: z.string(), speed: z.enum(['express', 'normal']) }),
    execute: (input) => {
      returns.push(input)
      return { opened: input.orderId }
    },
    ...(more as object),
  })
  const tools = { [name]: openReturn }
  const toolAliases = name === 'openReturn' ? {} : { openReturn: name }
  return agent({ name: 'support', version: '1.2.0', model, tools, toolAliases })
}

const migrate: ToolOptions['migrate'] = (input, from) => {
  const { order, express } = input as { order: string; express: string }
  return from === '1' ? { orderId: order, speed: express === 'yes' ? 'express' : 'normal' } : input
}

async function begin(reply = [asked, 'It is on its way.']) {
  const { model, server } = await serve({ reply })
  const hf = await store()
  const old = hf.thread(version1(model), 'session')
  const paused = await old.run({ input: 'I want to return ORD-1' })
  if (paused.status !== 'paused') throw new Error(paused.status)
  const pause = paused.pauses[0]?.id ?? ''
  returns.length = 0
  return { model, server, hf, old, pause }
}

async function asksAgain(thread: ReturnType<Awaited<ReturnType<typeof begin>>['hf']['thread']>): Promise<string> {
  const outcome = await thread.run()
  if (outcome.status !== 'paused') throw new Error(outcome.status)
  expect(outcome.pauses).toMatchObject([{ question: { input: { orderId: 'ORD-1', speed: 'express' } } }])
  return outcome.pauses[0]?.id as string
}

describe('a thread of version 1.0 under version 1.2', () => {
  it('resumes with the arguments of its open call migrated', async () => {
    const { model, hf, pause } = await begin()
    const thread = hf.thread(version12(model, { migrate }), 'session')
    await thread.answer(pause, { approved: true })
    // Nobody has agreed to these yet.
    await thread.answer(await asksAgain(thread), { approved: true })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'It is on its way.' })
    expect(returns).toEqual([{ orderId: 'ORD-1', speed: 'express' }])
    expect(lines(outcome.state.messages)).toContain('json openReturn {"opened":"ORD-1"}')
    expect(outcome.state.toolVersions).toEqual({ openReturn: '2' })
  })

  it('tells the model, not the customer, when the migrated arguments do not fit', async () => {
    const { model, hf, pause } = await begin()
    const thread = hf.thread(version12(model, { migrate: () => ({ orderId: 'ORD-1' }) }), 'session')
    await thread.answer(pause, { approved: true })
    const outcome = await thread.run()
    expect(lines(outcome.state.messages).find((line) => line.startsWith('error'))).toMatch(/do not fit.*\n- speed/)
    expect(returns).toEqual([])
  })

  it('ends as incompatible without a migration, in words that can be read out, and changes nothing', async () => {
    const { model, hf, old, pause, server } = await begin()
    const thread = hf.thread(version12(model), 'session')
    await thread.answer(pause, { approved: true })
    const before = (await hf.log('session')).fold.seq
    const outcome = await thread.run()
    expect(outcome).toMatchObject({
      status: 'incompatible',
      reason:
        'The conversation is waiting for "openReturn", which was requested from version 1 of it. support 1.2.0 has version 2, which can\'t take over that request. It has not been completed.',
      remedy: expect.stringContaining('migrate'),
    })
    expect((await hf.log('session')).fold.seq).toBe(before)
    expect(server.counters.requests).toBe(1)
    // The old version can still finish it.
    expect(await old.run()).toMatchObject({ status: 'completed' })
  })

  it('says so when the tool is gone, and follows one that was renamed', async () => {
    const { model, hf, pause } = await begin()
    const gone = hf.thread(agent({ name: 'support', version: '1.2.0', model }), 'session')
    await gone.answer(pause, { approved: true })
    expect(await gone.run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('"openReturn", which support 1.2.0 no longer offers'),
    })
    const renamed = hf.thread(version12(model, { migrate }, 'startReturn'), 'session')
    await renamed.answer(await asksAgain(renamed), { approved: true })
    expect(await renamed.run()).toMatchObject({ status: 'completed' })
    expect(returns).toEqual([{ orderId: 'ORD-1', speed: 'express' }])
  })

  it('can be ended and go on with what the customer says next', async () => {
    const { model, hf } = await begin([asked, 'What can I do for you?'])
    const thread = hf.thread(version12(model), 'session')
    expect(await thread.run()).toMatchObject({ status: 'incompatible' })
    await thread.cancel({ reason: 'upgraded' })
    expect(await thread.run({ input: 'Hello?' })).toMatchObject({ output: 'What can I do for you?' })
  })

  it('continues a finished conversation with another major only if that says so', async () => {
    const { model, hf, old, pause } = await begin([asked, 'Done.', 'Hello again.'])
    await old.answer(pause, { approved: true })
    await old.run()
    const next = agent({ name: 'support', version: '2.0.0', model })
    expect(await hf.thread(next, 'session').run({ input: 'Hi' })).toMatchObject({ output: 'Hello again.' })
  })
})
