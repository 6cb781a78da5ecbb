import assert from 'node:assert/strict'
import { expectAfter, makeAppend, mustAppend } from '../../entries.js'
import { appendOne, createLog, headOf, logKey, type SuiteTest } from '../suite-context.js'
import {
  commitSql,
  insertRow,
  pausedTransaction,
  PLENTY_MS,
  rowsOf,
  sqlTest,
  transactSql,
  withSql,
} from './transact-fixtures.js'

/** Transactions beside each other and beside appends. */
export const transactRaceTests: readonly SuiteTest[] = [
  sqlTest('loses no append that is made while a transaction stands still', async (context) => {
    const { driver, open, tenant, table } = context
    const other = await open()
    const { started, goOn, result } = pausedTransaction(driver, makeAppend(logKey(tenant), null), insertRow(table, 'a'))
    await started
    const logs = Array.from({ length: 10 }, (_, i) => logKey(tenant, `other-${i}`))
    const appends = logs.map((log, i) => mustAppend(i % 2 === 0 ? driver : other, makeAppend(log, null)))
    const second = transactSql(driver, makeAppend(logKey(tenant, 'second'), null), insertRow(table, 'b'))
    goOn()
    await Promise.all(appends)
    assert.equal((await result).status, 'appended')
    assert.equal((await second).status, 'appended')
    for (const log of logs) assert.equal((await headOf(driver, log)).seq, 0)
    assert.deepEqual(await rowsOf(driver, table), { a: 1, b: 1 })
  }),
  sqlTest('counts exactly once in each of many parallel transactions', async (context) => {
    const { driver, open, tenant, table } = context
    const drivers = [driver, withSql(await open())]
    await commitSql(driver, makeAppend(logKey(tenant), null), insertRow(table, 'n', 0))
    const count = 24
    const results = await Promise.all(
      Array.from({ length: count }, (_, i) =>
        transactSql(
          drivers[i % 2] ?? driver,
          makeAppend(logKey(tenant, `t${i}`), null),
          `UPDATE ${table} SET n = n + 1 WHERE id = 'n'`,
          insertRow(table, `t${i}`),
        ),
      ),
    )
    assert.ok(results.every(({ status }) => status === 'appended'))
    const { n, ...others } = await rowsOf(driver, table)
    assert.equal(n, count)
    assert.equal(Object.keys(others).length, count)
  }),
  sqlTest('lets exactly one win of transactions and appends that race on one log', async (context) => {
    const { driver, open, tenant, table, rounds } = context
    const drivers = [driver, withSql(await open())] as const
    const log = logKey(tenant)
    let at = await createLog(driver, log)
    const winners: string[] = []
    for (let round = 0; round < Math.ceil(rounds / 50); round++) {
      const names = ['a', 'b', 'c']
      const appends = names.map(() => makeAppend(log, at))
      const [a, b, c] = appends as [(typeof appends)[0], (typeof appends)[0], (typeof appends)[0]]
      const results = await Promise.all([
        transactSql(drivers[0], a, insertRow(table, `${round}-a`)),
        transactSql(drivers[1], b, insertRow(table, `${round}-b`)),
        appendOne(drivers[round % 2] ?? driver, c),
      ])
      const won = results.findIndex(({ status }) => status === 'appended')
      assert.equal(results.filter(({ status }) => status === 'conflict').length, 2)
      at = expectAfter(appends[won] ?? assert.fail('one wins'))
      if (won < 2) winners.push(`${round}-${names[won]}`)
    }
    assert.deepEqual(Object.keys(await rowsOf(driver, table)).sort(), winners.sort())
  }),
  sqlTest('closes only when a transaction under way is over', async ({ driver, open, tenant, table }) => {
    const closing = withSql(await open())
    const append = makeAppend(logKey(tenant), null)
    let goOn = (): void => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    let begun = (): void => {}
    const started = new Promise<void>((resolve) => {
      begun = resolve
    })
    const transaction = closing.transact(
      async (sql) => {
        begun()
        await gate
        await sql.query(insertRow(table, 'a'))
        return append
      },
      { timeoutMs: PLENTY_MS },
    )
    await started
    const order: string[] = []
    const over = transaction.then(({ status }) => order.push(status))
    const closed = closing.close().then(() => order.push('closed'))
    // Long enough for a close that does not wait.
    await new Promise((resolve) => setTimeout(resolve, 50))
    goOn()
    await Promise.all([over, closed])
    assert.deepEqual(order, ['appended', 'closed'])
    await assert.rejects(transactSql(closing, append), { code: 'closed' })
    assert.deepEqual(await rowsOf(driver, table), { a: 1 })
  }),
]
