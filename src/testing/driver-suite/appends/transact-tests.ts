import assert from 'node:assert/strict'
import type { SqlSession } from '../../../log/contract.js'
import { expectAfter, makeAppend, makeBytes, makeHash, mustAppend } from '../../entries.js'
import { assertItem, makeCarried, makeItem, readOne, withItems } from '../items/item-fixtures.js'
import { assertUnchanged, claim, createLog, headOf, logKey, type SuiteTest } from '../suite-context.js'
import {
  commitSql,
  insertRow,
  pausedTransaction,
  PLENTY_MS,
  refusedFor,
  rowsOf,
  sqlTest,
  transactSql,
  withSql,
} from './transact-fixtures.js'

/** The user's own SQL in the transaction of an append: both or neither. */
export const transactTests: readonly SuiteTest[] = [
  {
    name: 'has transact exactly when it declares transactions',
    run: async ({ driver }) => assert.equal(driver.transact !== undefined, driver.capabilities.transactions),
  },
  sqlTest('commits statements and append together, for a fresh connection to see', async (context) => {
    const { driver, open, tenant, table } = context
    const log = logKey(tenant)
    const first = makeAppend(log, null)
    await commitSql(driver, first, insertRow(table, 'a'))
    await commitSql(
      driver,
      makeAppend(log, expectAfter(first)),
      `UPDATE ${table} SET n = n + 1`,
      insertRow(table, 'b', 5),
    )
    const other = withSql(await open())
    assert.deepEqual(await rowsOf(other, table), { a: 2, b: 5 })
    assert.equal((await headOf(other, log)).seq, 1)
  }),
  sqlTest('lets the append depend on what the statements return', async ({ driver, tenant, table }) => {
    const log = logKey(tenant)
    await driver.transact(
      async (sql) => {
        const inserted = await sql.query(`INSERT INTO ${table} (id, n) VALUES ('a', 1), ('b', 2) RETURNING id`)
        assert.deepEqual(
          inserted.rows.map((row) => row['id']),
          ['a', 'b'],
        )
        assert.equal(inserted.changes, 2)
        assert.equal((await sql.query(`UPDATE ${table} SET n = 9 WHERE id = 'nobody'`)).changes, 0)
        assert.equal((await sql.query(`DELETE FROM ${table} WHERE id = 'b'`)).changes, 1)
        const { rows, changes } = await sql.query<{ n: number }>(`SELECT n FROM ${table}`)
        assert.equal(changes, 0)
        return makeAppend(log, null, { index: { metadata: { n: Number(rows[0]?.n) } } })
      },
      { timeoutMs: PLENTY_MS },
    )
    assert.equal((await headOf(driver, log)).index.metadata['n'], 1)
  }),
  sqlTest('keeps nothing when the work rejects, and rejects with the same', async ({ driver, tenant, table }) => {
    const log = logKey(tenant)
    const thrown = new Error('the work failed')
    const failing = driver.transact(
      async (sql) => {
        await sql.query(insertRow(table, 'a'))
        throw thrown
      },
      { timeoutMs: PLENTY_MS },
    )
    await assert.rejects(failing, (error) => error === thrown)
    assert.deepEqual(await rowsOf(driver, table), {})
    assert.equal(await driver.head(log), undefined)
  }),
  sqlTest('keeps nothing when the append conflicts, and returns the head', async ({ driver, tenant, table }) => {
    const log = logKey(tenant)
    const first = makeAppend(log, null)
    const at = await mustAppend(driver, first)
    const before = await headOf(driver, log)
    for (const stale of [{ ...at, hash: makeHash('x') }, { ...at, seq: 5 }, { ...at, incarnation: 'another' }, null]) {
      const result = await transactSql(driver, makeAppend(log, stale), insertRow(table, 'a'))
      assert.equal(result.status, 'conflict')
      assert.equal(result.status === 'conflict' && result.head?.hash, at.hash)
      await assertUnchanged(driver, before, first.entries)
      assert.deepEqual(await rowsOf(driver, table), {})
    }
  }),
  sqlTest('keeps nothing of a worker that was fenced', async ({ driver, open, tenant, table }) => {
    const log = logKey(tenant)
    const mine = await createLog(driver, log, { lease: claim('a') })
    await mustAppend(await open(), makeAppend(log, mine, { lease: claim('b', 1000, true) }))
    const result = await transactSql(
      driver,
      makeAppend(log, mine, { lease: { kind: 'extend', ms: 1000 } }),
      insertRow(table, 'a'),
    )
    assert.equal(result.status === 'conflict' && result.head?.epoch, 2)
    assert.deepEqual(await rowsOf(driver, table), {})
  }),
  sqlTest('rolls back and goes on when the time is over', async ({ driver, tenant, table }) => {
    const append = makeAppend(logKey(tenant), null)
    let session: SqlSession | undefined
    const hanging = driver.transact(
      async (sql) => {
        session = sql
        await sql.query(insertRow(table, 'a'))
        await new Promise(() => {})
        return append
      },
      { timeoutMs: 100 },
    )
    await assert.rejects(hanging, refusedFor('timeout'))
    await assert.rejects((session as SqlSession).query(insertRow(table, 'b')), refusedFor('ended'))
    assert.deepEqual(await rowsOf(driver, table), {})
    assert.equal(await driver.head(append.log), undefined)
    await commitSql(driver, append, insertRow(table, 'c'))
    assert.deepEqual(await rowsOf(driver, table), { c: 1 })
  }),
  sqlTest('keeps nothing after a statement that failed, even if the work goes on', async (context) => {
    const { driver, tenant, table } = context
    const append = makeAppend(logKey(tenant), null)
    const stubborn = driver.transact(
      async (sql) => {
        await sql.query(insertRow(table, 'a'))
        await assert.rejects(sql.query(insertRow(table, 'a')), refusedFor('statement'))
        await assert.rejects(sql.query(insertRow(table, 'b')), refusedFor('statement'))
        return append
      },
      { timeoutMs: PLENTY_MS },
    )
    await assert.rejects(stubborn, refusedFor('statement'))
    assert.equal(await driver.head(append.log), undefined)
    assert.deepEqual(await rowsOf(driver, table), {})
  }),
  sqlTest('waits for statements that the work did not wait for', async ({ driver, tenant, table }) => {
    await driver.transact(
      async (sql) => {
        for (const id of ['a', 'b', 'c']) void sql.query(insertRow(table, id))
        return makeAppend(logKey(tenant), null)
      },
      { timeoutMs: PLENTY_MS },
    )
    assert.deepEqual(await rowsOf(driver, table), { a: 1, b: 1, c: 1 })
    const careless = driver.transact(
      async (sql) => {
        for (const id of ['d', 'a', 'e']) void sql.query(`INSERT INTO ${table} (id, n) VALUES ('${id}', 1)`)
        return makeAppend(logKey(tenant, 'other'), null)
      },
      { timeoutMs: PLENTY_MS },
    )
    await assert.rejects(careless, refusedFor('statement'))
    assert.deepEqual(await rowsOf(driver, table), { a: 1, b: 1, c: 1 })
  }),
  sqlTest('refuses a session after its end', async ({ driver, tenant, table }) => {
    let session: SqlSession | undefined
    await driver.transact(
      async (sql) => {
        session = sql
        return makeAppend(logKey(tenant), null)
      },
      { timeoutMs: PLENTY_MS },
    )
    await assert.rejects((session as SqlSession).query(insertRow(table, 'late')), refusedFor('ended'))
    assert.deepEqual(await rowsOf(driver, table), {})
  }),
  sqlTest('refuses statements that would end the transaction or change the connection', async (context) => {
    const { driver, tenant, table } = context
    const insert = insertRow(table, 'a')
    const statements = [
      'BEGIN',
      'commit',
      ' /* a comment */ COMMIT;',
      '-- a comment\nROLLBACK',
      'END',
      'SAVEPOINT s',
      'RELEASE s',
      'PRAGMA synchronous = OFF',
      "ATTACH 'other.db' AS other",
      'VACUUM',
      "SET statement_timeout = '0'",
      "PREPARE TRANSACTION 'x'",
      `${insert}; COMMIT`,
      `${insert}; ${insertRow(table, 'b')}`,
      '',
      ';',
    ]
    for (const [i, statement] of statements.entries()) {
      const append = makeAppend(logKey(tenant, `t${i}`), null)
      await assert.rejects(transactSql(driver, append, insert, statement), refusedFor('forbidden'), statement)
      assert.equal(await driver.head(append.log), undefined)
    }
    assert.deepEqual(await rowsOf(driver, table), {})
    const odd = `INSERT INTO ${table} (id, n) VALUES ('; COMMIT', 1) -- ; COMMIT\n ; `
    await commitSql(driver, makeAppend(logKey(tenant), null), odd)
    assert.deepEqual(await rowsOf(driver, table), { '; COMMIT': 1 })
  }),
  sqlTest('refuses an append that no correct caller makes, and keeps nothing', async ({ driver, tenant, table }) => {
    const broken = { ...makeAppend(logKey(tenant), null), entries: [] }
    await assert.rejects(transactSql(driver, broken, insertRow(table, 'a')), { code: 'invalid-value' })
    assert.deepEqual(await rowsOf(driver, table), {})
  }),
  sqlTest('lands what the append carries with it, or not at all', async ({ driver, tenant, table }) => {
    if (!driver.capabilities.storeAtomic) return
    const items = withItems(driver)
    const log = logKey(tenant)
    const item = makeItem()
    const append = { ...makeAppend(log, null), carried: [makeCarried(0, 's', 'k', item)] }
    await commitSql(driver, append, insertRow(table, 'a'))
    assertItem(await readOne(items, tenant, 's', 'k'), 'k', item)
    const stale = { ...makeAppend(log, null), carried: [makeCarried(0, 's', 'other', makeItem())] }
    assert.equal((await transactSql(driver, stale)).status, 'conflict')
    assert.equal(await readOne(items, tenant, 's', 'other'), undefined)
  }),
  sqlTest('stores blobs inside the transaction', async ({ driver, tenant }) => {
    const blobs = ['kept', 'lost'].map((seed) => ({ hash: makeHash(seed), bytes: makeBytes(seed, 70_000) }))
    const hashes = blobs.map(({ hash }) => hash)
    const put = (blob: (typeof blobs)[number], append = makeAppend(logKey(tenant), null)) =>
      driver.transact(
        async (_, writer) => {
          assert.deepEqual(await writer.touchBlobs(tenant, [blob.hash]), [blob.hash])
          await writer.putBlobs(tenant, [blob])
          assert.deepEqual(await writer.touchBlobs(tenant, [blob.hash]), [])
          return append
        },
        { timeoutMs: PLENTY_MS },
      )
    const [kept, lost] = blobs as [(typeof blobs)[number], (typeof blobs)[number]]
    assert.equal((await put(kept)).status, 'appended')
    assert.equal((await put(lost)).status, 'conflict')
    const found = await driver.getBlobs(tenant, hashes)
    assert.deepEqual([...found.keys()], [kept.hash])
    assert.ok(Buffer.compare(found.get(kept.hash) as Uint8Array, kept.bytes) === 0)
  }),
  sqlTest('shows nothing of itself before it is committed', async ({ driver, open, tenant, table }) => {
    const log = logKey(tenant)
    const append = makeAppend(log, null)
    const drivers = [driver, await open()]
    const { started, goOn, result } = pausedTransaction(driver, append, insertRow(table, 'a'))
    await started
    for (const each of drivers) {
      assert.equal(await each.head(log), undefined)
      assert.deepEqual(await each.read(log, 0, 10), [])
    }
    goOn()
    assert.equal((await result).status, 'appended')
    assert.equal((await headOf(driver, log)).seq, 0)
  }),
]
