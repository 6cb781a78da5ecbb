import assert from 'node:assert/strict'
import { makeAppend, mustAppend } from '../../entries.js'
import {
  appendOne,
  assertRemaining,
  assertUnchanged,
  claim,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  PAST_SHORT_MS,
  SHORT_MS,
  type SuiteTest,
} from '../suite-context.js'

export const renewTests: readonly SuiteTest[] = [
  {
    name: 'renews by incarnation and epoch, and writes no entry',
    async run({ driver, tenant, open }) {
      const log = logKey(tenant)
      const { incarnation } = await createLog(driver, log, { lease: claim('owner', 300_000) })
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      assert.equal(await (await open()).renew(log, incarnation, 1, 900_000), true)
      const head = await headOf(driver, log)
      assertRemaining(head.lease?.remainingMs, 900_000, 300_000)
      await assertUnchanged(driver, before, entries)
      assert.equal(await driver.renew(log, incarnation, 1, 100_000), true)
      assertRemaining((await headOf(driver, log)).lease?.remainingMs, 100_000)
    },
  },
  {
    name: 'does not renew another epoch, nor a log that does not exist',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('first', 300_000) })
      await mustAppend(driver, makeAppend(log, at, { lease: claim('second', 300_000, true) }))
      for (const epoch of [0, 1, 3, 2 ** 40]) {
        assert.equal(await driver.renew(log, at.incarnation, epoch, 900_000), false)
      }
      const head = await headOf(driver, log)
      assert.equal(head.lease?.owner, 'second')
      assertRemaining(head.lease?.remainingMs, 300_000)
      assert.equal(await driver.renew(logKey(tenant, 'never'), at.incarnation, 0, LONG_MS), false)
      assert.equal(await driver.renew(logKey(tenant, 'never'), at.incarnation, 1, LONG_MS), false)
      assert.equal(await driver.head(logKey(tenant, 'never')), undefined)
    },
  },
  {
    name: 'renews a lease that ran out if nobody came',
    async run({ driver, tenant, advance }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('owner', SHORT_MS) })
      await advance(PAST_SHORT_MS)
      assert.equal(await driver.renew(log, at.incarnation, 1, LONG_MS), true)
      const head = await headOf(driver, log)
      assert.equal(head.lease?.owner, 'owner')
      assert.equal((await appendOne(driver, makeAppend(log, at, { lease: claim('other') }))).status, 'held')
    },
  },
  {
    name: 'does not renew a lease that ran out and was taken',
    async run({ driver, tenant, advance }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('slow', SHORT_MS) })
      await advance(PAST_SHORT_MS)
      await mustAppend(driver, makeAppend(log, at, { lease: claim('next') }))
      assert.equal(await driver.renew(log, at.incarnation, 1, LONG_MS), false)
      assert.equal((await headOf(driver, log)).lease?.owner, 'next')
    },
  },
  {
    name: 'neither renews nor releases a later log of the same name, though its epoch is the same',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const old = await createLog(driver, log, { lease: claim('old') })
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      const at = await createLog(driver, log, { lease: claim('new', 300_000) })
      assert.equal(old.epoch, at.epoch)
      for (const ms of [0, 900_000]) assert.equal(await driver.renew(log, old.incarnation, 1, ms), false)
      const { lease } = await headOf(driver, log)
      assert.equal(lease?.owner, 'new')
      assertRemaining(lease?.remainingMs, 300_000)
      assert.equal(await driver.renew(log, at.incarnation, 1, 0), true)
    },
  },
  {
    name: 'releases by a renewal of 0',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { lease: claim('owner') })
      assert.equal(await driver.renew(log, at.incarnation, 1, 0), true)
      const head = await headOf(driver, log)
      assert.equal(head.lease, null)
      assert.equal(head.epoch, 1)
      await mustAppend(driver, makeAppend(log, at, { lease: claim('next') }))
    },
  },
]
