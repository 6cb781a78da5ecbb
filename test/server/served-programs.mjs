// What the tests of `holdfast serve` serve. A step waits until the file that its input names is there.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { flow } from 'holdfast'

export const gated = flow({ name: 'gated', version: '1.0.0' }, async (ctx, input) => {
  const first = await ctx.step('first', async () => ({ by: process.pid }))
  await ctx.step('gate', { effect: 'read' }, async () => {
    while (!existsSync(input.gate)) await sleep(20)
  })
  const last = await ctx.step('last', async () => ({ by: process.pid }))
  return { first: first.by, last: last.by }
})
