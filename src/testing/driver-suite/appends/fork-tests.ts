import assert from 'node:assert/strict'
import type { Append, LogKey } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import { appendOne, assertSameHead, branchId, createLog, headOf, logKey, type SuiteTest } from '../suite-context.js'

export const forkTests: readonly SuiteTest[] = [
  {
    name: 'creates a fork whose source exists with the incarnation it requires',
    async run({ driver, tenant }) {
      const source = logKey(tenant)
      const at = await createLog(driver, source)
      const [append, log] = fork(source, at.incarnation)
      assert.deepEqual(await driver.append([append]), [{ status: 'appended' }])
      assert.equal((await headOf(driver, log)).incarnation, append.incarnation)
      assert.equal((await headOf(driver, source)).seq, 0)
    },
  },
  {
    name: 'refuses a fork whose source is absent, gone, or another incarnation',
    async run({ driver, tenant }) {
      const source = logKey(tenant)
      const [absent, log] = fork(source, 'never')
      assert.deepEqual(await appendOne(driver, absent), { status: 'conflict', head: undefined })
      const old = await createLog(driver, source)
      await driver.erase({ tenant, thread: source.thread, tombstone: null })
      const [gone] = fork(source, old.incarnation)
      assert.deepEqual(await appendOne(driver, gone), { status: 'conflict', head: undefined })
      await createLog(driver, source)
      assert.deepEqual(await appendOne(driver, gone), { status: 'conflict', head: undefined })
      assert.equal(await driver.head(log), undefined)
    },
  },
  {
    name: 'looks for the source of a fork in the same thread only',
    async run({ driver, tenant }) {
      const elsewhere = logKey(tenant, 'elsewhere')
      const at = await createLog(driver, elsewhere)
      const [append, log] = fork(logKey(tenant, 'here'), at.incarnation)
      assert.deepEqual(await appendOne(driver, append), { status: 'conflict', head: undefined })
      assert.equal(await driver.head(log), undefined)
    },
  },
  {
    name: 'leaves the source of a fork as it is, and the fork when its source is erased',
    async run({ driver, tenant }) {
      const source = logKey(tenant)
      const at = await createLog(driver, source)
      const [append, log] = fork(source, at.incarnation)
      const end = await mustAppend(driver, append)
      const before = await headOf(driver, source)
      const next = await mustAppend(driver, makeAppend(log, end))
      assertSameHead(await driver.head(source), before)
      await driver.erase({ tenant, thread: source.thread, branch: source.branch, tombstone: null })
      await mustAppend(driver, makeAppend(log, next))
      assert.equal((await headOf(driver, log)).seq, 2)
    },
  },
]

function fork(source: LogKey, incarnation: string): [Append, LogKey] {
  const log = { ...source, branch: branchId('fork') }
  return [makeAppend(log, null, { requires: { branch: source.branch, incarnation } }), log]
}
