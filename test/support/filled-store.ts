import { flow, Holdfast, type KeyOptions } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import type { Seeded } from './seeded.js'

const { push, set } = ops

/** A flow with everything that leaves traces: steps, store writes, a large value, a question. */
export const order = flow({ name: 'order', version: '1.0.0' }, async (ctx, input: { id: string; ask: boolean }) => {
  const offer = await ctx.step('offer', async () => ({ id: input.id, text: `offer ${'x'.repeat(1500)}${input.id}` }))
  await ctx.step('note', { effect: 'idempotent' }, async (step) => {
    step.store.scope({ user: input.id }).collection('notes').put('last', { offer: offer.id })
    return 'noted'
  })
  if (input.ask) {
    const answer = await ctx.pause('May I?')
    return { id: input.id, answer }
  }
  return { id: input.id }
})

/** A Holdfast over a driver that stays open. Small thresholds, so that little data has large values. */
export function over(driver: Driver, keys?: KeyOptions): Holdfast {
  return new Holdfast(new LogStore(driver, { blobThreshold: 1024, ...(keys ? { keys } : {}) }))
}

/** Fills a store with threads, forks, tags, prunes, erased threads, blobs and items, by the dice. */
export async function fillStore(driver: Driver, dice: Seeded, keys?: KeyOptions): Promise<void> {
  const all = over(driver, keys)
  for (const name of ['one', 'two/ü']) {
    const hf = all.tenant(name)
    for (let i = 0; i < 2; i++) {
      const id = { user: `u${i}`, session: 's:1' }
      await hf.thread(order, id).run({ input: { id: `u${i}`, ask: i === 0 } })
      if (dice.chance(0.5)) await hf.log(id).then((log) => log.fork({ branch: 'what-if', at: dice.below(2) }))
    }
    for (let i = 0; i < 2; i++) await fillPlain(hf, `plain-${i}`, dice)
    await hf.thread(order, 'gone').run({ input: { id: 'gone', ask: false } })
    await hf.erase('gone', { reason: 'because "so"' })
    await fillItems(hf, dice)
  }
}

async function fillPlain(hf: Holdfast, id: string, dice: Seeded): Promise<void> {
  const log = await hf.log(id)
  const turns = 3 + dice.below(90)
  const drafts = Array.from({ length: turns }, (_, i) => {
    const large = dice.chance(0.05) ? { blob: `${'y'.repeat(1200)}${dice.below(5)}` } : {}
    return {
      kind: 'turn',
      ops: [push(['messages'], { i, text: 'hello', ...large }), set(['n'], i)],
      ...(dice.chance(0.2) ? { keyframe: true } : {}),
      index: { status: i % 2 ? 'odd' : 'even', metadata: { i, odd: i % 2 === 1 } },
    }
  })
  while (drafts.length > 0) {
    const some = drafts.splice(0, 1 + dice.below(20))
    await log.update(() => some)
  }
  if (dice.chance(0.7)) await log.tag('kept', dice.below(turns))
  if (dice.chance(0.5)) await log.fork({ branch: 'side', at: dice.below(turns) })
  if (dice.chance(0.7)) await hf.prune(id, dice.below(turns), { evenTagged: true })
}

async function fillItems(hf: Holdfast, dice: Seeded): Promise<void> {
  const facts = hf.store.scope({ user: 'ada' }).collection<{ n: number }>('facts', { index: ['n'] })
  for (let i = 0; i < 6; i++) await facts.put(`k${i}`, { n: dice.below(4) }, dice.chance(0.3) ? { ttlMs: 3.6e6 } : {})
  for (let i = 0; i < 2; i++) await facts.put(`k${dice.below(6)}`, { n: 9 })
  await facts.delete(`k${dice.below(6)}`)
}
