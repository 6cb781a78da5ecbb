import { createHash } from 'node:crypto'
import { flow, openHoldfast } from 'holdfast'
import { ops } from 'holdfast/log'
import { expect, it } from 'vitest'

const { remove } = ops

const PAY = { effect: 'idempotent' } as const

it('a thread that was erased and begun anew under the same id has keys of its own', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  // A service that answers a key it knows with what it did then.
  const charges = new Map<string, number>()
  const pay = flow<number, number>({ name: 'pay', version: '1.0.0' }, (ctx, amount) =>
    ctx.step('charge', PAY, ({ idempotencyKey }) => {
      if (!charges.has(idempotencyKey)) charges.set(idempotencyKey, amount)
      return charges.get(idempotencyKey) as number
    }),
  )
  const charge = (input: number) => hf.thread(pay, 'order').run({ input, key: 'message-1' })
  expect(await charge(40)).toMatchObject({ status: 'completed', output: 40 })
  await hf.erase('order')
  expect(await charge(7)).toMatchObject({ status: 'completed', output: 7 })
  expect([...charges.values()]).toStrictEqual([40, 7])
})

it('a run that 0.1 began keeps the keys it had', async () => {
  await using hf = await openHoldfast('memory:', { telemetry: false })
  const keys: string[] = []
  const wait = flow<number, string>({ name: 'wait', version: '1.0.0' }, async (ctx) => {
    await ctx.receive('go')
    return ctx.step('charge', PAY, ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      return 'charged'
    })
  })
  for (const thread of ['new', 'old']) {
    await hf.thread(wait, thread).run({ input: 1, key: 'message-1' })
    await hf.thread(wait, thread).signal('go')
  }
  // What 0.1 wrote of a run says nothing of the life of its thread.
  const log = await hf.log('old')
  const claim = await log.claim({ owner: 'test', ms: 1000 })
  await claim.release(() => [{ kind: 'step', ops: [remove(['run', 'incarnation'])] }])
  for (const thread of ['new', 'old']) await hf.thread(wait, thread).run()
  expect(keys[1]).toBe(keyOf01('old'))
  expect(keys[0]).not.toBe(keyOf01('new'))
})

/** As 0.1 derived it. */
function keyOf01(thread: string): string {
  const parts = ['default', thread, 'main', 'message-1', 'charge', '0']
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
}
