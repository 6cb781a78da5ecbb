import net from 'node:net'
import { isHoldfastError, type HoldfastError } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import type { PgPoolLike } from '#src/drivers/postgres/pg-client.js'
import { PROBE_TEXT } from '#src/drivers/postgres/connection/probe.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import { createLog, logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import pg from 'pg'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { postgresUrl } from '../support/servers.js'

const given = await postgresUrl()
const url = given as string
const schemas: string[] = []
const roles: string[] = []

function schemaName(): string {
  const schema = newSchema()
  schemas.push(schema)
  return schema
}

/** A role that may log in, and the URL it logs in with. */
async function createRole(...settings: string[]): Promise<{ role: string; roleUrl: string }> {
  const role = newSchema()
  roles.push(role)
  await runSql(
    url,
    `CREATE ROLE ${role} LOGIN PASSWORD 'secret'`,
    ...settings.map((set) => `ALTER ROLE ${role} SET ${set}`),
  )
  const roleUrl = new URL(url)
  roleUrl.username = role
  roleUrl.password = 'secret'
  return { role, roleUrl: roleUrl.href }
}

async function failure(promise: Promise<unknown>): Promise<HoldfastError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isHoldfastError(error)) throw new Error(`no typed error: ${String(error)}`)
  return error
}

function changed(change: (url: URL) => void): string {
  const copy = new URL(url)
  change(copy)
  return copy.href
}

/** A pool whose server gives other answers, by column, when it is asked what it is. */
function answering(pool: pg.Pool, answer: Readonly<Record<number, string>>): PgPoolLike {
  return {
    async connect() {
      const client = await pool.connect()
      const query = client.query.bind(client) as (query: unknown) => Promise<{ rows: unknown[][] }>
      return Object.create(client, {
        query: {
          value: async (statement: { text?: string }) => {
            const result = await query(statement)
            if (statement.text === PROBE_TEXT) Object.assign(result.rows[0], answer)
            return result
          },
        },
      })
    },
  }
}

