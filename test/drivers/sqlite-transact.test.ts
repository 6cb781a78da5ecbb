import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { commitSql, transactSql, withSql } from '#src/testing/driver-suite/appends/transact-fixtures.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let folder: string
let file: string
let driver: ReturnType<typeof withSql>
let counter = 0

const tenant = newTenant()
const nextAppend = () => makeAppend(logKey(tenant, `thread-${counter++}`), null)

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
  file = join(folder, 'test.db')
  driver = withSql(await openSqlite(file))
  await commitSql(
    driver,
    nextAppend(),
    'CREATE TABLE orders (id TEXT PRIMARY KEY, items TEXT, logs, blob BLOB)',
    'CREATE TABLE lines (id TEXT, "order" TEXT REFERENCES orders (id))',
  )
})

afterEach(async () => {
  await driver.close()
  await rm(folder, { recursive: true, force: true })
})

/** One statement with values, in a transaction that stays. */
async function query(sql: string, ...params: unknown[]) {
  let answer: { readonly rows: readonly Record<string, unknown>[]; readonly changes: number } | undefined
  await driver.transact(
    async (session) => {
      answer = await session.query(sql, params)
      return nextAppend()
    },
    { timeoutMs: 5000 },
  )
  return answer
}

describe('transactions on SQLite', () => {
  it.each([
    'SELECT * FROM logs',
    'SELECT o.id FROM orders o, entries',
    'SELECT count(*) FROM "items"',
    'WITH e AS (SELECT body FROM main.entries) SELECT * FROM e',
    'DELETE FROM items',
    "UPDATE [logs] SET hash = ''",
    'INSERT INTO orders (id) SELECT thread FROM `tombstones`',
    'REPLACE INTO last_touch SELECT * FROM last_touch',
    'DROP TABLE logs',
    'DROP TABLE IF EXISTS main.blobs',
    'DROP INDEX logs_name',
    'ALTER TABLE items RENAME TO mine',
    'ALTER TABLE orders RENAME TO schema_versions',
    'CREATE INDEX mine ON entries (seq)',
  ])('refuses to reach its own tables: %s', async (sql) => {
    await expect(query(sql)).rejects.toMatchObject({ code: 'transaction', data: { reason: 'forbidden' } })
  })

  it('refuses its own tables behind a view and a trigger of the user', async () => {
    const sqlite = (await loadSqlite())(file)
    sqlite.exec('CREATE VIEW seen AS SELECT thread FROM logs')
    sqlite.exec('CREATE TRIGGER sly AFTER INSERT ON orders BEGIN DELETE FROM items WHERE key = new.id; END')
    sqlite.close()
    for (const sql of ['SELECT * FROM seen', "INSERT INTO orders (id) VALUES ('a')"]) {
      await expect(query(sql)).rejects.toMatchObject({ data: { reason: 'forbidden' } })
    }
  })

  it('takes columns, aliases and texts that are called like its own tables', async () => {
    await query("INSERT INTO orders (id, items, logs) VALUES ('a', 'FROM logs', 'DROP TABLE entries')")
    const found = await query('SELECT items, logs AS entries FROM orders AS blobs WHERE blobs.items IS NOT NULL')
    expect(found?.rows).toEqual([{ items: 'FROM logs', entries: 'DROP TABLE entries' }])
    await query('CREATE TABLE more (labels TEXT, items TEXT)')
  })

  it('binds every kind of value that SQLite knows, and returns it', async () => {
    const bytes = new Uint8Array([0, 1, 255])
    const values = ["it's; -- ?", 1.5, null, bytes, 2n ** 40n]
    const found = await query('SELECT ? AS a, ? AS b, ? AS c, ? AS d, ? AS e', ...values)
    expect(found?.rows).toEqual([{ a: values[0], b: 1.5, c: null, d: bytes, e: 2 ** 40 }])
    expect((await query('SELECT ?2 AS a, ?1 AS b', 1, 2))?.rows).toEqual([{ a: 2, b: 1 }])
  })

  it('refuses values that are missing, too many or no values, before anything is written', async () => {
    const insert = 'INSERT INTO orders (id, items) VALUES (?, ?)'
    for (const params of [['a'], ['a', 'b', 'c'], ['a', undefined], ['a', true], ['a', new Date()], ['a', {}]]) {
      await expect(query(insert, ...params)).rejects.toMatchObject({ code: 'invalid-value' })
    }
    await expect(query('SELECT :name', 'x')).rejects.toMatchObject({ code: 'invalid-value', data: { path: 'sql' } })
    expect((await query('SELECT * FROM orders'))?.rows).toEqual([])
  })

  it('says what SQLite has against a statement', async () => {
    await expect(query('SELECT * FROM nowhere')).rejects.toMatchObject({
      code: 'transaction',
      data: { reason: 'statement', sqliteCode: 1, sql: 'SELECT * FROM nowhere' },
      message: expect.stringContaining('no such table: nowhere'),
    })
  })

  it('checks foreign keys of the user', async () => {
    await expect(query("INSERT INTO lines VALUES ('l', 'nobody')")).rejects.toMatchObject({
      data: { reason: 'statement', sqliteCode: 787 },
    })
  })

  it('keeps nothing when a conflict clause rolls back by itself', async () => {
    const insert = "INSERT OR ROLLBACK INTO orders (id) VALUES ('a')"
    const append = nextAppend()
    const stubborn = driver.transact(
      async (sql) => {
        await sql.query(insert)
        await sql.query(insert).catch(() => {})
        await sql.query("INSERT INTO orders (id) VALUES ('b')").catch(() => {})
        return append
      },
      { timeoutMs: 5000 },
    )
    await expect(stubborn).rejects.toMatchObject({ data: { reason: 'statement' } })
    expect(await driver.head(append.log)).toBeUndefined()
    expect((await query('SELECT * FROM orders'))?.rows).toEqual([])
  })

  it('rolls back in time although the main thread is stuck', async () => {
    // If only the main thread rolled back, the other would give up first.
    const other = await openSqlite(file, { busyTimeoutMs: 3000 })
    const append = nextAppend()
    const stuck = driver.transact(
      async (sql) => {
        await sql.query("INSERT INTO orders (id) VALUES ('stuck')")
        const waiting = mustAppend(other, nextAppend())
        const own = mustAppend(driver, nextAppend())
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000)
        await Promise.all([waiting, own])
        return append
      },
      { timeoutMs: 200 },
    )
    await expect(stuck).rejects.toMatchObject({ code: 'transaction', data: { reason: 'timeout' } })
    expect(await driver.head(append.log)).toBeUndefined()
    expect((await query('SELECT * FROM orders'))?.rows).toEqual([])
    await other.close()
  })

  it('is unavailable, with nothing written, while another process holds the file', async () => {
    const impatient = withSql(await openSqlite(file, { busyTimeoutMs: 50 }))
    const sqlite = (await loadSqlite())(file)
    sqlite.exec('BEGIN IMMEDIATE')
    let ran = false
    const refused = impatient.transact(
      async () => {
        ran = true
        return nextAppend()
      },
      { timeoutMs: 5000 },
    )
    await expect(refused).rejects.toMatchObject({ code: 'unavailable', data: { written: 'nothing' } })
    expect(ran).toBe(false)
    sqlite.exec('ROLLBACK')
    sqlite.close()
    await commitSql(impatient, nextAppend(), "INSERT INTO orders (id) VALUES ('after')")
    await impatient.close()
  })

  it('goes on with reads, and with writes in their order, after many transactions that fail', async () => {
    for (let i = 0; i < 20; i++) {
      const failing = transactSql(driver, nextAppend(), "INSERT INTO orders (id) VALUES ('x')", 'SELECT broken')
      const append = nextAppend()
      const [failed] = await Promise.allSettled([failing, mustAppend(driver, append), driver.head(append.log)])
      expect(failed.status).toBe('rejected')
      expect((await driver.head(append.log))?.seq).toBe(0)
    }
  })
})
