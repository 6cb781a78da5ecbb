import assert from 'node:assert/strict'
import { isHoldfastError } from '../../core/errors.js'
import type { Driver, LogKey } from '../../log/contract.js'
import { makeAppend, makeBytes, makeHash, makeIndex, mustAppend } from '../entries.js'
import {
  assertBytes,
  assertEntries,
  assertSameHead,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  type SuiteTest,
} from './suite-context.js'

export const lifecycleTests: readonly SuiteTest[] = [
  {
    name: 'declares a name, capabilities and durability that make sense',
    async run({ driver }) {
      const { name, capabilities, survives: durability } = driver
      assert.match(name, /^[a-z][a-z-]*$/)
      for (const key of ['multiProcess', 'persistent', 'storeAtomic', 'transactions', 'watch'] as const) {
        assert.equal(typeof capabilities[key], 'boolean', key)
      }
      assert.ok(Number.isInteger(capabilities.parallelBatches) && capabilities.parallelBatches >= 1)
      assert.ok(Number.isInteger(capabilities.maxBatch) && capabilities.maxBatch >= 1)
      for (const key of ['processKill', 'osCrash', 'powerLoss', 'failover'] as const) {
        assert.ok(['yes', 'no', 'recent-loss', 'not-applicable'].includes(durability[key]), key)
        if (durability[key] === 'recent-loss') assert.ok((durability.lossWindowMs ?? 0) > 0)
      }
      assert.ok(durability.note.length > 0)
      assert.ok(Object.values(durability.settings).every((value) => typeof value === 'string'))
      if (!capabilities.persistent) assert.equal(durability.processKill, 'no')
    },
  },
  {
    name: 'waits on close for what is under way',
    async run({ driver, tenant, open }) {
      const closing = await open()
      const blob = { hash: makeHash('late'), bytes: makeBytes('late', 1000) }
      const appends = Array.from({ length: 20 }, (_, i) => makeAppend(logKey(tenant, `t${i}`), null))
      const pending = Promise.all(appends.map((append) => closing.append([append])))
      const blobs = closing.putBlobs(tenant, [blob])
      await closing.close()
      for (const [result] of await pending) assert.deepEqual(result, { status: 'appended' })
      await blobs
      for (const append of appends) {
        assert.equal((await headOf(driver, append.log)).hash, append.entries[0]?.hash)
      }
      assert.equal((await driver.getBlobs(tenant, [blob.hash])).size, 1)
    },
  },
  {
    name: 'closes twice, and twice at once, without an error',
    async run({ open }) {
      const driver = await open()
      await Promise.all([driver.close(), driver.close()])
      await driver.close()
    },
  },
  {
    name: 'rejects every method with a ClosedError after close',
    async run({ driver, tenant, open }) {
      const log = logKey(tenant)
      await createLog(driver, log)
      const closed = await open()
      await closed.close()
      for (const [name, call] of Object.entries(everyMethod(closed, log))) {
        await assert.rejects(
          async () => {
            await call()
          },
          (error) => isHoldfastError(error, 'closed'),
          `${name} rejects with a ClosedError`,
        )
      }
    },
  },
  {
    name: 'leaves other drivers of the store open when one is closed',
    async run({ driver, tenant, open }) {
      const other = await open()
      const log = logKey(tenant)
      const at = await createLog(other, log)
      await other.close()
      await mustAppend(driver, makeAppend(log, at))
      assert.equal((await headOf(await open(), log)).seq, 1)
    },
  },
  {
    name: 'keeps everything for the next driver, if it is persistent',
    async run({ driver, tenant, open }) {
      if (!driver.capabilities.persistent) {
        assert.equal(driver.survives.processKill, 'no')
        return
      }
      const log = logKey(tenant)
      const at = await createLog(driver, log, {
        count: 6,
        lease: { kind: 'claim', owner: 'w', ms: LONG_MS, force: false },
        index: { tags: ['t'], metadata: { m: 1 }, wakeAt: 1, expiresAt: 2 },
      })
      await driver.prune(log, at.incarnation, 3)
      const blob = { hash: makeHash('kept'), bytes: makeBytes('kept', 100) }
      await driver.putBlobs(tenant, [blob])
      const gone = logKey(tenant, 'gone')
      await createLog(driver, gone)
      await driver.erase({ tenant, thread: gone.thread, tombstone: { at: 7, reason: 'gone' } })
      const head = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      const blobs = await driver.listBlobs(tenant, { limit: 10 })
      await driver.close()

      const next = await open()
      assertSameHead(await next.head(log), head)
      assertEntries(await next.read(log, 0, 10), entries)
      assert.deepEqual({ ...(await next.tombstone(tenant, gone.thread)) }, { at: 7, reason: 'gone' })
      assert.deepEqual(
        (await next.listBlobs(tenant, { limit: 10 })).map((info) => ({ ...info })),
        blobs.map((info) => ({ ...info })),
      )
      assertBytes((await next.getBlobs(tenant, [blob.hash])).get(blob.hash), blob.bytes, 'the blob')
      assert.equal(
        (await next.heads({ tenant, tags: ['t'], metadata: { m: 1 }, lease: 'held', limit: 5 })).heads.length,
        1,
      )
      assert.equal(await next.renew(log, at.incarnation, 1, LONG_MS), true)
      await mustAppend(next, makeAppend(log, at))
    },
  },
]

function everyMethod(driver: Driver, log: LogKey): Record<string, () => Promise<unknown>> {
  const { tenant, thread } = log
  const expect = { incarnation: 'i', seq: 0, hash: makeHash('h'), epoch: 0 }
  const { subscribe, confirm, positions, takeDue } = driver
  const due = { programs: ['p'], now: 0, limit: 1, reserveMs: 1 }
  return {
    append: () => driver.append([makeAppend(log, null)]),
    tail: () => driver.tail(log),
    read: () => driver.read(log, 0, 1),
    headers: () => driver.headers(log, { limit: 1 }),
    head: () => driver.head(log),
    renew: () => driver.renew(log, 'i', 1, 1),
    heads: () => driver.heads({ tenant, limit: 1 }),
    prune: () => driver.prune(log, 'i', 0),
    erase: () => driver.erase({ tenant, thread, tombstone: null }),
    tombstone: () => driver.tombstone(tenant, thread),
    reindex: () => driver.reindex(log, expect, makeIndex()),
    touchBlobs: () => driver.touchBlobs(tenant, [makeHash('b')]),
    putBlobs: () => driver.putBlobs(tenant, [{ hash: makeHash('b'), bytes: new Uint8Array(1) }]),
    getBlobs: () => driver.getBlobs(tenant, [makeHash('b')]),
    listBlobs: () => driver.listBlobs(tenant, { limit: 1 }),
    removeBlob: () => driver.removeBlob(tenant, makeHash('b'), 0),
    ...(confirm === undefined ? {} : { confirm: () => confirm.call(driver, log) }),
    ...(takeDue === undefined ? {} : { takeDue: () => takeDue.call(driver, due) }),
    ...(positions === undefined ? {} : { positions: () => positions.call(driver, [log]) }),
    ...(subscribe === undefined ? {} : { subscribe: () => subscribe.call(driver, 'topic', () => {}) }),
  }
}
