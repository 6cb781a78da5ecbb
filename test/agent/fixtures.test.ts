import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { agent, tenantUsage, tool, type Holdfast } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { AGENT_FIXTURES, openRuntimeFixture, runtimeFixtures } from '../support/runtime-fixture.js'

// The threads under test/fixtures/agent-v1 were left behind by agents whose steps recorded what they returned, and not
// only what it changed, and whose claims had entries of their own; those under agent-v2 by runs that repeated the hash of
// their input; those under agent-v3 are stored as they are now. They are resumed for ever and never rewritten: when a test
// here fails, the code is wrong.

const ran: string[] = []

/** How many calls each reply makes, in every run. */
const CALLS = [1, 2, 0]

/** The agent of the fixtures. `from` is the number of the reply that it continues with. */
function looker(from: number) {
  let replies = from
  ran.splice(0)
  const model = {
    specificationVersion: 'v3',
    provider: 'fixture',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate() {
      const number = replies++
      ran.push(`reply ${number}`)
      const calls = CALLS[number % 3] as number
      const content = Array.from({ length: calls }, (_, i) => ({
        type: 'tool-call',
        toolCallId: `call-${number}-${i}`,
        toolName: 'look',
        input: JSON.stringify({ order: `ORD-${number}-${i}` }),
      }))
      const said = { type: 'text', text: `Answer ${number}.` }
      const finishReason = { unified: calls ? 'tool-calls' : 'stop', raw: undefined }
      const usage = { inputTokens: { total: 10 + number }, outputTokens: { total: 5 } }
      return { content: calls === 0 ? [said] : content, finishReason, usage, warnings: [] }
    },
    async doStream() {
      throw new Error('not used')
    },
  }
  const look = tool({
    description: 'Looks an order up',
    inputSchema: { '~standard': { version: 1, vendor: 'fixture', validate: (value: unknown) => ({ value }) } } as never,
    jsonSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
    effect: 'read',
    execute: async ({ order }: { order: string }) => {
      ran.push(order)
      return { order, status: 'in transit' }
    },
  })
  return agent({
    name: 'looker',
    version: '1.0.0',
    model: model as never,
    instructions: 'You help.',
    tools: { look },
    prices: { scripted: { input: 2, output: 10 } },
    stream: false,
  })
}

/** The usage of the replies up to a number. */
function usageUpTo(count: number, from = 0) {
  const calls = Array.from({ length: count - from }, (_, i) => 10 + from + i)
  const input = calls.reduce((sum, each) => sum + each, 0)
  const output = 5 * calls.length
  const cost = calls.reduce((sum, each) => sum + (each * 2 + 50) / 1_000_000, 0)
  return { input, output, total: input + output, calls: calls.length, cost: expect.closeTo(cost, 12), unpriced: 0 }
}

async function usageEvents(hf: Holdfast, id: string, branch?: string) {
  const found = []
  for await (const event of hf.inspect(id, branch ? { branch } : {}).events()) {
    if (event.type === 'usage') found.push(event.usage)
  }
  return found
}

const open = (stage: string, { folder } = AGENT_FIXTURES[0]!) => openRuntimeFixture(`agent-${stage}`, folder)

