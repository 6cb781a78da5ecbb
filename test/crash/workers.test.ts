import { openHoldfast } from 'holdfast'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { queueInput } from '../../scripts/torture/queue-input.mjs'
import { connectService } from '../../scripts/torture/service-client.mjs'
import { takeoverRound } from '../../scripts/torture/takeover-round.mjs'
import { startFleet, startService } from '../../scripts/torture/worker-fleet.mjs'
import { makeWorkerPrograms } from '../../scripts/torture/worker-programs.mjs'
import { type Backend, durableBackends } from '../support/backends.js'
import { rounds } from '../support/scale.js'
import { until } from '../support/until.js'

const PATIENCE_MS = 60_000
const backends = await durableBackends()

async function openScene(backend: Backend, options: { leaseMs: number; graceMs?: number; maxCrashes?: number }) {
  const url = await backend.fresh()
  const service = await startService()
  const hf = await openHoldfast(url)
  const fleet = startFleet({ url, service: service.url, pollMs: 50, ...options })
  return {
    hf,
    fleet,
    outside: connectService(service.url),
    programs: makeWorkerPrograms({ service: service.url }),
    outcome: (thread: string) => hf.inspect(thread).waitFor({ timeoutMs: PATIENCE_MS }),
    async close() {
      await fleet.abandon()
      await service.stop()
      await hf.close()
    },
  }
}

