import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { type Driver, flow, Holdfast, isHoldfastError, LogStore } from 'holdfast'
import { expect, it } from 'vitest'

const RENEWAL_MS = 80

/** Renewals reach the store late, as over a slow connection beside the one that appends. */
function withSlowRenewals(driver: Driver, landed: number[]): Driver {
  return {
    ...driver,
    async renew(log, epoch, ms) {
      await sleep(RENEWAL_MS)
      landed.push(ms)
      return driver.renew(log, epoch, ms)
    },
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

it('does not take a thread again by a renewal that lands after its run let go', async () => {
  const landed: number[] = []
  const hf = new Holdfast(new LogStore(withSlowRenewals(await openMemory(), landed)))
  const program = flow<number, string>({ name: 'slow', version: '1.0.0' }, (ctx) =>
    // Ends while the first renewal, after a third of the lease, is on its way.
    ctx.step('work', () => sleep(130).then(() => 'done')),
  )
  await hf.thread(program, 't').run({ input: 1, lease: 300 })
  await sleep(2 * RENEWAL_MS)
  expect(landed.length).toBeGreaterThan(0)
  expect((await hf.threads()).threads[0]?.claimedBy).toBe(null)
})

it('does not take a thread again by a heartbeat of a step that nobody waits for any more', async () => {
  const hf = new Holdfast(new LogStore(await openMemory()))
  let late: unknown
  const program = flow<number, string>({ name: 'race', version: '1.0.0' }, (ctx) =>
    Promise.race([
      ctx.step('fast', () => 'fast'),
      ctx.step('slow', async ({ heartbeat }) => {
        await sleep(50)
        late = await heartbeat().catch((error: unknown) => error)
        return 'slow'
      }),
    ]),
  )
  await hf.thread(program, 't').run({ input: 1 })
  await sleep(100)
  expect(isHoldfastError(late, 'closed')).toBe(true)
  expect((await hf.threads()).threads[0]?.claimedBy).toBe(null)
})