it.each(AGENT_FIXTURES)('the threads of $form are as they were left', ({ folder }) => {
  const sums = runtimeFixtures(folder)
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(new URL(name, folder)))
          .digest('hex')}  ${name}\n`,
    )
  expect(sums.join('')).toBe(readFileSync(new URL('SHA256SUMS', folder), 'utf8'))
  expect(sums).toHaveLength(4)
})

describe.each(AGENT_FIXTURES)('a thread of $form', (fixtures) => {
  it('goes on with steps that record what they changed, and counts what all of them used', async () => {
    const { hf } = await open('completed', fixtures)
    const thread = hf.thread(looker(6), 'completed')
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
    expect((await thread.state())?.usage).toMatchObject(usageUpTo(6))
    const outcome = await thread.run({ input: 'third question' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Answer 8.' })
    expect(outcome).toMatchObject({ state: { usage: usageUpTo(9), runUsage: usageUpTo(9, 6), turn: 3 } })
    expect(await thread.replay()).toMatchObject({ status: 'identical', steps: 18 })
    expect((await tenantUsage(hf)).calls).toBe(9)
  })

  it.each([
    ['mid-tool', 5, ['ORD-4-1', 'reply 5']],
    ['mid-model', 4, ['reply 4', 'ORD-4-0', 'ORD-4-1', 'reply 5']],
  ] as const)('at stage %s is resumed where it was, and nothing recorded happens again', async (stage, from, does) => {
    const { hf } = await open(stage, fixtures)
    const thread = hf.thread(looker(from), stage)
    const outcome = await thread.run()
    expect(ran).toEqual(does)
    expect(outcome).toMatchObject({
      status: 'completed',
      output: 'Answer 5.',
      state: { usage: usageUpTo(6), runUsage: usageUpTo(6, 3), resumes: { count: 1 } },
    })
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
    expect((await tenantUsage(hf)).calls).toBe(6)
  })

  it('tells what each call used, whichever way it is stored', async () => {
    const { hf } = await open('mid-model', fixtures)
    await hf.thread(looker(4), 'mid-model').run()
    const all = await usageEvents(hf, 'mid-model')
    expect(all).toEqual(
      Array.from({ length: 6 }, (_, i) => ({
        input: 10 + i,
        cachedInput: 0,
        cacheWrite: 0,
        output: 5,
        reasoning: 0,
        total: 15 + i,
        basis: 'provider',
        cost: expect.closeTo(((10 + i) * 2 + 50) / 1_000_000, 12),
        model: { provider: 'fixture', id: 'scripted' },
        attempts: 1,
      })),
    )
    const history = await hf.inspect('mid-model').history({ events: true, limit: 100 })
    const listed = history.flatMap(({ events = [] }) =>
      events.flatMap((event) => (event.type === 'usage' ? [event] : [])),
    )
    expect(listed.reverse().map(({ usage }) => usage)).toEqual(all)
  })

  it('is forked: the branch counts its own, and the other stays as it was', async () => {
    const { hf } = await open('forked', fixtures)
    const before = (await hf.inspect('forked').history({ limit: 100 })).length
    const outcome = await hf.thread(looker(5), 'forked', { branch: 'other' }).run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'Answer 5.', state: { usage: usageUpTo(6) } })
    const again = await hf.thread(looker(6), 'forked', { branch: 'other' }).run({ input: 'once more' })
    expect(again).toMatchObject({ status: 'completed', state: { usage: usageUpTo(9) } })
    expect((await hf.inspect('forked').history({ limit: 100 })).length).toBe(before)
    const own = (await usageEvents(hf, 'forked', 'other')).length
    expect((await tenantUsage(hf)).calls).toBe(own)
  })
})

describe('a thread whose steps record what they changed', () => {
  async function make() {
    const { hf } = await open('completed')
    const thread = hf.thread(looker(0), 'new')
    await thread.run({ input: 'first question' })
    return { hf, thread }
  }

  it('has no results of steps of one task in its entries, and tells them by its events', async () => {
    const { hf, thread } = await make()
    const log = await hf.log('new')
    const alone: string[] = []
    for await (const { body } of log.entries()) {
      const counts = (body.ops ?? []).filter(([, path]) => path.join() === 'run,count')
      const records = (body.ops ?? []).filter(([, path]) => path[0] === 'steps' && path.length === 2)
      const pushes = (body.ops ?? []).some(([kind, path]) => kind === 'push' && path[0] === 'state')
      if (counts.length > 0 && records.length === 0 && pushes) alone.push(JSON.stringify(body.data))
    }
    // Two calls at once are each recorded as they land.
    expect(alone).toHaveLength(4)
    expect(alone[0]).toContain('"usage":{"cost":0.00007,"attempts":1}')
    expect(await thread.replay()).toMatchObject({ status: 'identical', steps: 6 })
  })

  it('lends what it read to a fork, which calls nothing again', async () => {
    const { thread } = await make()
    const [begun] = (await thread.history({ limit: 100 })).filter(({ kind }) => kind === 'input').slice(-1)
    const fork = await thread.at(begun!.id).fork({ reads: 'recorded', name: 'again' })
    ran.splice(0)
    const outcome = await fork.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'Answer 2.' })
    expect(ran).toEqual([])
  })
})
