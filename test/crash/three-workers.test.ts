import { openHoldfast } from 'holdfast'
import { ops } from 'holdfast/log'
import { startChaosProxy } from 'holdfast/testing'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { startPostgres, startRedis } from '../../scripts/services/index.mjs'
import { queueInput } from '../../scripts/torture/queue-input.mjs'
import { connectService } from '../../scripts/torture/service-client.mjs'
import { type FleetWorker, startFleet, startService } from '../../scripts/torture/worker-fleet.mjs'
import { makeWorkerPrograms } from '../../scripts/torture/worker-programs.mjs'
import { durableBackends } from '../support/backends.js'
import { freeze } from '../support/freeze.js'
import { losePower, mark } from '../support/lost-power.js'
import { orUndefined } from '../support/servers.js'
import { until } from '../support/until.js'

// Long enough that a slow machine loses no lease without a fault, short enough to wait for its end.
const LEASE_MS = 4000
const PLACES = 4
const TIMEOUT = { timeout: 600_000 }
const backends = (await durableBackends()).filter(({ name }) => name !== 'file')
const servers = backends.filter(({ name }) => name !== 'SQLite')

const toClose: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close()
})
afterAll(async () => {
  for (const backend of backends) await backend.cleanup()
})

/** A store, a service that counts what is done, and worker processes with a few places each. */
async function openScene(url: string) {
  const service = await startService()
  toClose.push(() => service.stop())
  const hf = await openHoldfast(url)
  toClose.push(() => hf.close())
  const fleet = startFleet({ url, service: service.url, pollMs: 50, leaseMs: LEASE_MS, concurrency: PLACES })
  toClose.push(() => fleet.abandon())
  const outside = connectService(service.url)
  const { slow } = makeWorkerPrograms({ service: service.url })
  const calls = async (thread: string, step: string) =>
    (await outside.ledger()).calls.filter((call) => call.session === thread && call.step === step).length
  return {
    hf,
    fleet,
    outside,
    /** Leaves threads of which each stays in the middle of an effect until `hold` is released, and waits until all are there. */
    async hold(threads: readonly string[], hold: string) {
      for (const thread of threads) await queueInput(hf, slow, thread, { session: thread, hold })
      for (const thread of threads) await until(async () => (await calls(thread, 'hold')) > 0)
    },
    /** Others have begun again what these were in the middle of. */
    async takenOver(threads: readonly string[]) {
      for (const thread of threads) await until(async () => (await calls(thread, 'hold')) > 1)
    },
    /** Every thread is completed, verifies, and had each of its effects once. */
    async check(threads: readonly string[]) {
      const fresh = await openHoldfast(url)
      toClose.push(() => fresh.close())
      for (const thread of threads) {
        await until(async () => (await fresh.inspect(thread).waitFor({ timeoutMs: 60_000 })).status === 'completed')
        expect((await fresh.verify(thread))?.problems).toEqual([])
      }
      const { effects } = await outside.ledger()
      const happened = effects.filter(({ session }) => threads.includes(session))
      expect(happened.map(({ session, step }) => `${session} ${step}`).sort()).toEqual(
        threads.flatMap((thread) => [`${thread} after`, `${thread} hold`]).sort(),
      )
    },
  }
}

