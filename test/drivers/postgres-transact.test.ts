import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import type { PostgresOptions } from '#src/drivers/postgres/options.js'
import { startChaosProxy } from '#src/testing/chaos-proxy.js'
import { logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { commitSql, transactSql, withSql } from '#src/testing/driver-suite/appends/transact-fixtures.js'
import { makeAppend } from '#src/testing/entries.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { postgresUrl } from '../support/servers.js'

const { push, set } = ops

const given = await postgresUrl()
const url = given as string
const schema = newSchema()
const table = `orders_${schema}`
const tenant = newTenant()
const LEASE = { owner: 'worker', ms: 60_000, force: true }
let counter = 0
const nextAppend = () => makeAppend(logKey(tenant, `thread-${counter++}`), null)
const insert = (id: string) => `INSERT INTO ${table} (id) VALUES ('${id}')`

describe.skipIf(given === undefined)('transactions on Postgres', () => {
  const open: Driver[] = []

  async function openDriver(options: PostgresOptions = {}, target = url) {
    const driver = withSql(await openPostgres(target, { schema, ...options }))
    open.push(driver)
    return driver
  }

  const ids = async () => (await runSql(url, `SELECT id FROM ${table} ORDER BY id`)).map((row) => row['id'])

  beforeAll(async () => {
    await runSql(url, `CREATE TABLE ${table} (id text, at timestamptz, data jsonb, UNIQUE (id) DEFERRABLE)`)
  })
  beforeEach(() => runSql(url, `DELETE FROM ${table}`))
  afterEach(async () => {
    await Promise.all(open.splice(0).map((driver) => driver.close()))
  })
  afterAll(async () => {
    await runSql(url, `DROP TABLE ${table}`)
    await dropSchema(url, schema)
  })

  it('refuses to reach its own schema, and takes texts that name it', async () => {
    const driver = await openDriver()
    for (const sql of [
      `SELECT * FROM ${schema}.logs`,
      `DELETE FROM "${schema}" . "entries"`,
      `SELECT ${schema.toUpperCase()}.append()`,
      `DROP SCHEMA ${schema} CASCADE`,
      `DROP SCHEMA IF EXISTS other, "${schema}"`,
    ]) {
      await expect(transactSql(driver, nextAppend(), sql), sql).rejects.toMatchObject({
        code: 'transaction',
        data: { reason: 'forbidden' },
      })
    }
    await commitSql(
      driver,
      nextAppend(),
      `INSERT INTO ${table} (id) VALUES ('FROM ${schema}.logs') -- ${schema}.logs`,
      `INSERT INTO ${table} (id) VALUES ($tag$ '; COMMIT; $tag$), (E'\\'; COMMIT')`,
    )
    expect(await ids()).toHaveLength(3)
  })

  it('binds and returns values as the pool of the user would', async () => {
    const driver = await openDriver()
    const at = new Date('2024-05-06T07:08:09.123Z')
    await driver.transact(
      async (sql) => {
        const sent = [at, { n: [1, null] }]
        const { rows, changes } = await sql.query(
          `INSERT INTO ${table} (id, at, data) VALUES ('a', $1, $2) RETURNING at, data`,
          sent,
        )
        expect([rows, changes]).toEqual([[{ at, data: { n: [1, null] } }], 1])
        return nextAppend()
      },
      { timeoutMs: 5000 },
    )
    expect(await ids()).toEqual(['a'])
  })

  it('ends a statement that takes too long, and uses the pool again', async () => {
    const driver = await openDriver({ poolSize: 1 })
    const append = nextAppend()
    for (const slow of ['SELECT pg_sleep(20)', `SELECT pg_sleep(0.15) FROM generate_series(1, 100)`]) {
      const late = driver.transact(
        async (sql) => {
          await sql.query(insert('late'))
          await sql.query(slow)
          return append
        },
        { timeoutMs: 150 },
      )
      await expect(late).rejects.toMatchObject({ code: 'transaction', data: { reason: 'timeout', written: 'nothing' } })
    }
    expect(await ids()).toEqual([])
    expect(await driver.head(append.log)).toBeUndefined()
    await commitSql(driver, append, insert('after'))
    expect(await ids()).toEqual(['after'])
  })

  it('leaves no setting of its own on a connection that others get', async () => {
    const driver = await openDriver({ poolSize: 1 })
    const settings = async (timeoutMs: number) => {
      let found: unknown
      await driver.transact(
        async (sql) => {
          ;({
            rows: [found],
          } = await sql.query(
            `SELECT current_setting('statement_timeout') AS s, current_setting('idle_in_transaction_session_timeout') AS i`,
          ))
          return nextAppend()
        },
        { timeoutMs },
      )
      return found
    }
    expect(await settings(4000)).toEqual({ s: '4s', i: '4s' })
    expect(await settings(3000)).toEqual({ s: '3s', i: '3s' })
  })

  it('keeps nothing when a deferred constraint fails at the commit', async () => {
    const driver = await openDriver({ poolSize: 1 })
    const append = nextAppend()
    const refused = driver.transact(
      async (sql) => {
        // Deferrable constraints are checked per statement until a transaction defers them, which needs no SET here.
        await sql.query(insert('a'))
        await sql.query(
          `CREATE TEMP TABLE late_${counter} (id text UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP`,
        )
        await sql.query(`INSERT INTO late_${counter} VALUES ('x'), ('x')`)
        return append
      },
      { timeoutMs: 5000 },
    )
    await expect(refused).rejects.toMatchObject({
      code: 'transaction',
      data: { reason: 'statement', sqlstate: '23505' },
    })
    expect(await ids()).toEqual([])
    expect(await driver.head(append.log)).toBeUndefined()
    await commitSql(driver, append, insert('after'))
  })

  it('stores large values with a single connection', async () => {
    const hf = new Holdfast(new LogStore(await openDriver({ poolSize: 1 })))
    const claim = await (await hf.log('large')).claim(LEASE)
    await claim.transact(
      (sql) => sql.query(insert('a')),
      () => [{ kind: 'step', keyframe: true, ops: [set('large', 'x'.repeat(300_000))] }],
    )
    expect((await hf.log('large')).fold.state['large']).toHaveLength(300_000)
  })

  it('runs both of two transactions that deadlock', async () => {
    await runSql(url, insert('a'), insert('b'))
    const hf = new Holdfast(new LogStore(await openDriver()))
    const touch = (id: string) => `UPDATE ${table} SET data = '1' WHERE id = '${id}'`
    let runs = 0
    let arrived = 0
    const both = await Promise.all(
      [
        ['a', 'b'],
        ['b', 'a'],
      ].map(async ([first = '', second = '']) => {
        const claim = await (await hf.log(`dead-${first}`)).claim(LEASE)
        return claim.transact(
          async (sql) => {
            runs++
            await sql.query(touch(first))
            arrived++
            while (arrived < 2) await sleep(2)
            await sql.query(touch(second))
          },
          () => [{ kind: 'step' }],
        )
      }),
    )
    expect(both.map(({ updated }) => updated.entries.length)).toEqual([1, 1])
    expect(runs).toBe(3)
  })

  it('runs again when its connection is ended in the middle', async () => {
    const hf = new Holdfast(new LogStore(await openDriver()))
    const claim = await (await hf.log('terminated')).claim(LEASE)
    let runs = 0
    await claim.transact(
      async (sql) => {
        await sql.query(insert('once'))
        const { rows } = await sql.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
        if (++runs === 1) await runSql(url, `SELECT pg_terminate_backend(${rows[0]?.pid})`)
        await sql.query('SELECT 1')
      },
      () => [{ kind: 'step' }],
    )
    expect(runs).toBe(2)
    expect(await ids()).toEqual(['once'])
  })

  it('learns from its append that somebody listens', async () => {
    const listener = await openDriver()
    const heard = new Promise<string | undefined>((resolve) => void listener.subscribe?.('topic', resolve))
    const driver = await openDriver()
    await expect
      .poll(async () => {
        await commitSql(driver, nextAppend(), insert(randomUUID()))
        return driver.hasSubscribers?.('topic')
      })
      .toBe(true)
    driver.publish?.('topic', 'news')
    expect(await heard).toBe('news')
  })

  it('does not know the outcome when the reply to COMMIT is lost, and the log finds out', async () => {
    const { hostname, port } = new URL(url)
    await using proxy = await startChaosProxy({ target: { host: hostname, port: Number(port || 5432) } })
    const driver = await openDriver({ poolSize: 4 }, proxy.url(url))
    const isCommit = (request: Buffer) => request.includes('COMMIT\0')
    const append = nextAppend()
    const lost = proxy.dropAfterRequest(1, { when: isCommit })
    await expect(transactSql(driver, append, insert('a'))).rejects.toMatchObject({
      code: 'unavailable',
      data: { written: 'unknown' },
    })
    expect(await lost).toBe(1)
    expect((await driver.head(append.log))?.seq).toBe(0)
    expect(await ids()).toEqual(['a'])

    const hf = new Holdfast(new LogStore(driver))
    const claim = await (await hf.log('lost commits')).claim(LEASE)
    for (let n = 0; n < 10; n++) {
      // Every other reply to a COMMIT is lost, and in between any reply.
      const losing = proxy.dropAfterRequest(1, n % 2 === 0 ? { when: isCommit } : {})
      await claim.transact(
        (sql) => sql.query(insert(`n${n}`)),
        () => [{ kind: 'step', ops: [push('done', n)] }],
      )
      await losing
    }
    expect((await claim.log.refresh()).state['done']).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(await ids()).toEqual(['a', ...Array.from({ length: 10 }, (_, n) => `n${n}`)])
  })
})
