import { append, END, graph, last, openHoldfast, START, tool } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { talk } = setUp()
const HOUR = 3_600_000

async function ask(onApprovalExpire?: 'deny' | 'fail') {
  const clock = virtualClock()
  const paid: number[] = []
  const { thread } = await talk(
    ({ messages }) => (messages.length < 3 ? calls(['pay', { amount: 5 }]) : { text: 'Well.' }),
    {
      tools: {
        pay: tool({
          inputSchema: z.object({ amount: z.number() }),
          needsApproval: true,
          approvalExpiresInMs: HOUR,
          ...(onApprovalExpire ? { onApprovalExpire } : {}),
          execute: ({ amount }) => paid.push(amount),
        }),
      },
    },
    {},
    clock,
  )
  const paused = await thread.run({ input: 'Pay' })
  if (paused.status !== 'paused') throw new Error(paused.status)
  return { thread, clock, paid, paused }
}

it('an approval that expires is a no that the model is told of', async () => {
  const { thread, clock, paid, paused } = await ask()
  expect(paused.pauses[0]?.expiresAt?.getTime()).toBe(clock.now() + HOUR)
  expect(paused.wakeAt?.getTime()).toBe(clock.now() + HOUR)
  await clock.advance(HOUR - 1)
  expect((await thread.run()).status).toBe('paused')
  await clock.advance(1)
  const outcome = await thread.run()
  expect(outcome).toMatchObject({ status: 'completed', output: 'Well.', resumed: 1 })
  expect(lines(outcome.state.messages)).toContain('denied pay Nobody answered in time, so the call was not made.')
  await expect(thread.answer(paused.pauses[0]?.id ?? '', { approved: true })).rejects.toMatchObject({
    code: 'pause-closed',
  })
  expect(paid).toStrictEqual([])
})

it('an approval that was given in time holds, however late the run is resumed', async () => {
  const { thread, clock, paid, paused } = await ask()
  await thread.answer(paused.pauses[0]?.id ?? '', { approved: true })
  await clock.advance(2 * HOUR)
  expect((await thread.run()).status).toBe('completed')
  expect(paid).toStrictEqual([5])
})

it('an approval that expires can fail the run', async () => {
  const { thread, clock, paid } = await ask('fail')
  await clock.advance(HOUR)
  expect(await thread.run()).toMatchObject({ status: 'failed', error: { code: 'pause-closed' } })
  expect(paid).toStrictEqual([])
})

it('the approval of a node expires with an answer of its own', async () => {
  const clock = virtualClock()
  await using hf = await openHoldfast('memory:', { clock })
  const gated = graph({ name: 'g', version: '1.0.0', state: { log: append<string>(), n: last<number>() } })
    .node('pay', {
      effect: 'once',
      approval: {
        needed: () => true,
        question: () => 'Pay?',
        answer: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
        approved: (input) => input,
        denied: () => ({ log: 'denied' }),
        expiresInMs: HOUR,
        onExpire: { answer: { approved: false } },
      },
      run: () => ({ log: 'paid' }),
    })
    .edge(START, 'pay')
    .edge('pay', END)
  const thread = hf.thread(gated, 't')
  expect((await thread.run({ input: {} })).status).toBe('paused')
  await clock.advance(HOUR)
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { log: ['denied'] } })
})

it('refuses a time that is none', () => {
  const options = { inputSchema: z.object({}), needsApproval: true }
  expect(() => tool({ ...options, approvalExpiresInMs: 0 })).toThrow(/approvalExpiresInMs must be a whole number/)
  expect(() => tool({ ...options, onApprovalExpire: 'no' as never })).toThrow(/onApprovalExpire/)
})
