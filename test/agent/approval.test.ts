import { agent, isHoldfastError, type Outcome, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { talk } = setUp()

function makeRefund(needsApproval: boolean | ((input: { amount: number }) => boolean) = true) {
  const refunds: number[] = []
  const refund = tool({
    inputSchema: z.object({ amount: z.number().positive() }),
    needsApproval,
    execute: ({ amount }) => {
      refunds.push(amount)
      return { refunded: amount }
    },
  })
  return { refund, refunds }
}

function pauseOf(outcome: Pick<Outcome, 'status'> & { readonly pauses?: readonly { readonly id: string }[] }): string {
  if (outcome.status !== 'paused' || outcome.pauses?.[0] === undefined) throw new Error(`not paused: ${outcome.status}`)
  return outcome.pauses[0].id
}

const ask = calls(['refund', { amount: 80 }])

describe('a tool that needs approval', () => {
  it('pauses before anything of it is recorded as begun, and runs once it is granted', async () => {
    const { refund, refunds } = makeRefund()
    const { thread, hf } = await talk([ask, 'Refunded.'], { tools: { refund } })
    const paused = await thread.run({ input: 'I want my money back' })
    expect(paused).toMatchObject({
      status: 'paused',
      pauses: [{ kind: 'approval', question: { tool: 'refund', input: { amount: 80 } } }],
    })
    expect(await hf.threads()).toMatchObject({ threads: [{ status: 'waiting_human' }] })
    const { steps } = (await hf.log('thread-1')).fold.state as { steps?: object }
    expect(steps).toBeUndefined()
    await thread.answer(pauseOf(paused), { approved: true }, { by: 'ada' })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'Refunded.' })
    expect(lines(outcome.state.messages)).toContain('json refund {"refunded":80}')
    expect(refunds).toEqual([80])
  })

  it('tells the model that it was denied, and why', async () => {
    const { refund, refunds } = makeRefund()
    const { thread, server } = await talk([ask, 'I am sorry.'], { tools: { refund } })
    const paused = await thread.run({ input: 'I want my money back' })
    await thread.answer(pauseOf(paused), { approved: false, reason: 'Too late.' })
    const outcome = await thread.run()
    expect(lines(outcome.state.messages)).toContain('denied refund Too late.')
    expect(server.requests[1]?.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('Too late.'),
    })
    expect(refunds).toEqual([])
  })

  it('runs with the arguments that the person edited, and with none that do not fit', async () => {
    const { refund, refunds } = makeRefund()
    const { thread, server } = await talk([ask, 'Half of it.'], { tools: { refund } })
    const pause = pauseOf(await thread.run({ input: 'I want my money back' }))
    const misfit = await thread.answer(pause, { approved: true, input: { amount: 'all' } }).catch((error) => error)
    expect(isHoldfastError(misfit, 'invalid-value')).toBe(true)
    await thread.answer(pause, { approved: true, input: { amount: 40 } })
    const outcome = await thread.run()
    expect(lines(outcome.state.messages)).toContain('json refund {"refunded":40}')
    expect(refunds).toEqual([40])
    // The model asked for 80, and would tell the customer of 80.
    expect(outcome.state.messages[2]?.parts[0]).toMatchObject({ edited: { amount: 40 } })
    expect(server.requests[1]?.messages.at(-1)?.['content']).toBe(
      'A person changed the arguments before the call was made, to {"amount":40}.\n{"refunded":40}',
    )
  })

  it('takes a result that the person brought about themselves', async () => {
    const { refund, refunds } = makeRefund()
    const { thread } = await talk([ask, 'Done.'], { tools: { refund } })
    const pause = pauseOf(await thread.run({ input: 'I want my money back' }))
    await thread.answer(pause, { approved: true, result: { refunded: 80, by: 'till' } })
    const outcome = await thread.run()
    expect(lines(outcome.state.messages)).toContain('json refund {"refunded":80,"by":"till"}')
    expect(refunds).toEqual([])
  })

  it('asks only for the calls that its rule names, and lets the others run meanwhile', async () => {
    const { refund, refunds } = makeRefund(({ amount }) => amount > 50)
    const both = calls(['refund', { amount: 20 }], ['refund', { amount: 80 }])
    const { thread } = await talk([both, 'Both.'], { tools: { refund } })
    const paused = await thread.run({ input: 'I want my money back' })
    expect(paused).toMatchObject({ pauses: [{ question: { input: { amount: 80 } } }] })
    expect(refunds).toEqual([20])
    await thread.answer(pauseOf(paused), { approved: true })
    expect(await thread.run()).toMatchObject({ output: 'Both.' })
    expect(refunds).toEqual([20, 80])
  })

  it('shows as waiting_tool when the tool runs after the answer', async () => {
    let seen: string | undefined
    const refund = tool({
      inputSchema: z.object({ amount: z.number() }),
      needsApproval: true,
      execute: async () => {
        seen = (await hf.threads()).threads[0]?.status
      },
    })
    const { thread, hf } = await talk([ask, 'Done.'], { tools: { refund } })
    await thread.answer(pauseOf(await thread.run({ input: 'Money' })), { approved: true })
    await thread.run()
    expect(seen).toBe('waiting_tool')
  })

  it('heeds a no even if its rule would not ask any more', async () => {
    let strict = true
    const { refund, refunds } = makeRefund(() => strict)
    const { thread } = await talk([ask, 'No.'], { tools: { refund } })
    const paused = await thread.run({ input: 'I want my money back' })
    strict = false
    await thread.answer(pauseOf(paused), { approved: false })
    expect(await thread.run()).toMatchObject({ output: 'No.' })
    expect(refunds).toEqual([])
  })

  it('can be a tool of the AI SDK', async () => {
    const { tool: aiTool } = await import('ai')
    const ran: unknown[] = []
    const refund = aiTool({
      inputSchema: z.object({ amount: z.number() }),
      needsApproval: async ({ amount }) => amount > 50,
      execute: async ({ amount }, { toolCallId }) => {
        ran.push([amount, toolCallId.startsWith('call_')])
        return 'ok'
      },
    })
    const { thread, model, hf } = await talk([ask, 'Refunded.'])
    const program = agent({ name: 'other', version: '1.0.0', model, tools: { refund } })
    const other = hf.thread(program, 'thread-2')
    await other.answer(pauseOf(await other.run({ input: 'Money' })), { approved: true })
    expect(await other.run()).toMatchObject({ output: 'Refunded.' })
    expect(ran).toEqual([[80, true]])
    expect(await thread.state()).toBeUndefined()
  })
})