for (const backend of backends) {
  describe.skipIf(backend.missing)(`worker processes on ${backend.name}`, () => {
    let scene: Awaited<ReturnType<typeof openScene>> | undefined
    beforeEach(() => {
      scene = undefined
    })
    afterEach(() => scene?.close())
    afterAll(() => backend.cleanup())

    const kills = rounds(1, 20)
    it(`take the threads of a killed one over, at a later epoch (${kills} kills)`, { timeout: 600_000 }, async () => {
      const { takenOver, afterKillMs } = await takeoverRound({ url: await backend.fresh(), kills, leaseMs: 700 })
      console.log(`${backend.name}: ${takenOver} threads taken over after a lease of 700 ms:`, afterKillMs)
    })

    it('lets steps end on SIGTERM, records them and lets go at once', { timeout: 600_000 }, async () => {
      // So long that nobody would live to see it expire.
      scene = await openScene(backend, { leaseMs: 600_000 })
      const { hf, fleet, outside, programs, outcome } = scene
      const threads = ['a', 'b', 'c', 'd']
      const old = await fleet.add()
      for (const thread of threads)
        await queueInput(hf, programs.slow, thread, { session: thread, hold: 'until released' })
      await until(async () => (await outside.ledger()).effects.length === threads.length)
      expect((await hf.threads({ thread: 'a' })).threads).toMatchObject([{ claimedBy: old.name }])

      const terminating = old.line('terminating')
      old.child.kill('SIGTERM')
      await terminating
      await outside.release('until released')
      expect(await old.exited).toBe(0)
      expect(old.lines.at(-1)).toBe('closed')
      for (const thread of threads) {
        const row = { status: 'active', claimedBy: null, wakeAt: expect.any(Date) }
        expect((await hf.threads({ thread })).threads).toMatchObject([row])
      }

      const successor = await fleet.add()
      for (const thread of threads) {
        // What was under way was ended and recorded by the old one, what came after it was not begun.
        const output = { first: old.name, held: old.name, after: successor.name }
        expect(await outcome(thread)).toMatchObject({ status: 'completed', output })
      }
      const { effects, calls } = await outside.ledger()
      expect(effects).toHaveLength(2 * threads.length)
      expect(calls).toHaveLength(2 * threads.length)
    })

    it('aborts on SIGTERM what does not end within the grace, and lets go of it too', {
      timeout: 600_000,
    }, async () => {
      scene = await openScene(backend, { leaseMs: 600_000, graceMs: 100 })
      const { hf, fleet, outside, programs, outcome } = scene
      const old = await fleet.add()
      await queueInput(hf, programs.slow, 'long', { session: 'long', hold: 'until released' })
      await until(async () => (await outside.ledger()).effects.length === 1)
      old.child.kill('SIGTERM')
      expect(await old.exited).toBe(0)
      expect((await hf.threads({ thread: 'long' })).threads).toMatchObject([{ status: 'active', claimedBy: null }])

      await outside.release('until released')
      const successor = await fleet.add()
      const output = { first: old.name, held: successor.name, after: successor.name }
      expect(await outcome('long')).toMatchObject({ status: 'completed', output })
      // Called twice with one key, happened once.
      const { effects, calls } = await outside.ledger()
      expect(calls.filter(({ step }) => step === 'hold')).toHaveLength(2)
      expect(effects.filter(({ step }) => step === 'hold')).toHaveLength(1)
    })

    it('wake sleepers, expired questions, answers, signals and queued input', { timeout: 600_000 }, async () => {
      scene = await openScene(backend, { leaseMs: 10_000 })
      const { hf, fleet, programs } = scene
      const ways = ['sleep', 'expire', 'answer', 'signal'] as const
      const isAt = (way: string, status: string) => async () => (await hf.inspect(way).waitFor()).status === status
      const worker = await fleet.add()
      for (const way of ways) await queueInput(hf, programs.patient, way, { session: way, way, ms: 1200 })
      for (const way of ['answer', 'signal']) await until(isAt(way, 'paused'))
      // They hold nothing meanwhile, and nothing wakes these two before they are answered.
      await until(() => worker.holds.size === 0)
      for (const thread of ['answer', 'signal']) {
        expect((await hf.threads({ thread })).threads).toMatchObject([{ claimedBy: null }])
      }

      const [question] = await hf.inspect('answer').pauses()
      await hf.inspect('answer').answer(question?.id ?? '', 'yes')
      await hf.inspect('signal').signal('go', 'went')
      for (const way of ways) await until(isAt(way, 'completed'))
      const outputs = { sleep: 'sleep', expire: 'expired', answer: 'yes', signal: 'went' }
      for (const way of ways) {
        expect(await hf.inspect(way).waitFor()).toMatchObject({ status: 'completed', output: outputs[way] })
      }

      await queueInput(hf, programs.patient, 'answer', { session: 'answer', way: 'sleep', ms: 1 }, 'next')
      await queueInput(hf, programs.patient, 'answer', { session: 'answer', way: 'sleep', ms: 2 }, 'after next')
      await until(async () => (await hf.log('answer')).fold.state['run'] !== undefined)
      const runs = () => hf.log('answer').then((log) => (log.fold.state['run'] as { number: number }).number)
      await until(async () => (await runs()) === 3)
      await until(isAt('answer', 'completed'))
      await fleet.stop()
    })
  })
}

const [sqlite] = backends.filter(({ name }) => name === 'SQLite') as [Backend]

describe('a thread that kills its worker', () => {
  afterAll(() => sqlite.cleanup())

  it('is parked after maxCrashes, and the others go on', { timeout: 600_000 }, async () => {
    const { hf, fleet, programs, outcome, close } = await openScene(sqlite, { leaseMs: 300, maxCrashes: 2 })
    try {
      await queueInput(hf, programs.poison, 'poison', {})
      // The first gets as far as a record; two more make no progress.
      for (let i = 0; i < 3; i++) {
        const victim = await fleet.add()
        expect(await victim.exited).toBeNull()
        fleet.workers.splice(0)
        expect(victim.lines).toContain('taken thread "poison"')
      }
      const survivor = await fleet.add()
      expect(await outcome('poison')).toMatchObject({ status: 'failed', error: { code: 'poisoned' }, canResume: true })
      expect((await hf.threads({ thread: 'poison' })).threads).toMatchObject([{ status: 'failed', wakeAt: null }])
      await queueInput(hf, programs.patient, 'well', { session: 'well', way: 'sleep', ms: 1 })
      expect(await outcome('well')).toMatchObject({ status: 'completed' })
      survivor.child.kill('SIGTERM')
      expect(await survivor.exited).toBe(0)
    } finally {
      await close()
    }
  })
})
