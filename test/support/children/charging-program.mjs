import { appendFile } from 'node:fs/promises'
import { flow } from 'holdfast'

/** Looks, waits for what is between, and charges: one line in a file that says who did. */
export function charging(file, who, between) {
  return flow({ name: 'charging', version: '1.0.0' }, async (ctx) => {
    await ctx.step('look', () => 1)
    await between?.()
    await ctx.step('charge', { effect: 'idempotent', retry: { attempts: 1 } }, () =>
      appendFile(file, `${who} ${ctx.thread}\n`),
    )
  })
}
