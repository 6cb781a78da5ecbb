import { openDriver } from 'holdfast/driver'
import { makeDueStatement } from '#src/drivers/postgres/statements/due-statement.js'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
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

  it('goes by program and time on SQLite', { timeout: 600_000 }, async () => {
    const url = await fill('SQLite')
    const db = (await loadSqlite())(url.slice('sqlite:'.length))
    const plans = [
      'program = ? AND wake_at = 0 AND priority = ? AND tenant = ? ORDER BY updated_minute LIMIT 10',
      'program = ? AND wake_at <> 0 AND priority = ? AND wake_at <= ? ORDER BY wake_at LIMIT 10',
      'wake_at = 0 AND program = ? AND priority = ? AND tenant > ? ORDER BY tenant LIMIT 1',
    ].flatMap((due) => {
      const explain = db.prepare(`EXPLAIN QUERY PLAN SELECT id FROM logs WHERE ${due}`)
      return (explain.all('"idle"', 1, 1) as { detail: string }[]).map(({ detail }) => detail)
    })
    const [mine] = db.prepare('SELECT count(*) AS n FROM logs WHERE program = ?').all('"idle"') as { n: number }[]
    db.close()
    expect(plans).toEqual([
      'SEARCH logs USING INDEX logs_marked (program=? AND priority=? AND tenant=?)',
      'SEARCH logs USING INDEX logs_dated (program=? AND priority=? AND wake_at<?)',
      'SEARCH logs USING INDEX logs_marked (program=? AND priority=? AND tenant>?)',
    ])
    expect(mine?.n).toBeGreaterThan(IDLE / 2)
  })

  it.skipIf(isMissing('Postgres'))('goes by program and time on Postgres', { timeout: 600_000 }, async () => {
    const url = new URL(await fill('Postgres'))
    const schema = `"${url.searchParams.get('schema')}"`
    url.searchParams.delete('schema')
    const { text } = makeDueStatement(schema, 'take_due', workerQuery('now'))
    const values = [`ARRAY['"idle"']`, 'NULL', 'NULL', '20', '1000', "''", "'{}'", "'worker'", '100']
    const literal = text.replace(/\$(\d+)/g, (_, n) => String(values[Number(n) - 1]))
    const [read] = await runSql(
      url.href,
      `ANALYZE ${schema}.logs`,
      'BEGIN',
      literal,
      `SELECT seq_tup_read::int AS walked, idx_tup_fetch::int AS found,
        ARRAY(SELECT i.relname::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
          WHERE x.indrelid = t.relid AND pg_stat_get_xact_numscans(i.oid) > 0 ORDER BY 1) AS used
      FROM pg_stat_xact_all_tables t WHERE relid = '${schema}.logs'::regclass`,
    )
    expect(read).toMatchObject({ walked: 0, used: ['logs_dated', 'logs_marked', 'logs_pkey'] })
    // Those that are due, a few times over, of thousands of its program.
    expect(read?.['found']).toBeLessThan(60)
  })

  it.skipIf(isMissing('Redis'))('goes by program and time on Redis', { timeout: 600_000 }, async () => {
    await fill('Redis')
  })
})
