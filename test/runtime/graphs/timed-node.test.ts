import { END, flow, graph, last, openHoldfast, START } from 'holdfast'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'

// More than it takes: on a busy machine an attempt may run out of time by itself.
const retry = { attempts: 10, initialMs: 1 }
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
const turns = async () => {
  for (let i = 0; i < 50; i++) await new Promise(setImmediate)
}

it('a transaction of an attempt that ran out of time does not commit beside that of the next', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-timed-'))
  try {
    await using hf = await openHoldfast(`sqlite:${join(folder, 'x.db')}`)
    const prepare = flow({ name: 'prepare', version: '1.0.0' }, async (ctx) => {
      await ctx.transaction('table', (sql) => sql.query('create table orders (n integer)'))
    })
    await hf.thread(prepare, 'prepare').run({ input: 1 })
    const shop = graph({ name: 'shop', version: '1.0.0', state: { placed: last<number>() } })
      .node('place', {
        timeoutMs: 800,
        retry,
        run: async (_, ctx) => ({
          placed: await ctx.transaction('insert', async (sql) => {
            await sql.query('insert into orders values (1)')
            if (attempts++ === 0) await aborted(ctx.abortSignal)
            return attempts
          }),
        }),
      })
      .edge(START, 'place')
      .edge('place', END)
    let attempts = 0
    expect(await hf.thread(shop, 'x').run({ input: {} })).toMatchObject({ status: 'completed' })
    const count = flow({ name: 'count', version: '1.0.0' }, (ctx) =>
      ctx.transaction('count', async (sql) => (await sql.query('select count(*) as n from orders')).rows),
    )
    expect(await hf.thread(count, 'count').run({ input: 1 })).toMatchObject({ output: [{ n: 1 }] })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

it('a step of an attempt that ran out of time is told so, and its late result is not recorded', async () => {
  let attempts = 0
  let wasAborted = false
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const program = graph({ name: 'late', version: '1.0.0', state: { seen: last<string>() } })
    .node('ask', {
      timeoutMs: 800,
      retry,
      run: async (_, ctx) => {
        const seen = await ctx.step('read', async ({ abortSignal: abort }) => {
          if (++attempts > 1) return 'second'
          await aborted(abort)
          wasAborted = true
          await held
          return 'late'
        })
        release()
        await turns()
        return { seen: `${seen} ${await ctx.pause('go on?')}` }
      },
    })
    .edge(START, 'ask')
    .edge('ask', END)
  await using hf = await openHoldfast('memory:')
  const thread = hf.thread(program, 'x')
  const paused = await thread.run({ input: {} })
  if (paused.status !== 'paused') throw new Error(paused.status)
  expect(wasAborted).toBe(true)
  await thread.answer(paused.pauses[0]?.id ?? '', 'yes')
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { seen: 'second yes' } })
  expect(attempts).toBeGreaterThan(1)
})
