import { setTimeout as sleep } from 'node:timers/promises'
import type { Driver, HeadQuery } from 'holdfast/driver'
import { makeLogStatements } from '#src/drivers/postgres/statements/log-statements.js'
import { makeHeadsStatement } from '#src/drivers/postgres/statements/heads-statement.js'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { createLog, logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { expectAfter, makeAppend, makeIndex, mustAppend } from '#src/testing/entries.js'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { postgresUrl } from '../support/servers.js'

const given = await postgresUrl()
const url = given as string
const schema = newSchema()
const IDLE = 100_000
const NOW = 1_800_000_000_000

interface Plan {
  readonly 'Node Type': string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}

/** How many rows all scans together looked at. */
function rowsRead(plan: Plan): number {
  const own = plan['Node Type'].includes('Scan')
    ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
    : 0
  return (plan.Plans ?? []).reduce((sum, part) => sum + rowsRead(part), own)
}

describe.skipIf(given === undefined)('among a hundred thousand idle threads', () => {
  let driver: Driver
  let client: pg.Client
  const tenant = newTenant()

  beforeAll(async () => {
    driver = await openPostgres(url, { schema })
    client = new pg.Client(url)
    await client.connect()
    // Idle: some paused with a wake time far away, the rest complete; all with an expiry to come.
    await runSql(
      url,
      `INSERT INTO "${schema}".logs (tenant, thread, branch, incarnation, seq, hash, epoch, base_seq, base_hash, status,
         created_at, updated_at, expires_at, wake_at, tags, metadata,
         updated_minute, expires_minute, program, priority, limit_key, status_group)
       SELECT 't' || i % 10, 'idle-' || i, 'main', 'i', 0, '\\x00', 1, 0, '\\x00',
         CASE WHEN i % 2 = 0 THEN 'paused' ELSE 'complete' END, ${NOW} - i * 1000, ${NOW} - i * 500, ${NOW} + 1e9 + i,
         CASE WHEN i % 2 = 0 THEN ${NOW} + 1e9 + i END, '[]', '[]',
         floor((${NOW} - i * 500) / 60000), floor((${NOW} + 1e9 + i) / 60000), '', 0, '',
         CASE WHEN i % 2 = 0 THEN 'paused' ELSE 'complete' END FROM generate_series(1, ${IDLE}) AS i`,
      `ANALYZE "${schema}".logs`,
    )
    for (let i = 0; i < 5; i++) {
      const index = {
        status: 'ready',
        createdAt: NOW,
        updatedAt: NOW,
        wakeAt: NOW - i,
        expiresAt: NOW - i,
        tags: ['hot'],
      }
      await createLog(driver, logKey(tenant, `busy-${i}`), { index })
    }
  }, 600_000)

  afterAll(async () => {
    await client.end()
    await driver.close()
    await dropSchema(url, schema)
  })

  it.each<[string, Omit<HeadQuery, 'limit'>, number]>([
    [
      'polls for work by status',
      { status: ['ready', 'running'], lease: 'free', order: 'created', direction: 'asc' },
      5,
    ],
    ['polls for sleepers that are due', { wakeBefore: NOW, lease: 'free' }, 5],
    [
      'polls as workers do, by the clock of the server',
      { tenant, wakeBefore: 'now', lease: 'free', order: 'updated', direction: 'asc' },
      0,
    ],
    ['polls as workers do', { wakeBefore: NOW, lease: 'free', order: 'updated', direction: 'asc' }, 5],
    ['polls for sleepers that are due among the paused', { status: ['paused'], wakeBefore: NOW }, 0],
    ['polls for what has expired', { expiresBefore: NOW }, 5],
    ['finds by label', { tags: ['hot'] }, 5],
    ['finds by label within a tenant', { tenant, tags: ['hot'] }, 5],
    ['finds the branches of a thread', { tenant, thread: logKey(tenant, 'busy-1').thread }, 1],
    ['lists a tenant, newest first', { tenant }, 5],
    ['lists a tenant, last changed first', { tenant, order: 'updated' }, 5],
    ['lists all, newest first', {}, 20],
    ['lists all, last changed first', { order: 'updated' }, 20],
    ['lists the paused, newest first', { status: ['paused'] }, 20],
    ['lists what changed lately', { updatedAfter: NOW - 1, order: 'updated' }, 5],
  ])('%s without walking through them', async (_name, query, found) => {
    const full: HeadQuery = { ...query, limit: 20 }
    expect((await driver.heads(full)).heads).toHaveLength(found)
    const { text, values } = makeHeadsStatement(`"${schema}"`, full)
    const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)
    // A few hundred at most: the page, and the minutes at its edges.
    expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan as Plan)).toBeLessThan(1000)
  })

  it('reads a log from its newest keyframe without walking through what is before it', async () => {
    const log = logKey(tenant, 'long')
    let at = await createLog(driver, log)
    for (const [keyframe, count] of [[0, 900] as const, [901, 1] as const, [901, 20] as const]) {
      at = await mustAppend(driver, makeAppend(log, at, { keyframe, count }))
    }
    expect((await driver.tail(log))?.entries).toHaveLength(21)
    const statements = makeLogStatements(`"${schema}"`, (name) => name)
    for (const { text, values } of [statements.tail(log, undefined), statements.tails([log])]) {
      const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)
      expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan as Plan)).toBeLessThan(100)
    }
  })

  it('pages through all of them, each page as cheap as the first', async () => {
    for (const order of ['created', 'updated'] as const) {
      let cursor: string | undefined
      for (let page = 0; page < 30; page++) {
        const query: HeadQuery = { order, limit: 100, ...(cursor ? { cursor } : {}) }
        if (page === 29) {
          const { text, values } = makeHeadsStatement(`"${schema}"`, query)
          const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)
          expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan as Plan)).toBeLessThan(2000)
        }
        cursor = (await driver.heads(query)).cursor
      }
    }
  })
})

