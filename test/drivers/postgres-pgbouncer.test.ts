import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { createLog, logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { makeAppend } from '#src/testing/entries.js'
import { afterAll, describe, expect, it } from 'vitest'
import { startPgBouncer } from '../../scripts/services/index.mjs'
import { groupsOf } from '../support/groups.js'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { rounds } from '../support/scale.js'
import { orUndefined, postgresUrl } from '../support/servers.js'

const postgres = await postgresUrl()
const given = process.env['HOLDFAST_TEST_PGBOUNCER_URL']
const bouncer =
  given || postgres === undefined
    ? undefined
    : await orUndefined(() => startPgBouncer({ postgresUrl: postgres, poolSize: 4 }))
const url = given ?? bouncer?.url
const schema = newSchema()

/** What depends on transactions, settings of a session, locks and notifications. */
const POOLED = [
  'append',
  'batches',
  'races',
  'races of maintenance',
  'leases',
  'reading',
  'erase',
  'what is due',
  'items that appends carry',
  'transactions',
  'races of transactions',
  'news',
  'opening and closing',
]

describe.skipIf(url === undefined)('through PgBouncer in transaction mode', () => {
  afterAll(async () => {
    await dropSchema(postgres as string, schema)
    await bouncer?.stop()
  })

  driverSuite(
    'postgres',
    async () => ({ open: () => openPostgres(url as string, { schema, poolSize: 4 }), async cleanup() {} }),
    { framework: groupsOf(POOLED), shared: true, rounds: rounds(10, 1000) },
  )

  it('knows that it is there: no watching, unless it is told a way around', async () => {
    const pooled = await openPostgres(url as string, { schema })
    expect(pooled.capabilities.watch).toBe(false)
    expect(pooled.subscribe).toBeUndefined()
    const direct = await openPostgres(url as string, { schema, listenUrl: postgres as string })
    expect(direct.capabilities.watch).toBe(true)

    // What is published through the pooler arrives on the connection around it.
    let hear: (message: string | undefined) => void = () => {}
    const told = new Promise<string | undefined>((resolve) => {
      hear = resolve
    })
    await direct.subscribe?.('topic', (message) => hear(message))
    await createLog(pooled, logKey(newTenant()))
    pooled.publish?.('topic', 'through the pooler')
    expect(await told).toBe('through the pooler')
    await direct.close()
    await pooled.close()
  })

  it('leaves no trace in sessions that others use next', async () => {
    const driver = await openPostgres(url as string, { schema })
    await createLog(driver, logKey(newTenant()))
    const [row] = await runSql(
      url as string,
      "SELECT current_setting('statement_timeout') AS timeout, (SELECT count(*)::int FROM pg_prepared_statements) AS prepared",
    )
    expect(row).toEqual({ timeout: '0', prepared: 0 })
    await driver.close()
  })

  it('turns conflicts into answers also where transactions are serializable', async () => {
    const database = newSchema()
    await runSql(
      postgres as string,
      `CREATE DATABASE ${database}`,
      `ALTER DATABASE ${database} SET default_transaction_isolation = 'serializable'`,
    )
    const there = new URL(url as string)
    there.pathname = `/${database}`
    try {
      const driver = await openPostgres(there.href)
      const log = logKey(newTenant())
      await createLog(driver, log)
      for (let i = 0; i < 20; i++) {
        const head = await driver.head(log)
        const results = await Promise.all(
          Array.from({ length: 4 }, () => driver.append([makeAppend(log, head ?? null)])),
        )
        const statuses = results.flat().map(({ status }) => status)
        expect(statuses.sort()).toEqual(['appended', 'conflict', 'conflict', 'conflict'])
      }
      await driver.close()
    } finally {
      await runSql(postgres as string, `DROP DATABASE ${database} WITH (FORCE)`)
    }
  })
})
