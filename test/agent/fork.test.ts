import { tenantUsage, tool } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { talk } = setUp()

describe('a fork of a conversation', () => {
  it('asks for permission for what would run, not for what the model wrote', async () => {
    const paid: unknown[] = []
    const inputSchema = z.object({ to: z.string(), amount: z.number().default(1_000_000) })
    const pay = tool({ inputSchema, execute: (input) => paid.push(input) })
    const { thread } = await talk([calls(['pay', { to: 'mallory' }]), 'Paid.', 'Paid.'], { tools: { pay } })
    await thread.run({ input: 'Pay' })
    const asked = (await thread.history()).at(-2)?.id as string
    const fork = await thread.at(asked).fork()
    const paused = await fork.run()
    if (paused.status !== 'paused') throw new Error(JSON.stringify(paused))
    expect(paused.pauses).toMatchObject([
      { kind: 'permission', question: { input: { name: 'pay', ready: { to: 'mallory', amount: 1_000_000 } } } },
    ])
    await fork.answer(paused.pauses[0]?.id ?? '', { allowed: true })
    expect(await fork.run()).toMatchObject({ status: 'completed' })
    expect(paid).toHaveLength(2)
  })

  it('charges no card again without permission, and counts only what it used itself', async () => {
    let charged = 0
    const charge = tool({ inputSchema: z.object({}), execute: () => ({ receipt: ++charged }) })
    const usage = { input: 100, output: 10 }
    const { thread, hf } = await talk(
      ({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? { text: `Paid: ${String(messages.at(-1)?.['content'])}`, usage }
          : { ...(calls(['charge']) as object), usage },
      { tools: { charge } },
    )
    const first = await thread.run({ input: 'Pay' })
    expect(first).toMatchObject({ output: 'Paid: {"receipt":1}' })
    expect(await tenantUsage(hf)).toMatchObject({ calls: 2 })

    // The entry in which the model asked for the call: oldest first it is the one after claim and input.
    const history = (await thread.history()).toReversed()
    const asked = []
    for (const { id } of history) {
      const { loop } = (await thread.at(id).state()) as unknown as { loop?: { next: string } }
      if (loop?.next === 'tools') asked.push(id)
    }
    const fork = await thread.at(asked[0] as string).fork()
    const paused = await fork.run()
    if (paused.status !== 'paused') throw new Error(JSON.stringify(paused))
    expect(paused.pauses).toMatchObject([{ kind: 'permission', question: { input: { name: 'charge' } } }])
    await fork.answer(paused.pauses[0]?.id ?? '', { allowed: false, result: { receipt: 'as before' } })
    const second = await fork.run()
    expect(second).toMatchObject({ status: 'completed', output: 'Paid: {"receipt":"as before"}' })
    expect(charged).toBe(1)
    expect(lines((await thread.state())?.messages ?? [])).toContain('json charge {"receipt":1}')
    expect(second.state.usage.calls).toBe(2)
    expect(await tenantUsage(hf)).toMatchObject({ calls: 3, total: 330 })
  })
})
