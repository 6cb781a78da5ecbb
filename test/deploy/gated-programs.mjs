// What the deployed processes run in tests. A step waits until the file that its input names is there.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { flow } from 'holdfast'

export const gated = flow({ name: 'gated', version: '1.0.0' }, (ctx, input) =>
  ctx.step('gate', { effect: 'read' }, async () => {
    while (!existsSync(input.gate)) await sleep(20)
    return process.pid
  }),
)
