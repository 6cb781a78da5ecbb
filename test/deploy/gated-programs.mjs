// What the deployed processes run in tests. A step leaves a file that says it has begun, and waits until the file that its
// input names is there.
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { flow } from 'holdfast'

export const gated = flow({ name: 'gated', version: '1.0.0' }, (ctx, input) =>
  ctx.step('gate', { effect: 'read' }, async () => {
    writeFileSync(`${input.gate}-${ctx.thread}`, '')
    while (!existsSync(input.gate)) await sleep(20)
    return process.pid
  }),
)
