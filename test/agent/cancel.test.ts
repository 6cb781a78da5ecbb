import { hurriedClock } from '#src/testing/hurried-clock.js'
import { agent, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { talk } = setUp()
const empty = z.object({})

/** A shop whose payment lands at once, beside calls that are ended by the cancellation. */
function shop() {
  const payments: number[] = []
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const tools = {
    pay: tool({
      inputSchema: empty,
      effect: 'once',
      execute: () => {
        payments.push(1)
        return { paid: payments.length }
      },
    }),
    refund: tool({ inputSchema: empty, effect: 'once', needsApproval: true, execute: () => ({ refunded: true }) }),
    ship: tool({
      inputSchema: empty,
      effect: 'once',
      execute: async (_, { abortSignal: signal }) => {
        begin()
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    }),
  }
  return { payments, tools, begun }
}

const RECEIPT = 'json pay {"paid":1}'
const NOT_MADE = 'error refund The call was not made: the run was ended before it began.'

describe('a run of an agent that is ended while calls are open', () => {
  it('keeps the results that are there, and says what was not made', async () => {
    const { payments, tools } = shop()
    const { thread, hf, server } = await talk([calls(['pay'], ['refund']), 'Hello again.'], { tools })
    expect(await thread.run({ input: 'Pay, and refund' })).toMatchObject({ status: 'paused' })
    await hf.inspect('thread-1').cancel()
    const outcome = await thread.run({ input: 'Have you paid?' })
    expect(outcome).toMatchObject({ status: 'completed' })
    expect(lines(outcome.state.messages)).toEqual([
      'user: Pay, and refund',
      'call pay {}',
      'call refund {}',
      RECEIPT,
      NOT_MADE,
      'user: Have you paid?',
      'assistant: Hello again.',
    ])
    const shown = JSON.stringify(server.requests[1]?.messages)
    expect(shown).toContain('paid')
    expect(shown).not.toContain('not known')
    expect(payments).toHaveLength(1)
  })

  for (const how of ['cancel', 'interrupt', 'drop'] as const) {
    it(`shows the model what was paid after ${how}`, async () => {
      const { payments, tools, begun } = shop()
      const beside = how === 'drop' ? 'refund' : 'ship'
      const { thread, server, model, hf } = await talk(
        [calls(['pay'], [beside]), 'Hello again.'],
        { tools },
        {},
        // It hears at once that it is interrupted, and its lease does not run out meanwhile: then another would end it.
        hurriedClock(),
      )
      const running = thread.run({ input: 'Pay', leaseMs: 20_000 })
      if (how === 'drop') await running
      else {
        await begun
        for await (const event of hf.inspect('thread-1').events({ untilRest: false })) {
          if (event.type === 'step' && event.step.includes('pay') && event.status === 'completed') break
        }
      }
      if (how === 'cancel') {
        await thread.cancel()
        expect(lines((await running).state.messages)).toContain(RECEIPT)
      }
      const program = agent({ name: 'support', version: '1.0.0', model, tools })
      const next = await hf.thread(program, 'thread-1').run({
        input: 'Have you paid?',
        ...(how === 'interrupt' ? { busy: 'interrupt' as const } : {}),
        ...(how === 'drop' ? { onPaused: 'cancel' as const } : {}),
      })
      expect(next).toMatchObject({ status: 'completed' })
      const said = lines(next.state.messages)
      expect(said.indexOf(RECEIPT)).toBeGreaterThan(0)
      expect(said.indexOf(RECEIPT)).toBeLessThan(said.indexOf('user: Have you paid?'))
      const results = (server.requests[1]?.messages ?? []).filter(({ role }) => role === 'tool')
      const content = results.map((message) => String(message.content)).sort()
      // Of the call that was begun nobody knows, of the other nothing was done.
      expect(content).toEqual([
        expect.stringMatching(how === 'drop' ? /was not made/ : /not known/),
        expect.stringContaining('"paid":1'),
      ])
      expect(payments).toHaveLength(1)
    })
  }

  it('takes the word of a person that nobody had read yet', async () => {
    const { tools } = shop()
    const { thread, hf } = await talk([calls(['pay'], ['refund']), 'Hello again.'], { tools })
    const paused = await thread.run({ input: 'Pay, and refund' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await thread.answer(paused.pauses[0]?.id ?? '', { approved: false, reason: 'Too late.' })
    await hf.inspect('thread-1').cancel()
    const messages = lines((await thread.state())?.messages ?? [])
    expect(messages).toContain('denied refund Too late.')
    expect(messages).toContain(RECEIPT)
  })
})
