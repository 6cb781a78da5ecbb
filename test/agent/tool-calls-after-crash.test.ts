import { agent, type Effect, Holdfast, tool, type Tool } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, FAST, lines, setUp } from './agent-setup.js'

const { serve } = setUp()

const inputSchema = z.object({ amount: z.number() })
const ask = calls(['refund', { amount: 80 }])

/** Stops in the midst of a refund that nobody knows the end of, and resumes with other tools. */
async function resume(begun: Partial<Tool>, tools: Record<string, Tool>) {
  const { model } = await serve({ reply: [ask, 'Done.'] })
  const driver = await openDriver('memory:')
  const [hf, other] = [new Holdfast(new LogStore(driver)), new Holdfast(new LogStore(driver))]
  const stop = new AbortController()
  const refunds: string[] = []
  const refund = tool({
    inputSchema,
    ...begun,
    execute: (_, { idempotencyKey }) => {
      refunds.push(idempotencyKey)
      stop.abort()
      return new Promise(() => {})
    },
  })
  const base = { name: 'support', version: '1.0.0', model, retry: FAST }
  const first = hf.thread(agent({ ...base, tools: { refund } }), 't')
  await expect(first.run({ input: 'My money, please', signal: stop.signal })).rejects.toThrow('stopped')
  // Another process: in its own, the call is known to be under way.
  const thread = other.thread(agent({ ...base, tools }), 't')
  return { thread, outcome: await thread.run(), refunds }
}

describe('a tool call that was begun', () => {
  const again = (options: Partial<Tool> = {}) => {
    const calls: string[] = []
    const refund = tool({
      inputSchema,
      ...options,
      execute: (_, { idempotencyKey }) => {
        calls.push(idempotencyKey)
        return 'refunded'
      },
    })
    return { refund, calls }
  }

  it.each(['read', 'idempotent'] as const)(
    'as once is put to a person, though it is %s now',
    async (effect: Effect) => {
      const { refund, calls } = again({ effect })
      const { outcome } = await resume({ effect: 'once' }, { refund })
      expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
      expect(calls).toStrictEqual([])
    },
  )

  it('is not put up for approval, because it may have happened', async () => {
    const { refund, calls } = again({ needsApproval: true })
    const { outcome, thread } = await resume({}, { refund })
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    expect(outcome.pauses).toMatchObject([{ kind: 'unknown-effect' }])
    await thread.answer(outcome.pauses[0].id, { outcome: 'succeeded', result: 'refunded by hand' })
    expect(lines((await thread.run()).state.messages)).toContain('text refund refunded by hand')
    expect(calls).toStrictEqual([])
  })

  it('is asked about by the key it was begun with', async () => {
    const asked: string[] = []
    const reconcile = (key: string) => {
      asked.push(key)
      return { outcome: 'executed' as const, result: 'refunded' }
    }
    const { refund, calls } = again({ effect: 'reconcilable', reconcile, idempotencyKey: () => 'now' })
    const { outcome, refunds } = await resume(
      { effect: 'reconcilable', reconcile, idempotencyKey: () => 'then' },
      { refund },
    )
    expect(outcome).toMatchObject({ status: 'completed' })
    expect([asked, refunds, calls]).toStrictEqual([['then'], ['then'], []])
  })

  it('that may be repeated is not called undone because its arguments no longer fit', async () => {
    const strict = z.object({ amount: z.number(), reason: z.string() })
    const { refund, calls } = again({ effect: 'idempotent', inputSchema: strict })
    const { outcome } = await resume({ effect: 'idempotent' }, { refund })
    expect(outcome).toMatchObject({ status: 'incompatible', reason: expect.stringContaining('may have been made') })
    expect(lines(outcome.state.messages).join()).not.toContain('nothing was done')
    expect(calls).toStrictEqual([])
  })

  it('of a tool that is gone ends as incompatible, and says that it was begun', async () => {
    const { outcome } = await resume({}, {})
    expect(outcome).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('It was begun, and its outcome is unknown.'),
    })
  })
})
