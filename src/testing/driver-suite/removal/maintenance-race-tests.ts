import assert from 'node:assert/strict'
import { makeAppend, makeBytes, makeHash, makeIndex } from '../../entries.js'
import { branchId, comparableIndex, createLog, headOf, LONG_MS, logKey, type SuiteTest } from '../suite-context.js'

/** Two drivers of one store that renew, reindex, prune, erase and collect at the same moment. */
export const maintenanceRaceTests: readonly SuiteTest[] = [
  {
    name: 'gives a lease that ran out either back to its owner or to the next, when both come at once',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds, advance }) {
      const other = await open()
      const logs = Array.from({ length: Math.ceil(rounds / 20) }, (_, i) => logKey(tenant, `thread-${i}`))
      const claim = (owner: string, ms: number) => ({ kind: 'claim', owner, ms, force: false }) as const
      const ends = []
      for (const log of logs) ends.push(await createLog(driver, log, { lease: claim('slow', 1) }))
      await advance(50)
      for (const [i, log] of logs.entries()) {
        const taking = makeAppend(log, ends[i] ?? null, { lease: claim('next', LONG_MS) })
        const renewing = driver.renew(log, ends[i]?.incarnation ?? '', 1, LONG_MS)
        const [renewed, [taken]] = await Promise.all([renewing, other.append([taking])])
        assert.equal(taken?.status, renewed ? 'held' : 'appended')
        const head = await headOf(driver, log)
        assert.equal(head.lease?.owner, renewed ? 'slow' : 'next')
        assert.equal(head.epoch, renewed ? 1 : 2)
      }
    },
  },
  {
    name: 'never lets a reindex overwrite the index row of a newer append',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        const at = await createLog(driver, log)
        const append = makeAppend(log, at, { index: { status: 'new', tags: ['new'], metadata: { new: true } } })
        const stale = makeIndex({ status: 'old', tags: ['old'], metadata: { old: true } })
        const [, [appended]] = await Promise.all([other.reindex(log, at, stale), driver.append([append])])
        assert.deepEqual(appended, { status: 'appended' })
        assert.deepEqual(comparableIndex((await headOf(driver, log)).index), comparableIndex(append.index))
      }
      const old = await driver.heads({ tenant, tags: ['old'], limit: 10 })
      assert.deepEqual(old.heads, [])
    },
  },
  {
    name: 'counts every erased log once when two erase the same thread',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 40); round++) {
        const log = logKey(tenant, `thread-${round}`)
        await createLog(driver, log)
        await createLog(driver, { ...log, branch: branchId('fork') })
        const request = { tenant, thread: log.thread, tombstone: { at: 1, reason: 'r' } }
        const results = await Promise.all([driver.erase(request), other.erase(request)])
        assert.deepEqual(results.map((result) => (result === 'conflict' ? result : result.erased)).toSorted(), [0, 2])
        assert.ok(await driver.tombstone(tenant, log.thread))
      }
    },
  },
  {
    name: 'removes every entry once when two prune the same log',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 40); round++) {
        const log = logKey(tenant, `thread-${round}`)
        const { incarnation } = await createLog(driver, log, { count: 8 })
        const [a, b] = await Promise.all([driver.prune(log, incarnation, 3), other.prune(log, incarnation, 6)])
        if (a === 'conflict' || b === 'conflict') assert.fail('both are keyframes of the log, or lie before its base')
        assert.equal(a.removed + b.removed, 6)
        assert.equal((await headOf(driver, log)).base.seq, 6)
        assert.equal((await driver.read(log, 0, 10)).length, 2)
      }
    },
  },
  {
    name: 'has either a tombstone or a log when a thread is erased and created at once',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const log = logKey(tenant, `thread-${round}`)
        await createLog(driver, log)
        const fresh = { ...log, branch: branchId('fresh') }
        const [[created], erased] = await Promise.all([
          driver.append([makeAppend(fresh, null)]),
          other.erase({ tenant, thread: log.thread, tombstone: { at: 1, reason: 'r' } }),
        ])
        assert.deepEqual(created, { status: 'appended' })
        const exists = (await driver.head(fresh)) !== undefined
        assert.deepEqual(erased, { erased: exists ? 1 : 2 })
        assert.equal((await driver.tombstone(tenant, log.thread)) === undefined, exists)
      }
    },
  },
  {
    name: 'takes the same new blobs from two at once, in opposite orders',
    timeoutMs: 300_000,
    async run({ driver, open, tenant, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 40); round++) {
        const blobs = Array.from({ length: 10 }, (_, i) => ({
          hash: makeHash(`${round}-${i}`),
          bytes: makeBytes(`${round}-${i}`, 50),
        }))
        const hashes = blobs.map((blob) => blob.hash)
        await Promise.all([driver.putBlobs(tenant, blobs), other.putBlobs(tenant, blobs.toReversed())])
        const touched = await Promise.all([
          driver.touchBlobs(tenant, hashes),
          other.touchBlobs(tenant, hashes.toReversed()),
        ])
        assert.deepEqual(touched, [[], []])
        assert.equal((await driver.getBlobs(tenant, hashes)).size, 10)
      }
    },
  },
]
