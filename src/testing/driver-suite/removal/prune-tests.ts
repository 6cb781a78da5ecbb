import assert from 'node:assert/strict'
import { makeAppend, makeEntry, mustAppend } from '../../entries.js'
import { writeLog } from '../read-tests.js'
import {
  appendOne,
  assertEntries,
  assertSameHead,
  assertUnchanged,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  type SuiteTest,
} from '../suite-context.js'

export const pruneTests: readonly SuiteTest[] = [
  {
    name: 'prunes to a keyframe: what lay before is gone, the base is there, all else is untouched',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 20, [0, 6, 13])
      const before = await headOf(driver, log)
      assert.deepEqual(await driver.prune(log, before.incarnation, 6), { removed: 6 })
      const head = await headOf(driver, log)
      assert.deepEqual({ ...head.base }, { seq: 6, hash: entries[6]?.hash })
      assertSameHead({ ...head, base: before.base }, before)
      assertEntries(await driver.read(log, 0, 100), entries.slice(6))
      assertEntries((await driver.tail(log, 10))?.entries ?? [], entries.slice(6, 11))
      assert.equal((await driver.headers(log, { limit: 100 })).length, 14)
      const listed = await driver.heads({ tenant, limit: 10 })
      assert.deepEqual({ ...listed.heads[0]?.base }, { seq: 6, hash: entries[6]?.hash })
    },
  },
  {
    name: 'prunes to any entry with a keyframe to stand in for it: what follows is read from there',
    async run({ driver, tenant, open }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 20, [0, 13])
      const before = await headOf(driver, log)
      for (const [seq, bodySize] of [
        [4, 5000],
        [9, 10],
      ] as const) {
        const hash = entries[seq]?.hash as string
        const standIn = { ...makeEntry({ seq, bodySize }), hash }
        const wrong = { ...standIn, hash: makeEntry({ seq }).hash }
        assert.equal(await driver.prune(log, before.incarnation, seq, wrong), 'conflict')
        assert.equal(await driver.prune(log, 'another', seq, standIn), 'conflict')
        const removed = seq === 4 ? 4 : 5
        assert.deepEqual(await driver.prune(log, before.incarnation, seq, standIn), { removed })
        assert.deepEqual(await driver.prune(log, before.incarnation, seq, standIn), { removed: 0 })
        for (const one of [driver, await open()]) {
          const head = await headOf(one, log)
          assert.deepEqual({ ...head.base }, { seq, hash })
          assertSameHead({ ...head, base: before.base }, before)
          assertEntries(await one.read(log, 0, 100), [standIn, ...entries.slice(seq + 1)])
          assertEntries((await one.tail(log, seq))?.entries ?? [], [standIn])
          assertEntries((await one.tail(log, 11))?.entries ?? [], [standIn, ...entries.slice(seq + 1, 12)])
          assertEntries((await one.tail(log, 15))?.entries ?? [], entries.slice(13, 16))
          const headers = await one.headers(log, { limit: 100 })
          assert.deepEqual(headers.at(-1)?.size, standIn.body.length)
          assert.deepEqual(Buffer.from(headers.at(-1)?.header ?? []), Buffer.from(standIn.header))
          assert.deepEqual((await one.headers(log, { before: 12, limit: 2 })).length, 2)
        }
      }
      // A later prune to a keyframe takes the stand-in with it, and the log continues.
      assert.deepEqual(await driver.prune(log, before.incarnation, 13), { removed: 4 })
      await mustAppend(driver, makeAppend(log, before))
      assertEntries((await driver.read(log, 0, 100)).slice(0, 7), entries.slice(13))
    },
  },
  {
    name: 'prunes to the head with a keyframe to stand in for it, and the log goes on from there',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 8, [0])
      const at = await headOf(driver, log)
      const standIn = { ...makeEntry({ seq: 7, bodySize: 300 }), hash: at.hash }
      assert.deepEqual(await driver.prune(log, at.incarnation, 7, standIn), { removed: 7 })
      const next = await mustAppend(driver, makeAppend(log, at))
      assert.equal((await headOf(driver, log)).seq, next.seq)
      assertEntries(await driver.read(log, 0, 1), [standIn])
      assert.equal((await driver.tail(log, entries.length))?.entries[0]?.seq, next.seq)
    },
  },
  {
    name: 'prunes to the head when it is a keyframe, and the log goes on from there',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { count: 5 })
      assert.deepEqual(await driver.prune(log, at.incarnation, 4), { removed: 4 })
      const next = await mustAppend(driver, makeAppend(log, at))
      const head = await headOf(driver, log)
      assert.equal(head.seq, next.seq)
      assert.deepEqual({ ...head.base }, { seq: 4, hash: at.hash })
      assert.deepEqual(
        (await driver.read(log, 0, 10)).map((entry) => entry.seq),
        [4, 5],
      )
    },
  },
  {
    name: 'removes nothing when it prunes again to the same or an older seq',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 20, [0, 6, 13])
      const { incarnation } = await headOf(driver, log)
      assert.deepEqual(await driver.prune(log, incarnation, 0), { removed: 0 })
      assert.deepEqual(await driver.prune(log, incarnation, 13), { removed: 13 })
      const head = await headOf(driver, log)
      for (const seq of [13, 6, 0]) assert.deepEqual(await driver.prune(log, incarnation, seq), { removed: 0 })
      await assertUnchanged(driver, head, entries.slice(13))
    },
  },
  {
    name: 'removes each entry once when it prunes step by step',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      await writeLog(driver, log, 20, [0, 6, 13, 19])
      const { incarnation } = await headOf(driver, log)
      assert.deepEqual(await driver.prune(log, incarnation, 6), { removed: 6 })
      assert.deepEqual(await driver.prune(log, incarnation, 13), { removed: 7 })
      assert.deepEqual(await driver.prune(log, incarnation, 19), { removed: 6 })
      assert.equal((await driver.read(log, 0, 10)).length, 1)
    },
  },
  {
    name: 'refuses to prune to an entry that is no keyframe, or that does not exist yet',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 20, [0, 6, 13])
      const before = await headOf(driver, log)
      for (const seq of [1, 5, 7, 19, 20, 26, 2 ** 31]) {
        assert.equal(await driver.prune(log, before.incarnation, seq), 'conflict', `to ${seq}`)
      }
      await assertUnchanged(driver, before, entries)
    },
  },
  {
    name: 'refuses to prune another incarnation, or a log that is gone',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const old = await createLog(driver, log, { count: 3 })
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      assert.equal(await driver.prune(log, old.incarnation, 2), 'conflict')
      await createLog(driver, log, { count: 3 })
      assert.equal(await driver.prune(log, old.incarnation, 2), 'conflict')
      assert.equal((await driver.read(log, 0, 10)).length, 3)
      assert.equal(await driver.prune(logKey(tenant, 'never'), old.incarnation, 0), 'conflict')
    },
  },
  {
    name: 'refuses a zombie that writes after a prune from where it last saw the log',
    async run({ driver, tenant, open }) {
      const zombie = await open()
      const log = logKey(tenant)
      const seen = await createLog(driver, log, { count: 3 })
      const at = await mustAppend(driver, makeAppend(log, seen, { count: 5 }))
      assert.deepEqual(await driver.prune(log, at.incarnation, at.seq), { removed: at.seq })
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      // The entries it would write over are gone: only the head still knows that they were ever there.
      const result = await appendOne(zombie, makeAppend(log, seen, { count: 2 }))
      assert.equal(result.status, 'conflict')
      assertSameHead(result.status === 'conflict' ? result.head : undefined, before)
      assert.equal((await appendOne(zombie, makeAppend(log, null))).status, 'conflict')
      await assertUnchanged(driver, before, entries)
    },
  },
  {
    name: 'leaves epoch and lease alone when it prunes',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, {
        count: 4,
        lease: { kind: 'claim', owner: 'owner', ms: LONG_MS, force: false },
      })
      await driver.prune(log, at.incarnation, 3)
      const head = await headOf(driver, log)
      assert.equal(head.epoch, 1)
      assert.equal(head.lease?.owner, 'owner')
      await mustAppend(driver, makeAppend(log, at, { lease: { kind: 'extend', ms: LONG_MS } }))
    },
  },
  {
    name: 'prunes one branch and leaves its sisters whole',
    async run({ driver, tenant }) {
      const one = logKey(tenant, 'thread', 'one')
      const two = logKey(tenant, 'thread', 'two')
      const at = await createLog(driver, one, { count: 5 })
      await createLog(driver, two, { count: 5 })
      assert.deepEqual(await driver.prune(one, at.incarnation, 4), { removed: 4 })
      assert.equal((await driver.read(two, 0, 10)).length, 5)
      assert.equal((await headOf(driver, two)).base.seq, 0)
    },
  },
]