describe.skipIf(given === undefined)('with plans that were made while the tables were empty', () => {
  const fresh = newSchema()
  afterAll(() => dropSchema(url, fresh))

  it('finds a log by its name, never by walking through the logs of its tenant', async () => {
    const driver = await openPostgres(url, { schema: fresh })
    const tenant = newTenant()
    const [a, b] = [logKey(tenant, 'a'), logKey(tenant, 'b')]
    let head = await createLog(driver, a)
    let other = await createLog(driver, b)
    // Often enough for Postgres to settle on one plan for all values.
    for (let i = 0; i < 8; i++) {
      head = await mustAppend(driver, { ...makeAppend(a, head), labelsChanged: false })
      const batch = [makeAppend(a, head), makeAppend(b, other)]
      await driver.append(batch)
      head = expectAfter(batch[0])
      other = expectAfter(batch[1])
      await Promise.all([driver.head(a), driver.tail(a), driver.read(a, 0, 5), driver.headers(a, { limit: 5 })])
      await driver.renew(a, head.incarnation, 0, 5)
      await driver.append([makeAppend(a, null)])
    }
    await driver.reindex(a, head, makeIndex({}))
    await driver.prune(a, head.incarnation, head.seq)
    await driver.heads({ tenant, thread: a.thread, limit: 5 })
    await driver.erase({ ...a, tombstone: null })
    await driver.close()

    // What the sessions did is told when they have ended.
    const scans = async () => {
      const rows = await runSql(
        url,
        `SELECT indexrelname AS name, idx_scan::int AS scans FROM pg_stat_user_indexes WHERE schemaname = '${fresh}' AND relname = 'logs'`,
      )
      return new Map(rows.map(({ name, scans }) => [name as string, scans as number]))
    }
    let found = await scans()
    for (; found.get('logs_tenant_thread_branch_key') === 0; found = await scans()) await sleep(50)
    for (const [name, count] of found) {
      if (name !== 'logs_tenant_thread_branch_key' && name !== 'logs_pkey') expect([name, count]).toEqual([name, 0])
    }
  })
})
