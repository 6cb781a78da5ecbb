import { flow, openHoldfast } from 'holdfast'
import { afterEach, expect, it } from 'vitest'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const hf of open.splice(0)) await hf.close()
})

it('counts a run whose thread another took, and none that ends well or fails by itself', async () => {
  const hf = await openHoldfast('memory:')
  open.push(hf)
  const program = flow<string, string>({ name: 'p', version: '1.0.0' }, async (ctx, what) => {
    await ctx.step('work', { retry: { attempts: 1 } }, async () => {
      if (what === 'fails') throw new Error('by itself')
      if (what !== 'is taken') return
      const claim = await (await hf.log('taken')).claim({ owner: 'another', ms: 10_000, force: true })
      await claim.release()
    })
    return 'done'
  })
  expect(await hf.thread(program, 'well').run({ input: 'well' })).toMatchObject({ status: 'completed' })
  expect(await hf.thread(program, 'fails').run({ input: 'fails' })).toMatchObject({ status: 'failed' })
  expect(hf.counted?.counters).not.toHaveProperty('holdfast.leases.lost')
  await expect(hf.thread(program, 'taken').run({ input: 'is taken' })).rejects.toMatchObject({ code: 'fenced' })
  expect(hf.counted?.counters).toMatchObject({ 'holdfast.leases.lost': 1 })
})
