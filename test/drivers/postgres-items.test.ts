import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Append } from 'holdfast/driver'
import { makeItemStatements } from '#src/drivers/postgres/statements/item-statements.js'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { type ItemStore, makeCarried, makeItem, NOW, withItems } from '#src/testing/driver-suite/items/item-fixtures.js'
import { logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { makeAppend } from '#src/testing/entries.js'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { rounds } from '../support/scale.js'
import { postgresUrl } from '../support/servers.js'

const given = await postgresUrl()
const url = given as string

describe.skipIf(given === undefined)('items in Postgres', () => {
  const schema = newSchema()
  let drivers: ItemStore[]
  let driver: ItemStore

  beforeAll(async () => {
    drivers = []
    for (let i = 0; i < 3; i++) drivers.push(withItems(await openPostgres(url, { schema, poolSize: 3 })))
    driver = drivers[0] as ItemStore
  })
  afterAll(async () => {
    await Promise.all(drivers.map((each) => each.close()))
    await dropSchema(url, schema)
  })

  it('never deadlocks, in whatever order writers name the items', async () => {
    const tenant = newTenant()
    const keys = ['a', 'b', 'c', 'd', '\uffff', '\u{10000}']
    let turn = 0
    const shuffled = () => [...keys].sort(() => Math.random() - 0.5)
    const item = () => (Math.random() < 0.4 ? null : makeItem({ expiresAt: Math.random() < 0.3 ? NOW : null }))
    const expectation = () => (Math.random() < 0.4 ? {} : { expect: Math.random() < 0.5 ? null : 'another' })
    const write = async (each: ItemStore) => {
      const writes = shuffled().map((key) => ({ space: 's', key, item: item(), ...expectation() }))
      const results = await each.writeItems(tenant, writes, NOW)
      for (const [i, { expect: expected }] of writes.entries()) {
        if (expected === 'another') expect(results[i]?.status).toBe('conflict')
      }
    }
    const append = async (each: ItemStore) => {
      const batch: Append[] = ['x', 'y'].map((name) => ({
        ...makeAppend(logKey(tenant, `${name}${turn++}`), null),
        carried: shuffled().map((key) => makeCarried(0, 's', key, item())),
      }))
      expect((await each.append(batch)).map(({ status }) => status)).toEqual(['appended', 'appended'])
    }
    const read = (each: ItemStore) => each.readItems(tenant, 's', shuffled(), { now: NOW - 1, extendTo: NOW + turn })
    const worker = async (each: ItemStore) => {
      for (let round = 0; round < rounds(30, 300); round++) {
        const pick = Math.floor(Math.random() * 4)
        if (pick === 0) await append(each)
        else if (pick === 1) await read(each)
        else if (pick === 2) await each.sweepItems(NOW, 3)
        else await write(each)
      }
    }
    await Promise.all([...drivers, ...drivers].map(worker))
  })

  it('lets exactly one of many create an item, new or over one that expired', async () => {
    const tenant = newTenant()
    for (let round = 0; round < rounds(10, 100); round++) {
      const key = `k${round}`
      if (round % 2 === 0) {
        await driver.writeItems(tenant, [{ space: 's', key, item: makeItem({ expiresAt: NOW }) }], NOW - 1)
      }
      const items = [...drivers, ...drivers].map(() => makeItem())
      const results = await Promise.all(
        items.map((item, i) =>
          (drivers[i % 3] as ItemStore).writeItems(tenant, [{ space: 's', key, item, expect: null }], NOW),
        ),
      )
      const won = items.filter((_, i) => results[i]?.[0]?.status === 'written')
      expect(won).toHaveLength(1)
      const version = won[0]?.version
      const lost = results.flat().filter(({ status }) => status === 'conflict')
      expect(lost).toEqual(lost.map(() => ({ status: 'conflict', version })))
    }
  })

  it('compares with what a transaction left that removed the item and made it again', async () => {
    const tenant = newTenant()
    const before = makeItem()
    await driver.writeItems(tenant, [{ space: 's', key: 'k', item: before }], NOW)
    const other = new pg.Client(url)
    await other.connect()
    try {
      await other.query('BEGIN')
      await other.query(`DELETE FROM "${schema}".items WHERE tenant = $1`, [tenant])
      await other.query(
        `INSERT INTO "${schema}".items (tenant, space, key, version, created_at, updated_at, fields, value)
         VALUES ($1, 's', 'k', 'again', 0, 0, '{}', '')`,
        [tenant],
      )
      const writes = [
        driver.writeItems(tenant, [{ space: 's', key: 'k', item: null, expect: null }], NOW),
        driver.writeItems(tenant, [{ space: 's', key: 'k', item: makeItem(), expect: before.version }], NOW),
      ]
      const waiting = async () => {
        const text = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%"${schema}".write_items%'`
        return (await runSql(url, text))[0]?.['n']
      }
      while ((await waiting()) !== 2) await sleep(20)
      await other.query('COMMIT')
      const conflict = [{ status: 'conflict', version: 'again' }]
      expect(await Promise.all(writes)).toEqual([conflict, conflict])
    } finally {
      await other.end()
    }
  })

  it('stores names of the greatest length, and fields of any text', async () => {
    // Text that can't be compressed, as the index would try.
    const long = (bytes: number) => randomBytes(bytes).toString('base64').slice(0, bytes)
    const tenant = long(512) as ReturnType<typeof newTenant>
    const [space, key, version] = [long(1024), long(1024), 'v'.repeat(64)]
    const odd = ['\0', '\ud800', '"', '\\', '{', '}', ',', 'NULL', '\n', '', ':', '":"']
    const fields = odd.map((text) => [text, `${text}token`] as const)
    const item = makeItem({ version, fields })
    await driver.writeItems(tenant, [{ space, key, item, expect: null }], NOW)
    for (const name of odd) {
      const scan = (...tokens: string[]) => driver.scanItems(tenant, space, { limit: 2, where: [[name, tokens]] }, NOW)
      expect((await scan('other', `${name}token`)).map((each) => each.version)).toEqual([version])
      expect(await scan('other')).toEqual([])
      expect(await scan()).toEqual([])
    }
    expect(await driver.listSpaces(tenant, { limit: 2 })).toEqual([space])
  })
})

describe.skipIf(given === undefined)('among a hundred thousand items', () => {
  const schema = newSchema()
  const tenant = newTenant()
  let driver: ItemStore
  let client: pg.Client
  const statements = makeItemStatements(`"${schema}"`, (name) => name)

  beforeAll(async () => {
    client = new pg.Client(url)
    await client.connect()
    // One session, which makes its plans while the table is empty and keeps them.
    driver = withItems(await openPostgres(url, { schema, poolSize: 1, notify: false }))
    for (let i = 0; i < 8; i++) await useAll()
    // All in two spaces: a short page is found among many.
    await client.query(
      `INSERT INTO "${schema}".items (tenant, space, key, version, created_at, updated_at, expires_at, fields, value)
       SELECT $1, 's' || i % 2, 'k' || lpad(i::text, 6, '0'), 'v', 0, 0,
         CASE WHEN i % 10 = 0 THEN ${NOW} + i * 1000 END, '{}', '\\x00' FROM generate_series(1, 100000) AS i`,
      [tenant],
    )
  }, 600_000)
  afterAll(async () => {
    await client.end()
    await driver.close()
    await dropSchema(url, schema)
  })

  async function useAll(): Promise<void> {
    const place = { space: 's0', key: 'k050000' }
    await driver.writeItems(tenant, [{ ...place, item: makeItem({ version: 'v' }) }], NOW)
    await driver.writeItems(tenant, [{ ...place, item: makeItem({ version: 'v' }), expect: 'v' }], NOW)
    await driver.writeItems(tenant, [{ ...place, item: makeItem(), expect: null }], NOW)
    await driver.readItems(tenant, 's0', ['k050000', 'k050002'], { now: NOW })
    await driver.readItems(tenant, 's0', ['k050000', 'k050010'], { now: NOW, extendTo: NOW * 2 })
    await driver.scanItems(tenant, 's0', { limit: 10, after: 'k05' }, NOW)
    await driver.listSpaces(tenant, { limit: 10 })
    await driver.writeItems(tenant, [{ ...place, item: null, expect: 'v' }], NOW)
    await driver.append([{ ...makeAppend(logKey(tenant), null), carried: [makeCarried(0, 's0', 'k1', makeItem())] }])
    await driver.writeItems(tenant, [{ space: 's0', key: 'k1', item: null }], NOW)
    await driver.sweepItems(NOW, 10)
  }

  /** How many pages of tables and indexes a statement looked at. */
  async function pagesRead({ text, values }: { text: string; values: unknown[] }): Promise<number> {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, values)
    const plan = rows[0]['QUERY PLAN'][0].Plan as Record<string, number>
    return (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  }

  it('walks through no more than it returns', async () => {
    const scans = [
      { limit: 20 },
      { limit: 20, after: 'k099000' },
      { limit: 20, prefix: 'k0500' },
      { limit: 20, prefix: 'none' },
      { limit: 20, prefix: 'k05', where: [['f', ['x']]] as const },
    ]
    for (const scan of scans) {
      // The first call of a session also reads the catalog.
      await pagesRead(statements.scan(tenant, 's1', scan, NOW))
      expect(await pagesRead(statements.scan(tenant, 's1', scan, NOW))).toBeLessThan(100)
    }
    expect(await pagesRead(statements.spaces(tenant, undefined, 10))).toBeLessThan(100)
    expect(await pagesRead(statements.sweep(NOW + 60_000, 10))).toBeLessThan(400)
  })

  it('finds items by their keys also with plans that were made while the table was empty', async () => {
    const counters = async () => {
      await client.query('SELECT pg_stat_clear_snapshot()')
      const text = `SELECT idx_scan::int AS scans, (seq_tup_read + idx_tup_fetch)::int AS rows
        FROM pg_stat_user_tables WHERE schemaname = $1 AND relname = 'items'`
      return (await client.query(text, [schema])).rows[0] as { scans: number; rows: number }
    }
    const before = await counters()
    await useAll()
    // What a session did is told when it has ended.
    await driver.close()
    let after = await counters()
    for (; after.scans === before.scans; after = await counters()) await sleep(50)
    expect(after.rows - before.rows).toBeLessThan(1000)
  })
})
