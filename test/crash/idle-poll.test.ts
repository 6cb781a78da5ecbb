import { openDriver } from 'holdfast/driver'
import { makeDueStatement } from '#src/drivers/postgres/due-statement.js'
import { loadSqlite } from '#src/drivers/sqlite/engine.js'
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
    const due = 'SELECT id FROM logs WHERE program = ? AND wake_at <= ? ORDER BY wake_at LIMIT 10'
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${due}`).all('"idle"', 1) as { detail: string }[]
    const [mine] = db.prepare('SELECT count(*) AS n FROM logs WHERE program = ?').all('"idle"') as { n: number }[]
    db.close()
    expect(plan.map(({ detail }) => detail)).toEqual(['SEARCH logs USING INDEX logs_due (program=? AND wake_at<?)'])
    expect(mine?.n).toBeGreaterThan(IDLE / 2)
  })

  it.skipIf(isMissing('Postgres'))('goes by program and time on Postgres', { timeout: 600_000 }, async () => {
    const url = new URL(await fill('Postgres'))
    const schema = `"${url.searchParams.get('schema')}"`
    url.searchParams.delete('schema')
    const { text } = makeDueStatement(schema, 'take_due', workerQuery('now'))
    const values = [`ARRAY['"idle"']`, 'NULL', 'NULL', '20', '1000']
    const literal = text.replace(/\$(\d+)/g, (_, n) => String(values[Number(n) - 1]))
    const rows = await runSql(url.href, `ANALYZE ${schema}.logs`, `EXPLAIN ${literal}`)
    const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    const used = [...plan.matchAll(/(?:using|Bitmap Index Scan on) (\w+)/g)].map(([, index]) => index)
    expect([...new Set(used)].sort()).toEqual(['logs_due', 'logs_pkey'])
    expect(plan).not.toContain('Seq Scan')
  })

  it.skipIf(isMissing('Redis'))('goes by program and time on Redis', { timeout: 600_000 }, async () => {
    await fill('Redis')
  })
})
