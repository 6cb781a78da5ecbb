import assert from 'node:assert/strict'
import { parseTenantId } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'
import { makeAppend, mustAppend } from '../entries.js'
import {
  appendOne,
  assertUnchanged,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  newTenant,
  type SuiteTest,
  threadsFound,
} from './suite-context.js'

export const tenantTests: readonly SuiteTest[] = [
  {
    name: 'keeps threads of the same name apart by tenant, through every method',
    async run({ driver, tenant: mine }) {
      const theirs = newTenant()
      const claim = { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } as const
      const index = { tags: ['t'], metadata: { m: 1 } }
      const myLog = logKey(mine)
      const theirLog = logKey(theirs)
      const my = await createLog(driver, myLog, { count: 5, lease: claim, index })
      const their = await createLog(driver, theirLog, { count: 3, index })
      const before = await headOf(driver, myLog)
      const entries = await driver.read(myLog, 0, 10)

      assert.equal((await appendOne(driver, makeAppend(theirLog, my))).status, 'conflict')
      assert.equal((await driver.tail(theirLog))?.head.hash, their.hash)
      assert.equal((await driver.read(theirLog, 0, 10)).length, 3)
      assert.equal((await driver.headers(theirLog, { limit: 10 })).length, 3)
      assert.equal(await driver.renew(theirLog, my.incarnation, 1, LONG_MS), false)
      assert.equal(await driver.prune(theirLog, my.incarnation, 2), 'conflict')
      assert.equal(await driver.reindex(theirLog, my, before.index), false)
      for (const query of [{}, index, { status: ['idle'] }, { thread: myLog.thread }]) {
        const { heads } = await driver.heads({ tenant: theirs, ...query, limit: 10 })
        assert.deepEqual(
          heads.map((head) => head.log.tenant),
          [theirs],
        )
      }
      assert.notEqual(await driver.prune(theirLog, their.incarnation, 2), 'conflict')
      const tombstone = { at: 1, reason: 'theirs' }
      assert.deepEqual(await driver.erase({ tenant: theirs, thread: theirLog.thread, tombstone }), { erased: 1 })
      assert.equal(await driver.tombstone(mine, myLog.thread), undefined)
      await assertUnchanged(driver, before, entries)
      assert.equal((await headOf(driver, myLog)).lease?.owner, 'w')
      assert.deepEqual(await threadsFound(driver, { tenant: mine, ...index }), ['thread'])
    },
  },
  {
    name: 'does not let a fork require a branch of another tenant',
    async run({ driver, tenant }) {
      const stranger = newTenant()
      const at = await createLog(driver, logKey(stranger))
      const requires = { branch: logKey(stranger).branch, incarnation: at.incarnation }
      const result = await appendOne(driver, makeAppend(logKey(tenant, 'thread', 'fork'), null, { requires }))
      assert.deepEqual(result, { status: 'conflict', head: undefined })
    },
  },
  {
    name: 'never mixes up names that are equal when they are joined',
    async run({ driver, tenant }) {
      const logs: LogKey[] = []
      for (const separator of [
        ':',
        '/',
        '|',
        '.',
        '-',
        '_',
        ' ',
        '\\',
        '}',
        '%2f',
        ',',
        ';',
        '#',
        '@',
        '=',
        '~',
        '\u00a0',
      ]) {
        const s = separator
        logs.push(
          logKey(parseTenantId(`${tenant}${s}a`), `b${s}c`, 'd'),
          logKey(parseTenantId(`${tenant}${s}a${s}b`), 'c', 'd'),
          logKey(parseTenantId(`${tenant}${s}a`), 'b', `c${s}d`),
          logKey(parseTenantId(`${tenant}${s}a`), `b${s}`, `c${s}d`),
          logKey(parseTenantId(`${tenant}${s}a${s}`), 'b', `c${s}d`),
        )
      }
      const ends = []
      for (const [i, log] of logs.entries()) ends.push(await createLog(driver, log, { index: { status: `s${i}` } }))
      for (const [i, log] of logs.entries()) {
        const head = await headOf(driver, log)
        assert.equal(head.hash, ends[i]?.hash, `the log ${JSON.stringify(log)}`)
        const { heads } = await driver.heads({ ...log, limit: 5 })
        assert.deepEqual(
          heads.map((found) => found.index.status),
          [`s${i}`],
        )
        await mustAppend(driver, makeAppend(log, head))
      }
      for (const [i, log] of logs.entries()) {
        assert.equal((await headOf(driver, log)).seq, 1)
        assert.deepEqual(await driver.erase({ ...log, tombstone: null }), { erased: 1 })
        const next = logs[i + 1]
        if (next !== undefined) assert.equal((await headOf(driver, next)).seq, 1)
      }
    },
  },
]
