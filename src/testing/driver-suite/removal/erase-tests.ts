import assert from 'node:assert/strict'
import type { Driver, EraseRequest, LogKey } from '../../../log/contract.js'
import { makeAppend, makeBytes, makeHash, mustAppend } from '../../entries.js'
import { assertBytes, branchId, createLog, logKey, type SuiteTest } from '../suite-context.js'

export const eraseTests: readonly SuiteTest[] = [
  {
    name: 'erases a thread with all its branches, and nothing of it can be read',
    async run({ driver, tenant, open }) {
      const other = await open()
      const logs = ['main', 'b1', 'b2'].map((branch) => logKey(tenant, 'thread', branch))
      for (const log of logs) await createLog(driver, log, { count: 4, index: { tags: ['t'], metadata: { m: 1 } } })
      assert.deepEqual(await driver.erase({ tenant, thread: logKey(tenant).thread, tombstone: null }), { erased: 3 })
      for (const log of logs) {
        await assertGone(driver, log)
        await assertGone(other, log)
      }
      for (const query of [{}, { tags: ['t'] }, { metadata: { m: 1 } }, { status: ['idle'] }]) {
        assert.deepEqual((await driver.heads({ tenant, ...query, limit: 10 })).heads, [])
      }
    },
  },
  {
    name: 'erases one branch and leaves its sisters and other threads',
    async run({ driver, tenant }) {
      const gone = logKey(tenant, 'thread', 'gone')
      const kept = [logKey(tenant, 'thread', 'kept'), logKey(tenant, 'other', 'gone')]
      for (const log of [gone, ...kept]) await createLog(driver, log, { count: 2 })
      const request = { tenant, thread: gone.thread, branch: gone.branch, tombstone: { at: 1, reason: 'r' } }
      assert.deepEqual(await driver.erase(request), { erased: 1 })
      await assertGone(driver, gone)
      for (const log of kept) assert.equal((await driver.read(log, 0, 10)).length, 2)
      assert.equal(await driver.tombstone(tenant, gone.thread), undefined, 'the thread has a branch left')
    },
  },
  {
    name: 'takes the erasing of what is not there for no error',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const request: EraseRequest = { tenant, thread: log.thread, tombstone: null }
      assert.deepEqual(await driver.erase(request), { erased: 0 })
      assert.deepEqual(await driver.erase({ ...request, branch: log.branch }), { erased: 0 })
      assert.deepEqual(await driver.erase({ ...request, expect: [] }), { erased: 0 })
      await createLog(driver, log)
      assert.deepEqual(await driver.erase({ ...request, branch: branchId('other') }), { erased: 0 })
      assert.deepEqual(await driver.erase(request), { erased: 1 })
      assert.deepEqual(await driver.erase(request), { erased: 0 })
    },
  },
  {
    name: 'erases when exactly the expected logs are there, in whatever order they are named',
    async run({ driver, tenant }) {
      const [one, two] = [logKey(tenant, 'thread', 'one'), logKey(tenant, 'thread', 'two')]
      const ends = [await createLog(driver, one, { count: 2 }), await createLog(driver, two)]
      const expect = [
        { branch: two.branch, incarnation: ends[1]?.incarnation ?? '', seq: 0 },
        { branch: one.branch, incarnation: ends[0]?.incarnation ?? '', seq: 1 },
      ]
      assert.deepEqual(await driver.erase({ tenant, thread: one.thread, expect, tombstone: null }), { erased: 2 })
      await assertGone(driver, one)
    },
  },
  {
    name: 'erases nothing when the logs are not exactly the expected ones',
    async run({ driver, tenant }) {
      const [one, two] = [logKey(tenant, 'thread', 'one'), logKey(tenant, 'thread', 'two')]
      const ends = [await createLog(driver, one, { count: 2 }), await createLog(driver, two)]
      const a = { branch: one.branch, incarnation: ends[0]?.incarnation ?? '', seq: 1 }
      const b = { branch: two.branch, incarnation: ends[1]?.incarnation ?? '', seq: 0 }
      const wrong: NonNullable<EraseRequest['expect']>[] = [
        [],
        [a],
        [a, { ...b, seq: 1 }],
        [a, { ...b, incarnation: 'other' }],
        [a, { ...b, branch: branchId('three') }],
        [a, b, { ...b, branch: branchId('three') }],
      ]
      const tombstone = { at: 1, reason: 'r' }
      for (const expect of wrong) {
        assert.equal(await driver.erase({ tenant, thread: one.thread, expect, tombstone }), 'conflict')
      }
      const branch = { tenant, thread: one.thread, branch: one.branch, tombstone }
      assert.equal(await driver.erase({ ...branch, expect: [a, b] }), 'conflict', 'the sister is not asked for')
      assert.equal(await driver.erase({ ...branch, expect: [{ ...a, seq: 0 }] }), 'conflict')
      assert.equal(
        await driver.erase({ tenant, thread: logKey(tenant, 'never').thread, expect: [a], tombstone }),
        'conflict',
      )
      assert.equal((await driver.read(one, 0, 10)).length, 2)
      assert.equal((await driver.read(two, 0, 10)).length, 1)
      assert.equal(await driver.tombstone(tenant, one.thread), undefined)
      assert.equal(await driver.tombstone(tenant, logKey(tenant, 'never').thread), undefined)
      assert.deepEqual(await driver.erase({ ...branch, expect: [a] }), { erased: 1 })
    },
  },
  {
    name: 'leaves a tombstone when the last branch of a thread goes',
    async run({ driver, tenant }) {
      const [one, two] = [logKey(tenant, 'thread', 'one'), logKey(tenant, 'thread', 'two')]
      for (const log of [one, two]) await createLog(driver, log)
      const thread = one.thread
      await driver.erase({ tenant, thread, branch: one.branch, tombstone: { at: 1, reason: 'first' } })
      assert.equal(await driver.tombstone(tenant, thread), undefined)
      const last = { at: 8_640_000_000_000_000, reason: `expired ' " \\ % é 🦀 {"a":1}` }
      await driver.erase({ tenant, thread, branch: two.branch, tombstone: last })
      assert.deepEqual({ ...(await driver.tombstone(tenant, thread)) }, last)
    },
  },
  {
    name: 'forgets the tombstone when a log of the thread is created again',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      await createLog(driver, log)
      await driver.erase({ tenant, thread: log.thread, tombstone: { at: 1, reason: 'gone' } })
      await createLog(driver, { ...log, branch: branchId('other') })
      assert.equal(await driver.tombstone(tenant, log.thread), undefined)
    },
  },
  {
    name: 'keeps the tombstone when a creation fails',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log)
      await driver.erase({ tenant, thread: log.thread, tombstone: { at: 1, reason: 'gone' } })
      await driver.append([makeAppend(log, at)])
      await driver.append([makeAppend(log, null, { requires: { branch: branchId('b'), incarnation: 'x' } })])
      assert.deepEqual({ ...(await driver.tombstone(tenant, log.thread)) }, { at: 1, reason: 'gone' })
    },
  },
  {
    name: 'leaves nothing and removes an older tombstone when it is told to leave none',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const request = { tenant, thread: log.thread }
      await createLog(driver, log)
      await driver.erase({ ...request, tombstone: { at: 1, reason: 'gone' } })
      await driver.erase({ ...request, tombstone: null })
      assert.equal(await driver.tombstone(tenant, log.thread), undefined)
      await createLog(driver, log)
      await driver.erase({ ...request, tombstone: null })
      assert.equal(await driver.tombstone(tenant, log.thread), undefined)
    },
  },
  {
    name: 'leaves no tombstone for a thread that never was, and none in place of an older one',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const request = { tenant, thread: log.thread }
      await driver.erase({ ...request, tombstone: { at: 1, reason: 'never was' } })
      assert.equal(await driver.tombstone(tenant, log.thread), undefined)
      await createLog(driver, log)
      await driver.erase({ ...request, tombstone: { at: 2, reason: 'expired' } })
      await driver.erase({ ...request, tombstone: { at: 3, reason: 'again' } })
      assert.deepEqual({ ...(await driver.tombstone(tenant, log.thread)) }, { at: 2, reason: 'expired' })
    },
  },
  {
    name: 'finds nothing of the old log when an erased id is used again',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      await createLog(driver, log, { count: 9, index: { tags: ['old'], metadata: { old: 1 }, wakeAt: 5 } })
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      const at = await createLog(driver, log, { count: 2 })
      await mustAppend(driver, makeAppend(log, at))
      assert.deepEqual(
        (await driver.read(log, 0, 100)).map((entry) => entry.seq),
        [0, 1, 2],
      )
      assert.equal((await driver.head(log))?.base.seq, 0)
      for (const query of [{ tags: ['old'] }, { metadata: { old: 1 } }, { wakeBefore: 100 }]) {
        assert.deepEqual((await driver.heads({ tenant, ...query, limit: 10 })).heads, [])
      }
    },
  },
  {
    name: 'leaves blobs where they are when it erases',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const [hash, bytes] = [makeHash('blob'), makeBytes('blob', 100)]
      await driver.putBlobs(tenant, [{ hash, bytes }])
      await createLog(driver, log)
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      assertBytes((await driver.getBlobs(tenant, [hash])).get(hash), bytes, 'the blob')
    },
  },
]

async function assertGone(driver: Driver, log: LogKey): Promise<void> {
  assert.equal(await driver.head(log), undefined)
  assert.equal(await driver.tail(log), undefined)
  assert.deepEqual(await driver.read(log, 0, 100), [])
  assert.deepEqual(await driver.headers(log, { limit: 100 }), [])
}
