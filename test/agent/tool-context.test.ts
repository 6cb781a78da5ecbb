import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agent, type OpenPause, tool } from 'holdfast'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { FAST, setUp } from './agent-setup.js'

const { serve, store } = setUp()
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-tool-context-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const call = { toolCalls: [{ id: 'c1', name: 'work', arguments: {} }] }

async function playTool(effect: 'read' | 'once', execute: Parameters<typeof tool>[0]['execute']) {
  let turn = 0
  const { model } = await serve({ reply: () => (turn++ === 0 ? call : { text: 'done' }) })
  const work = tool({ description: 'd', inputSchema: z.object({}), effect, execute } as never)
  const program = agent({ name: 'a', version: '1.0.0', model, retry: FAST, tools: { work } })
  const hf = await store(`sqlite:${join(folder, `${Math.random()}.db`)}`)
  return { hf, thread: hf.thread(program, 'thread-1') }
}

it('lets a tool ask, write SQL with its record, do steps and remember, knowing where it is', async () => {
  let runs = 0
  let steps = 0
  let seen: unknown
  const { hf, thread } = await playTool('read', async (_, context) => {
    runs++
    seen = [context.thread, context.branch, context.tenant, context.runId.length > 0]
    const price = await context.step('price', { effect: 'once' }, () => ++steps * 10)
    const answer = await context.pause<{ ok: boolean }>({ ask: `Pay ${price}?` })
    const rows = await context.transaction('book', async (sql) => {
      await sql.query('CREATE TABLE IF NOT EXISTS bookings (price)')
      await sql.query('INSERT INTO bookings VALUES (?)', [price])
      return (await sql.query('SELECT * FROM bookings')).rows.length
    })
    await context.store.scope({ user: 'ada' }).collection('prices').put('last', { price })
    return { answer, rows }
  })
  const asked = (await thread.run({ input: 'go' })) as { status: string; pauses: readonly OpenPause[] }
  expect(asked).toMatchObject({ status: 'paused', pauses: [{ question: { ask: 'Pay 10?' } }] })
  await thread.answer(asked.pauses[0]?.id as string, { ok: true }, { by: 'ada' })
  expect(await thread.run()).toMatchObject({ status: 'completed' })
  expect(seen).toEqual(['thread-1', 'main', 'default', true])
  expect([runs, steps]).toEqual([2, 1])
  expect(JSON.stringify((await thread.state())?.messages)).toContain('"rows":1')
  const found = await hf.store.scope({ user: 'ada' }).collection('prices').get('last')
  expect(found?.value).toEqual({ price: 10 })
})

it('refuses a question of a tool that may have done something before it asked', async () => {
  const { thread } = await playTool('once', async (_, { pause }) => pause('Really?'))
  // It may have done something before: a person is asked what, and told what is wrong with the tool.
  expect(await thread.run({ input: 'go' })).toMatchObject({
    status: 'paused',
    pauses: [{ kind: 'unknown-effect', question: { error: expect.stringContaining(`effect is 'once'`) } }],
  })
})