describe.skipIf(given === undefined)('opening Postgres', () => {
  afterEach(() => dropSchema(url, ...schemas.splice(0)))
  afterAll(async () => {
    for (const role of roles) await runSql(url, `DROP OWNED BY ${role}`, `DROP ROLE ${role}`)
  })

  describe('refuses, and says what to do', () => {
    it('a wrong password, without repeating it', async () => {
      const { roleUrl } = await createRole()
      const wrong = new URL(roleUrl)
      wrong.password = 'not-the-secret'
      const error = await failure(openPostgres(wrong.href))
      expect(error.data).toMatchObject({ reason: 'authentication', written: 'nothing' })
      expect(error.remedy).toContain('password')
      expect(error.message).not.toContain('not-the-secret')
    })

    it('a database that does not exist', async () => {
      const error = await failure(openPostgres(changed((copy) => (copy.pathname = '/no_such_database'))))
      expect(error.data).toMatchObject({ reason: 'no-database', written: 'nothing' })
      expect(error.remedy).toContain('CREATE DATABASE')
    })

    it('a port where nobody listens', async () => {
      const server = net.createServer().listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as net.AddressInfo
      await new Promise((resolve) => server.close(resolve))
      const error = await failure(openPostgres(`postgres://127.0.0.1:${port}/x`))
      expect(error.code).toBe('unavailable')
      expect(error.data).toMatchObject({ reason: 'unreachable', written: 'nothing' })
      expect(error.message).toContain('ECONNREFUSED')
    })

    it('a host name that does not exist', async () => {
      const error = await failure(openPostgres('postgres://no-such-host.invalid/x'))
      expect(error.code).toBe('unavailable')
      expect(error.data).toMatchObject({ reason: 'unreachable' })
    })

    it('a server that accepts connections and never speaks, when the connect timeout is over', async () => {
      const sockets: net.Socket[] = []
      const server = net.createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as net.AddressInfo
      const error = await failure(openPostgres(`postgres://127.0.0.1:${port}/x`, { connectTimeoutMs: 200 }))
      expect(error.code).toBe('unavailable')
      expect(error.data).toMatchObject({ written: 'nothing' })
      for (const socket of sockets) socket.destroy()
      server.close()
    })

    it.each([
      ['too old', { 0: '120022', 1: '12.22' }, 'too-old', 'Upgrade'],
      ['a standby', { 3: 't' }, 'read-only', 'primary'],
      ['one that stores another encoding', { 4: 'LATIN1' }, 'encoding', 'UTF8'],
      ['one that expects another encoding', { 5: 'LATIN1' }, 'encoding', 'client_encoding'],
    ])('a server that is %s', async (_name, answer, reason, remedy) => {
      const pool = new pg.Pool({ connectionString: url })
      const error = await failure(openPostgres({ pool: answering(pool, answer) }, { schema: schemaName() }))
      expect(error.data).toMatchObject({ reason, written: 'nothing' })
      expect(error.remedy).toContain(remedy)
      // Nothing of the pool stays taken.
      await pool.end()
    })

    it.each(['', 'a-b', '1a', 'a"b', 'pg_mine', 'PG_mine', 'x'.repeat(51), "a'; DROP TABLE x; --", 'ä'])(
      'the schema name %j',
      async (schema) => {
        const error = await failure(openPostgres(url, { schema }))
        expect(error.code).toBe('invalid-option')
        expect(error.data).toMatchObject({ field: 'schema' })
      },
    )

    it.each([
      ['mysql://x', {}, 'url'],
      ['postgres://[', {}, 'url'],
      [{ pool: {} }, {}, 'pool'],
      ['postgres://x', { poolSize: 0 }, 'poolSize'],
      ['postgres://x', { connectTimeoutMs: -1 }, 'connectTimeoutMs'],
      ['postgres://x', { statementTimeoutMs: Number.NaN }, 'statementTimeoutMs'],
      ['postgres://x', { listenUrl: 'redis://x' }, 'listenUrl'],
    ])('the options %j %j', async (target, options, field) => {
      const error = await failure(openPostgres(target as string, options))
      expect(error.code).toBe('invalid-option')
      expect(error.data).toMatchObject({ field })
    })

    it('a role that may not create the schema, and takes it once the schema is there', async () => {
      const schema = schemaName()
      const { role, roleUrl } = await createRole()
      const error = await failure(openPostgres(roleUrl, { schema }))
      expect(error.data).toMatchObject({ reason: 'permission', written: 'nothing' })
      expect(error.remedy).toContain('Grant')

      await (await openPostgres(url, { schema })).close()
      await runSql(
        url,
        `GRANT USAGE ON SCHEMA "${schema}" TO ${role}`,
        `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO ${role}`,
      )
      const driver = await openPostgres(roleUrl, { schema })
      const log = logKey(newTenant())
      const head = await createLog(driver, log, { index: { tags: ['a'], metadata: { b: 1 } } })
      await mustAppend(driver, makeAppend(log, head))
      expect(await driver.erase({ ...log, tombstone: { at: 1, reason: 'test' } })).toEqual({ erased: 1 })
      await driver.close()
    })

    it('a schema that newer code changed in a way we do not understand, but not one it only added to', async () => {
      const schema = schemaName()
      await (await openPostgres(url, { schema })).close()
      const insert = (version: number, breaking: boolean) =>
        runSql(
          url,
          `INSERT INTO "${schema}".migrations (version, name, breaking) VALUES (${version}, 'newer', ${breaking})`,
        )
      await insert(900, false)
      await (await openPostgres(url, { schema })).close()
      await insert(901, true)
      const error = await failure(openPostgres(url, { schema }))
      expect(error.code).toBe('schema-too-new')
      expect(error.data).toMatchObject({ found: 901 })
    })
  })

  it('shares the pool it is given, and leaves it open', async () => {
    const schema = schemaName()
    const pool = new pg.Pool({ connectionString: url, max: 3 })
    // Parsers that the user sets for all of pg must not change our numbers.
    pg.types.setTypeParser(20, () => 'not a number' as never)
    try {
      const driver = await openPostgres({ pool }, { schema })
      const log = logKey(newTenant())
      await mustAppend(driver, makeAppend(log, await createLog(driver, log)))
      expect((await driver.read(log, 0, 10)).map(({ seq }) => seq)).toEqual([0, 1])
      await driver.close()
      expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    } finally {
      pg.types.setTypeParser(20, (text) => text as never)
      await pool.end()
    }
  })

  it('reads the first log of a process on the connection that is there, without waiting for another', async () => {
    const pool = new pg.Pool({ connectionString: url })
    const driver = await openPostgres({ pool }, { schema: schemaName(), notify: false })
    await new LogStore(driver).open(logKey(newTenant()))
    expect(pool.totalCount).toBe(1)
    await driver.close()
    await pool.end()
  })

  it('reports what the sessions of this role will really do, not what the server is configured to', async () => {
    const schema = schemaName()
    const driver = await openPostgres(url, { schema })
    expect(driver.survives).toMatchObject({ processKill: 'yes', settings: { fsync: 'on', synchronous_commit: 'on' } })
    await driver.close()

    const { role, roleUrl } = await createRole('synchronous_commit = off')
    await runSql(
      url,
      `GRANT USAGE ON SCHEMA "${schema}" TO ${role}`,
      `GRANT SELECT ON "${schema}".migrations TO ${role}`,
    )
    const careless = await openPostgres(roleUrl, { schema })
    expect(careless.survives).toMatchObject({
      processKill: 'yes',
      osCrash: 'recent-loss',
      powerLoss: 'recent-loss',
      lossWindowMs: 600,
      settings: { synchronous_commit: 'off' },
    })
    expect(careless.survives.note).toContain('for this user')
    await careless.close()
  })

  it('stores NUL and lone surrogates of owner, status, labels and reasons exactly', async () => {
    const driver = await openPostgres(url, { schema: schemaName() })
    const log = logKey(newTenant())
    for (const odd of ['\0', 'a\ud800', '\udc00b', '"quoted"', '"', '\\u0000', '']) {
      const index = { status: odd, tags: [`tag${odd}`], metadata: { [`key${odd}`]: odd } }
      const lease = { kind: 'claim', owner: odd, ms: 60_000, force: true } as const
      const head = await createLog(driver, log, { index, lease, incarnation: `i${odd}` })
      await mustAppend(driver, makeAppend(log, head, { index }))
      expect(await driver.head(log)).toMatchObject({ incarnation: `i${odd}`, index, lease: { owner: odd } })
      const query = { tenant: log.tenant, status: [odd], tags: index.tags, metadata: index.metadata, limit: 10 }
      expect((await driver.heads(query)).heads).toHaveLength(1)
      await driver.erase({ ...log, tombstone: { at: 5, reason: odd } })
      expect(await driver.tombstone(log.tenant, log.thread)).toEqual({ at: 5, reason: odd })
    }
    await driver.close()
  })
})
