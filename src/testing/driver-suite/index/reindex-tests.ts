import assert from 'node:assert/strict'
import type { Expect } from '../../../log/contract.js'
import { makeAppend, makeHash, mustAppend } from '../../entries.js'
import {
  assertSameHead,
  assertUnchanged,
  comparableIndex,
  createLog,
  headOf,
  logKey,
  type SuiteTest,
} from '../suite-context.js'

export const reindexTests: readonly SuiteTest[] = [
  {
    name: 'replaces the index row by reindex and leaves entries, epoch and lease alone',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, {
        lease: { kind: 'claim', owner: 'owner', ms: 600_000, force: false },
        index: { status: 'wrong', tags: ['wrong'], metadata: { wrong: true } },
      })
      const entries = await driver.read(log, 0, 10)
      const { index } = makeAppend(log, at, {
        index: { status: 'right', createdAt: 3, updatedAt: 9, wakeAt: 1, tags: ['right'], metadata: { right: 1 } },
      })
      assert.equal(await driver.reindex(log, at, index), true)
      const head = await headOf(driver, log)
      assert.deepEqual(comparableIndex(head.index), comparableIndex(index))
      assert.equal(head.epoch, 1)
      assert.equal(head.lease?.owner, 'owner')
      await assertUnchanged(driver, head, entries)
      assert.equal((await driver.heads({ tenant, tags: ['right'], metadata: { right: 1 }, limit: 9 })).heads.length, 1)
      assert.equal((await driver.heads({ tenant, tags: ['wrong'], limit: 9 })).heads.length, 0)
      assert.equal((await driver.heads({ tenant, metadata: { wrong: true }, limit: 9 })).heads.length, 0)
      await mustAppend(driver, makeAppend(log, at))
    },
  },
  {
    name: 'does not reindex a log that ends elsewhere or is gone',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, { count: 2 })
      const before = await headOf(driver, log)
      const { index } = makeAppend(log, at, { index: { status: 'late' } })
      const wrong: Partial<Expect>[] = [{ incarnation: 'x' }, { seq: 0 }, { hash: makeHash('x') }, { epoch: 1 }]
      for (const change of wrong) assert.equal(await driver.reindex(log, { ...at, ...change }, index), false)
      assertSameHead(await driver.head(log), before)
      assert.equal(await driver.reindex(logKey(tenant, 'never'), at, index), false)
      assert.equal(await driver.head(logKey(tenant, 'never')), undefined)
    },
  },
]
