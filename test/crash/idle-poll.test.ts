import { openDriver } from 'holdfast/driver'
import { makeHeadsStatement } from '#src/drivers/postgres/heads-statement.js'
import { planQuery } from '#src/drivers/redis/index-walk.js'
import { loadSqlite } from '#src/drivers/sqlite/engine.js'
import { buildHeadsQuery } from '#src/drivers/sqlite/heads.js'
import { afterAll, describe, expect, it } from 'vitest'
import { pollAmongIdle, workerQuery } from '../../scripts/torture/idle-threads.mjs'
import { durableBackends } from '../support/backends.js'
import { runSql } from '../support/postgres.js'
import { rounds } from '../support/scale.js'

const IDLE = rounds(2000, 100_000)
const backends = await durableBackends()

async function fill(name: string): Promise<string> {
  const url = await backends.find((backend) => backend.name === name)?.fresh()
  const driver = await openDriver(url as string)
  expect((await pollAmongIdle(driver, IDLE)).found).toBe(5)
  await driver.close()
  return url as string
}

describe("a worker's look at the index", () => {
  afterAll(async () => {
    for (const backend of backends) await backend.cleanup()
  })

  const isMissing = (name: string) => backends.find((backend) => backend.name === name)?.missing ?? true

  it('goes by the time to wake on SQLite', { timeout: 600_000 }, async () => {
    const url = await fill('SQLite')
    const db = (await loadSqlite())(url.slice('sqlite:'.length))
    const { limit, ...query } = workerQuery('now')
    const { sql, values } = buildHeadsQuery(
      { query, after: null, limit },
      {
        bootId: 'boot',
        wall: 0,
        monotonic: 0,
        slackMs: 0,
      },
    )
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { detail: string }[]
    db.close()
    expect(plan[0]?.detail).toBe('SEARCH logs USING INDEX logs_wake (wake_at<?)')
    expect(plan.some(({ detail }) => detail.startsWith('SCAN'))).toBe(false)
  })

  it.skipIf(isMissing('Postgres'))('goes by the time to wake on Postgres', { timeout: 600_000 }, async () => {
    const url = new URL(await fill('Postgres'))
    const schema = `"${url.searchParams.get('schema')}"`
    url.searchParams.delete('schema')
    const { text, values } = makeHeadsStatement(schema, workerQuery('now'))
    const literal = text.replace(/\$(\d+)/g, (_, n) => String(values?.[Number(n) - 1]))
    const rows = await runSql(url.href, `ANALYZE ${schema}.logs`, `EXPLAIN ${literal}`)
    const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    expect(plan).toContain('logs_wake')
    expect(plan).not.toContain('Seq Scan')
    expect(plan).not.toContain('logs_updated')
  })

  it.skipIf(isMissing('Redis'))('goes by the time to wake on Redis', { timeout: 600_000 }, async () => {
    await fill('Redis')
    const { prefixes, to } = planQuery(workerQuery('now'))
    // The range of the index that holds the times to wake, up to now and no further.
    expect(prefixes).toEqual(['w\0'])
    expect(to).toBeDefined()
  })
})