const threadsOf = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`)
const isFull = ({ holds }: FleetWorker) => holds.size === PLACES

for (const backend of backends) {
  describe.skipIf(backend.missing)(`three worker processes on ${backend.name}`, () => {
    it(
      'finish everything when one is killed, one is stopped and one stands still for longer than its lease',
      TIMEOUT,
      async () => {
        const url = await backend.fresh()
        const { fleet, outside, hold, takenOver, check } = await openScene(url)
        const [killed, stopped, frozen] = await Promise.all([fleet.add(), fleet.add(), fleet.add()])
        const threads = threadsOf('t', 3 * PLACES)
        await hold(threads, 'first')
        await until(() => fleet.workers.every(isFull))
        const orphans = [...killed.holds, ...frozen.holds]
        await fleet.kill(killed)
        await freeze(frozen.child, url)
        const successors = [await fleet.add(), await fleet.add()]
        await takenOver(orphans)

        const terminating = stopped.line('terminating')
        stopped.child.kill('SIGTERM')
        await terminating
        await outside.release('first')
        expect(await stopped.exited).toBe(0)
        await check(threads)

        // The frozen one learns that nothing of it is its own anymore, and is as good as new.
        const callsBefore = (await outside.ledger()).calls.length
        frozen.child.kill('SIGCONT')
        await until(() => frozen.holds.size === 0)
        expect((await outside.ledger()).calls).toHaveLength(callsBefore)
        for (const { child, exited } of successors) {
          child.kill('SIGTERM')
          expect(await exited).toBe(0)
        }
        fleet.workers.splice(0, fleet.workers.length, frozen)
        await hold(threadsOf('next', PLACES), 'next')
        await outside.release('next')
        await check([...threads, ...threadsOf('next', PLACES)])
        await fleet.stop()
      },
    )
  })
}

for (const backend of servers) {
  describe.skipIf(backend.missing)(`three worker processes on ${backend.name}, over a bad network`, () => {
    it('finish everything when the connections of one stall and those of another are reset', TIMEOUT, async () => {
      const url = await backend.fresh()
      const { hostname, port } = new URL(url)
      const proxy = async () => {
        const started = await startChaosProxy({ target: { host: hostname, port: Number(port) } })
        toClose.push(() => started.close())
        return started
      }
      const [one, two] = [await proxy(), await proxy()]
      const { fleet, outside, hold, takenOver, check } = await openScene(url)
      const [stalled, reset] = await Promise.all([fleet.add({ url: one.url(url) }), fleet.add({ url: two.url(url) })])
      const threads = threadsOf('t', 2 * PLACES)
      await hold(threads, 'first')
      await until(() => isFull(stalled) && isFull(reset))
      const third = await fleet.add({ concurrency: 5 * PLACES })
      const more = threadsOf('more', PLACES)
      await hold(more, 'first')

      one.stall()
      await takenOver([...stalled.holds])
      two.reset()
      await outside.release('first')
      await check([...threads, ...more])

      // Both work by themselves once the network is back: neither has places for all.
      await one.heal()
      third.child.kill('SIGTERM')
      expect(await third.exited).toBe(0)
      fleet.workers.splice(fleet.workers.indexOf(third), 1)
      const next = threadsOf('next', 2 * PLACES)
      await hold(next, 'next')
      await outside.release('next')
      await check(next)
      await fleet.stop()
    })
  })
}

const restarts = [
  {
    name: 'Postgres is stopped immediately and restarted',
    start: async () => {
      const { url, stop, restart } = await startPostgres()
      return { url, stop, restart: () => restart({ immediate: true }) }
    },
  },
  {
    name: 'Redis with fsync always is killed and restarted',
    start: async () => {
      const { url, stop, kill, restart } = await startRedis({ appendfsync: 'always' })
      return { url, stop, restart: () => kill('SIGKILL').then(() => restart()) }
    },
  },
]

describe('three worker processes', () => {
  it.each(restarts)('finish everything when $name, and go on by themselves', TIMEOUT, async ({ start }) => {
    const server = await orUndefined(start)
    if (server === undefined) return
    toClose.push(() => server.stop())
    const { fleet, outside, hold, check } = await openScene(server.url)
    await Promise.all([fleet.add(), fleet.add(), fleet.add()])
    const threads = threadsOf('t', 3 * PLACES)
    await hold(threads, 'first')
    await until(() => fleet.workers.every(isFull))
    await server.restart()
    await outside.release('first')
    await check(threads)

    // All of them work: two would not have the places.
    const next = threadsOf('next', 3 * PLACES)
    await hold(next, 'next')
    await outside.release('next')
    await check(next)
    await fleet.stop()
  })

  it(
    'finish everything when Redis with fsync everysec loses what it acknowledged, which is reported',
    TIMEOUT,
    async () => {
      const server = await orUndefined(() => startRedis({ appendfsync: 'everysec' }))
      if (server === undefined) return
      toClose.push(() => server.stop())
      const { hf, fleet, outside, hold, check } = await openScene(server.url)
      await Promise.all([fleet.add(), fleet.add(), fleet.add()])
      const lost = threadsOf('lost', PLACES)
      const kept = threadsOf('kept', 2 * PLACES)
      await hold(lost, 'lost')
      await hold(kept, 'kept')
      const at = await mark(server)
      // These go on to their end, which is acknowledged, and of which nothing reaches the disk.
      await outside.release('lost')
      for (const thread of lost) {
        await until(async () => (await hf.inspect(thread).waitFor({ timeoutMs: 60_000 })).status === 'completed')
      }
      const seen = await hf.log(lost[0] as string)
      await losePower(server, at)

      const update = seen.update(() => [{ kind: 'input', ops: [ops.set('note', 1)] }])
      await expect(update).rejects.toMatchObject({ code: 'data-loss' })
      await outside.release('kept')
      await check([...lost, ...kept])
      await fleet.stop()
    },
  )
})
