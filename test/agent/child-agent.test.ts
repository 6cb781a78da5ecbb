import { agent, agentTool, tool } from 'holdfast'
import type { ScriptedReply } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { serve, store } = setUp()

type Says = (heard: number) => ScriptedReply

/** A clerk who refunds with approval, and a boss who has the clerk do it: inside the call, or on a thread of its own. */
async function office(clerkSays?: Says, clerkOptions: object = {}) {
  const asked: string[] = []
  const { model } = await serve({
    reply: ({ messages }) => {
      const who = String(messages[0]?.['content'])
      const heard = messages.length - 1
      asked.push(who)
      if (who === 'boss') return heard === 1 ? calls(['clerk', { request: 'Refund 7.' }]) : { text: 'It is refunded.' }
      return clerkSays?.(heard) ?? (heard === 1 ? calls(['refund', { id: 7 }]) : { text: 'Refunded 7.' })
    },
  })
  const done: number[] = []
  const clerk = agent({
    name: 'clerk',
    version: '1.0.0',
    model,
    instructions: 'clerk',
    tools: {
      refund: tool({
        inputSchema: z.object({ id: z.number() }),
        effect: 'once',
        needsApproval: true,
        execute: ({ id }) => void done.push(id),
      }),
      look: tool({ inputSchema: z.object({}), effect: 'read', execute: () => 'nothing' }),
    },
    ...clerkOptions,
  })
  const bossWho = (runs: 'inside' | 'child') =>
    agent({
      name: 'boss',
      version: '1.0.0',
      model,
      instructions: 'boss',
      tools: { clerk: agentTool(clerk, { description: 'Refunds orders.', runs }) },
    })
  return { bossWho, clerk, done, asked }
}

const SAID = ['user: Go', 'call clerk {"request":"Refund 7."}', 'text clerk Refunded 7.', 'assistant: It is refunded.']

describe('an agent as a tool of another, on a thread of its own', () => {
  it('asks there, and its last word is the result of the call', async () => {
    const { bossWho, done, asked } = await office()
    const hf = await store()
    const thread = hf.thread(bossWho('child'), 't')
    const paused = await thread.run({ input: 'Go' })
    if (paused.status !== 'paused') throw new Error(paused.status)
    const [wait] = paused.waiting
    if (wait?.kind !== 'child') throw new Error(wait?.kind)
    expect([wait.program, paused.pauses]).toEqual(['clerk', []])
    const [pause] = (await hf.pauses()).pauses
    expect(pause).toMatchObject({ thread: wait.thread, kind: 'approval', question: { tool: 'refund' } })
    await hf.inspect(wait.thread).answer(pause?.id ?? '', { approved: true })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'It is refunded.' })
    expect(lines(outcome.state.messages)).toStrictEqual(SAID)
    expect([done, asked]).toStrictEqual([[7], ['boss', 'clerk', 'clerk', 'boss']])
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
  })

  it('is taken by a worker that has the agent, beside one that has the other', async () => {
    const { bossWho, clerk } = await office(() => ({ text: 'Refunded 7.' }))
    const boss = bossWho('child')
    const hf = await store()
    const thread = hf.thread(boss, 't')
    await thread.enqueue('Go')
    await using _ = hf.worker({ programs: [boss], handleSignals: false })
    await using __ = hf.worker({ programs: [clerk], handleSignals: false })
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'It is refunded.' })
  })

  it('tells of its limit as an error, with what it had done by then', async () => {
    const { bossWho } = await office(() => calls(['look']), { maxTurns: 1 })
    const outcome = await (await store()).thread(bossWho('child'), 't').run({ input: 'Go' })
    expect(lines(outcome.state.messages)[2]).toBe(
      'error-json clerk {"error":"The run reached its limit of 1 turns.","done":[{"tool":"look","output":{"type":"text","value":"nothing"}}]}',
    )
  })

  it.each([
    ['inside', 'child'],
    ['child', 'inside'],
  ] as const)('goes on as it began when the tool changes from %s to %s', async (before, after) => {
    const { bossWho, done, asked } = await office()
    const hf = await store()
    expect(await hf.thread(bossWho(before), 't').run({ input: 'Go' })).toMatchObject({ status: 'paused' })
    const [pause] = (await hf.pauses()).pauses
    await hf.inspect(pause?.thread ?? '').answer(pause?.id ?? '', { approved: true })
    const outcome = await hf.thread(bossWho(after), 't').run()
    expect(outcome).toMatchObject({ status: 'completed', output: 'It is refunded.' })
    expect(lines(outcome.state.messages)).toStrictEqual(SAID)
    expect([done, asked]).toStrictEqual([[7], ['boss', 'clerk', 'clerk', 'boss']])
    expect((await hf.threads()).threads).toHaveLength(before === 'child' ? 2 : 1)
  })

  it('is refused where it is neither', async () => {
    const { clerk } = await office()
    expect(() => agentTool(clerk, { description: 'x', runs: 'outside' as never })).toThrow(
      /must be 'inside' or 'child', not "outside"/,
    )
  })
})

describe('a tool that awaits another program', () => {
  it('runs again with what that gave back', async () => {
    const { clerk } = await office(() => ({ text: 'Refunded 7.' }))
    const { model } = await serve({
      reply: ({ messages }) => (messages.some(({ role }) => role === 'tool') ? { text: 'Done.' } : calls(['ask', {}])),
    })
    const ask = tool({
      inputSchema: z.object({}),
      effect: 'read',
      execute: async (_, { run, runId }) => `${runId.length > 0} ${await run(clerk, 'clerk', 'Refund 7.')}`,
    })
    const asks = agent({ name: 'asks', version: '1.0.0', model, tools: { ask } })
    const outcome = await (await store()).thread(asks, 't').run({ input: 'Go' })
    expect(lines(outcome.state.messages)).toContain('text ask true Refunded 7.')
  })
})
