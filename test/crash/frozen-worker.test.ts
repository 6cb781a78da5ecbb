import { openHoldfast, type Holdfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { queueInput } from '../../scripts/torture/queue-input.mjs'
import { connectService } from '../../scripts/torture/service-client.mjs'
import { startFleet, startService } from '../../scripts/torture/worker-fleet.mjs'
import { makeWorkerPrograms } from '../../scripts/torture/worker-programs.mjs'
import { durableBackends } from '../support/backends.js'
import { freeze } from '../support/freeze.js'
import { until } from '../support/until.js'

const LEASE_MS = 700
const THREADS = ['one', 'two', 'three']

/** All that is kept of a thread: every entry with its hash, its row in the index, and what its steps wrote. */
async function everythingOf(hf: Holdfast, thread: string) {
  const log = await hf.log(thread)
  const entries = []
  for await (const { hash, header } of log.entries()) entries.push({ hash, kind: header.kind, epoch: header.epoch })
  return {
    entries,
    state: log.fold.state,
    row: (await hf.threads({ thread })).threads,
    items: (await hf.store.scope({ session: thread }).collection('held').list()).items,
  }
}

for (const backend of await durableBackends()) {
  describe.skipIf(backend.missing)(`a frozen worker on ${backend.name}`, () => {
    afterAll(() => backend.cleanup())

    it('changes nothing when it wakes up after its threads were taken over and finished', {
      timeout: 600_000,
    }, async () => {
      const url = await backend.fresh()
      const service = await startService()
      const outside = connectService(service.url)
      const fleet = startFleet({ url, service: service.url, leaseMs: LEASE_MS, pollMs: 50 })
      await using hf = await openHoldfast(url)
      const { slow } = makeWorkerPrograms({ service: service.url })
      try {
        const frozen = await fleet.add()
        for (const thread of THREADS) await queueInput(hf, slow, thread, { session: thread, hold: 'until released' })
        // In the middle of a step: the service has done it and has not answered yet.
        await until(async () => (await outside.ledger()).effects.length === THREADS.length)
        await freeze(frozen.child, url)
        // Usually the first: unless the machine stood still for longer than the lease before.
        const epochs = await Promise.all(THREADS.map(async (thread) => (await hf.log(thread)).fold.epoch))
        await outside.release('until released')

        const successor = await fleet.add()
        for (const thread of THREADS) {
          const outcome = await hf.inspect(thread).waitFor({ timeoutMs: 60_000 })
          const output = { first: frozen.name, held: successor.name, after: successor.name }
          expect(outcome).toMatchObject({ status: 'completed', output })
        }
        const before = await Promise.all(THREADS.map((thread) => everythingOf(hf, thread)))
        const seenOutside = await outside.ledger()
        for (const [i, { entries, items, row }] of before.entries()) {
          expect(entries.at(-1)?.epoch).toBeGreaterThan(epochs[i] as number)
          expect(items.map(({ value }) => value)).toEqual([{ worker: successor.name }])
          expect(row).toMatchObject([{ status: 'completed', claimedBy: null, wakeAt: null }])
        }

        // Its replies have long arrived: it goes on where it was, and learns that the threads are no longer its own.
        const stopped = until(() => frozen.holds.size === 0)
        frozen.child.kill('SIGCONT')
        await stopped
        const stops = new Set(frozen.lines.filter((line) => line.startsWith('stopped')))
        expect(stops).toEqual(new Set(THREADS.map((thread) => `stopped thread "${thread}"`)))
        expect(frozen.lines.filter((line) => line.startsWith('ended'))).toEqual([])

        expect(await Promise.all(THREADS.map((thread) => everythingOf(hf, thread)))).toEqual(before)
        // Its own calls had reached the service before it froze; it made none after.
        expect(await outside.ledger()).toEqual(seenOutside)
        for (const thread of THREADS) expect((await hf.verify(thread))?.problems).toEqual([])

        // And it is as good as new for other threads.
        successor.child.kill('SIGTERM')
        await successor.exited
        await queueInput(hf, slow, 'next', { session: 'next' })
        const next = await hf.inspect('next').waitFor({ timeoutMs: 60_000 })
        expect(next).toMatchObject({ status: 'completed', output: { after: frozen.name } })
      } finally {
        await fleet.abandon()
        await service.stop()
      }
    })
  })
}
