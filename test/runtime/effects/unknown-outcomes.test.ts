import { END, flow, graph, last, openHoldfast, START } from 'holdfast'
import { expect, it } from 'vitest'
import { z } from 'zod'

const state = { said: last<string>(undefined, { initial: '' }) }

it.each([
  { what: 'as it is', wrap: (error: unknown) => error },
  { what: 'wrapped', wrap: (error: unknown) => new Error('no payment', { cause: error }) },
])(
  'a step whose outcome is unknown is found out when its node, which threw that $what, is resumed',
  async ({ wrap }) => {
    await using hf = await openHoldfast('memory:', { telemetry: false })
    const keys: string[] = []
    const program = graph({ name: 'pays', version: '1.0.0', state, retry: { attempts: 1 } })
      .node('pay', async (_, ctx) => {
        const charging = ctx.step('charge', { effect: 'idempotent', retry: { attempts: 1 } }, ({ idempotencyKey }) => {
          if (keys.push(idempotencyKey) === 1) throw new Error('timed out')
          return 'charged'
        })
        return {
          said: await charging.catch((error: unknown) => {
            throw wrap(error)
          }),
        }
      })
      .edge(START, 'pay')
      .edge('pay', END)
    const thread = hf.thread(program, 't')
    expect(await thread.run({ input: {} })).toMatchObject({ status: 'failed' })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { said: 'charged' } })
    expect(keys).toStrictEqual([keys[0], keys[0]])
  },
)

it('a failed step is tried anew when its node, which wrapped the error, is resumed', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  let calls = 0
  const program = graph({ name: 'looks', version: '1.0.0', state, retry: { attempts: 1 } })
    .node('look', async (_, ctx) => {
      try {
        return { said: await ctx.step('find', { retry: { attempts: 1 } }, () => (++calls === 1 ? fail() : 'found')) }
      } catch (cause) {
        throw new Error('nothing found', { cause })
      }
    })
    .edge(START, 'look')
    .edge('look', END)
  const thread = hf.thread(program, 't')
  expect(await thread.run({ input: {} })).toMatchObject({ status: 'failed' })
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { said: 'found' } })
})

it('a step that was caught stays failed when one that had its error as cause is tried anew', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  const called: string[] = []
  const program = flow({ name: 'falls back', version: '1.0.0' }, async (ctx) => {
    const cause = await ctx
      .step('first', { retry: { attempts: 1 } }, () => {
        called.push('first')
        return fail()
      })
      .catch((e) => e)
    return ctx.step('second', { retry: { attempts: 1 } }, () => {
      if (called.push('second') === 2) throw new Error('both failed', { cause })
      return 'second'
    })
  })
  const thread = hf.thread(program, 't')
  expect(await thread.run({ input: 1 })).toMatchObject({ status: 'failed' })
  expect(await thread.run()).toMatchObject({ status: 'completed', output: 'second' })
  expect(called).toStrictEqual(['first', 'second', 'second'])
})

function fail(): never {
  throw new Error('not there')
}

it.each([
  ['text where an update is wanted', 'paid'],
  ['a list', [1]],
  ['a key that the state does not have', { paid: true }],
  ['a value that its schema refuses', { said: 5 }],
])('what a person says that a node did is asked for again where the state cannot take it: %s', async (_, result) => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  let calls = 0
  const said = last(z.string(), { initial: '' })
  const program = graph({ name: 'pays once', version: '1.0.0', state: { said } })
    .node('pay', {
      effect: 'once',
      run: () => {
        calls++
        throw new Error('timed out')
      },
    })
    .edge(START, 'pay')
    .edge('pay', END)
  const thread = hf.thread(program, 't')
  const asked = await thread.run({ input: {} })
  const [pause] = asked.status === 'paused' ? asked.pauses : []
  expect(pause).toMatchObject({ kind: 'unknown-effect' })
  await thread.answer(pause!.id, { outcome: 'succeeded', result })
  const again = await thread.run()
  expect(again).toMatchObject({
    status: 'paused',
    pauses: [{ id: pause!.id, refused: { reason: expect.stringMatching(/./) } }],
  })
  await thread.answer(pause!.id, { outcome: 'succeeded', result: { said: 'paid' } })
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { said: 'paid' } })
  expect(calls).toBe(1)
})

it('a node that a person says has happened, with nothing to add, leaves the state as it is', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  const program = graph({ name: 'pays once', version: '1.0.0', state })
    .node('pay', { effect: 'once', run: () => Promise.reject(new Error('timed out')) })
    .edge(START, 'pay')
    .edge('pay', END)
  const thread = hf.thread(program, 't')
  const asked = await thread.run({ input: { said: 'before' } })
  const [pause] = asked.status === 'paused' ? asked.pauses : []
  await thread.answer(pause!.id, { outcome: 'succeeded' })
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { said: 'before' } })
})
