import { flow, openHoldfast, type Outcome } from 'holdfast'
import { expect, it } from 'vitest'

const pay = flow({ name: 'pay', version: '1.0.0' }, async (ctx) => {
  await ctx.pause('Pay?')
  return ctx.step('pay', { effect: 'once' }, () => 'paid')
})

const shop = flow({ name: 'shop', version: '1.0.0' }, async (ctx) => {
  await ctx.step('look', { effect: 'read' }, () => 1)
  return ctx.step('pay', { effect: 'once' }, () => 'paid')
})

function asked(outcome: Outcome<unknown, unknown>) {
  if (outcome.status !== 'paused') throw new Error(outcome.status)
  return outcome.pauses[0] ?? { id: '', question: null }
}

it('whoever permits an effect on a fork is told that the other branch has done it since they parted', async () => {
  await using hf = await openHoldfast('memory:')
  const main = hf.thread(pay, 't')
  const question = asked(await main.run({ input: 1 }))
  const [newest] = await main.history({ limit: 1 })
  const fork = await main.at(newest?.id ?? '').fork()
  await fork.answer(question.id, true)
  const before = asked(await fork.run())
  expect(before).toMatchObject({ kind: 'permission', question: { step: 'pay', begunThere: false } })

  await main.answer(question.id, true)
  expect((await main.run()).status).toBe('completed')
  // Said before it was known: it counts for another question.
  await fork.answer(before.id, { allowed: true })
  const after = asked(await fork.run())
  expect(after).toMatchObject({ kind: 'permission', question: { step: 'pay', begunThere: true } })
  await fork.answer(after.id, { allowed: true })
  expect(await fork.run()).toMatchObject({ status: 'completed', output: 'paid' })
})

it('whoever permits an effect is told that nobody knows whether the other branch did it, once that was pruned', async () => {
  await using hf = await openHoldfast('memory:')
  const main = hf.thread(shop, 't')
  await main.run({ input: 1 })
  const looked = (await main.history()).find(({ steps }) => steps?.some(({ name }) => name === 'look'))
  const known = await main.at(looked?.id ?? '').fork()
  const unknown = await main.at(looked?.id ?? '').fork()
  expect(asked(await known.run())).toMatchObject({ question: { begunThere: true } })
  await main.run({ input: 2 })
  const [newest] = await main.history({ limit: 1 })
  await hf.prune('t', newest?.seq ?? 0)
  expect(asked(await unknown.run())).toMatchObject({
    kind: 'permission',
    question: { step: 'pay', begunThere: 'unknown' },
  })
})
