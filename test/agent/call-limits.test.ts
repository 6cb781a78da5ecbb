import { flow, isHoldfastError, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, callsIn, lines, resultsIn, setUp } from './agent-setup.js'

const { talk, store } = setUp()

const evil = `${'a'.repeat(35)}!`
const catastrophic = z.object({ name: z.string().regex(/^(a+)+$/) })

function pauseOf(outcome: { readonly status: string; readonly pauses?: readonly { readonly id: string }[] }): string {
  if (outcome.pauses?.[0] === undefined) throw new Error(`not paused: ${outcome.status}`)
  return outcome.pauses[0].id
}

describe('a regular expression that tries too many ways', () => {
  it('of a tool’s own schema does not hold the process, and the model is told', async () => {
    const ran: unknown[] = []
    const find = tool({ inputSchema: catastrophic, effect: 'read', execute: (input) => ran.push(input) })
    const many = calls(...Array.from({ length: 20 }, () => ['find', { name: evil }] as const), ['find', { name: 'aa' }])
    const { thread } = await talk([many, 'I see.'], { tools: { find } })
    const outcome = await thread.run({ input: 'Find it' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'I see.' })
    const told = lines(outcome.state.messages).filter((line) => line.startsWith('error'))
    expect(told[0]).toMatch(/do not fit, so nothing was done:\n- could not be checked in time/)
    // One long look is enough for a whole reply.
    expect(told[1]).toMatch(/Another call of find in this reply could not be checked in time/)
    expect(told).toHaveLength(21)
    expect(ran).toEqual([])
  })

  it('does not hold who answers with edited arguments, nor who goes on', async () => {
    const ran: unknown[] = []
    const find = tool({ inputSchema: catastrophic, needsApproval: true, execute: (input) => ran.push(input) })
    const { thread } = await talk([calls(['find', { name: 'a' }]), 'Done.'], { tools: { find } })
    const pause = pauseOf(await thread.run({ input: 'Find it' }))
    const refused = await thread.answer(pause, { approved: true, input: { name: evil } }).catch((error) => error)
    expect(isHoldfastError(refused, 'invalid-value')).toBe(true)
    await thread.answer(pause, { approved: true, input: { name: 'aaa' } })
    expect(await thread.run()).toMatchObject({ output: 'Done.' })
    expect(ran).toEqual([{ name: 'aaa' }])
  })

  it('in the check of an answer opens the question again', async () => {
    const hf = await store()
    const schema = z.string().refine((text) => /^(a+)+$/.test(text))
    const ask = flow({ name: 'ask', version: '1.0.0' }, (ctx) => ctx.pause('Name?', { schema }))
    const thread = hf.thread(ask, 'thread-1')
    const pause = pauseOf(await thread.run({ input: null }))
    await thread.answer(pause, evil)
    expect(await thread.run()).toMatchObject({
      status: 'paused',
      pauses: [{ id: pause, refused: { reason: expect.stringContaining('took longer than 1000 ms') } }],
    })
    await thread.answer(pause, 'aaa')
    expect(await thread.run()).toMatchObject({ status: 'completed', output: 'aaa' })
  })

  it('of a question is refused by name where it is no regular expression', async () => {
    const hf = await store()
    const ask = flow({ name: 'ask', version: '1.0.0' }, (ctx) => ctx.pause('?', { jsonSchema: { pattern: '(' } }))
    expect(await hf.thread(ask, 'thread-1').run({ input: null })).toMatchObject({
      status: 'failed',
      error: { code: 'invalid-option', message: expect.stringContaining('which is not a regular expression') },
    })
  })
})

describe('more calls in one reply than are carried out', () => {
  const note = (ran: unknown[]) =>
    tool({ inputSchema: z.object({ n: z.number() }), effect: 'read', execute: ({ n }) => ran.push(n) })
  const reply = (count: number) => calls(...Array.from({ length: count }, (_, n) => ['note', { n }] as const))

  it('are answered each, and the model is told which were not made', async () => {
    const ran: number[] = []
    const { thread } = await talk([reply(5), 'Fine.'], { tools: { note: note(ran) }, maxCallsPerReply: 3 })
    const outcome = await thread.run({ input: 'Note it' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Fine.' })
    expect(ran.sort()).toEqual([0, 1, 2])
    const { messages } = outcome.state
    expect(messages.flatMap(resultsIn).sort()).toEqual(messages.flatMap(callsIn).sort())
    expect(lines(messages).filter((line) => line.startsWith('error'))).toEqual([
      expect.stringContaining('This reply made 5 calls, and at most 3 of one reply are carried out'),
      expect.stringContaining('this one was not'),
    ])
  })

  it('are 128 unless the agent says otherwise', async () => {
    const ran: number[] = []
    const { thread } = await talk([reply(200), 'Fine.'], { tools: { note: note(ran) } })
    expect(await thread.run({ input: 'Note it' })).toMatchObject({ output: 'Fine.' })
    expect(ran).toHaveLength(128)
  })
})
