import { flow, type Holdfast, type ThreadIdInput } from '../../../index.js'
import { named } from '../runtime-context.js'

export const double = flow<number, number>(named('double'), async (ctx, n) => ctx.step('double', () => n * 2))

/** Doubles twice, one after the other, on threads of their own. */
export const fourfold = flow<number, number>(named('fourfold'), async (ctx, n) => {
  return ctx.run(double, 'second', await ctx.run(double, 'first', n))
})

export const asks = flow<string, string>(named('asks'), async (ctx, what) => `${await ctx.pause({ what })}`)
export const asker = flow<string, string>(named('asker'), async (ctx, what) => `said ${await ctx.run(asks, 'a', what)}`)

/** Waits for a signal that nobody sends, two threads below. */
export const waits = flow<string, unknown>(named('waits'), async (ctx) => ctx.receive('never'))
export const between = flow<string, unknown>(named('between'), async (ctx, what) => ctx.run(waits, 'below', what))
export const above = flow<string, unknown>(named('above'), async (ctx, what) => ctx.run(between, 'between', what))

export async function childrenOf(hf: Holdfast, parent: ThreadIdInput): Promise<readonly string[]> {
  return (await hf.threads({ parent })).threads.map(({ thread }) => thread as string).sort()
}

export async function statusOf(hf: Holdfast, thread: ThreadIdInput): Promise<readonly unknown[]> {
  const [found] = (await hf.threads({ thread })).threads
  return [found?.status, found?.wakeAt, found?.claimedBy]
}
