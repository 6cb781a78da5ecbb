import { readFile, writeFile } from 'node:fs/promises'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { MIGRATIONS, readMigration } from '#src/drivers/postgres/migrations.js'
import { createLog, logKey, newTenant } from '#src/testing/driver-suite/suite-context.js'
import { expectAfter, makeAppend, makeIndex, mustAppend } from '#src/testing/entries.js'
import type { Append } from 'holdfast/driver'
import pg from 'pg'
import { afterAll, describe, expect, it } from 'vitest'
import { dropSchema, newSchema, runSql } from '../support/postgres.js'
import { postgresUrl } from '../support/servers.js'

const given = await postgresUrl()
const url = given as string
const schema = newSchema()
const committed = new URL('./postgres-schema.txt', import.meta.url)

/** Tables, columns, indexes and functions as the server's catalog knows them. */
const CATALOG = `
  SELECT 'table ' || c.relname || coalesce(' (' || array_to_string(c.reloptions, ', ') || ')', '') AS line
  FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
  UNION ALL
  SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
    || CASE WHEN a.attidentity <> '' THEN ' IDENTITY' WHEN a.attgenerated <> '' THEN ' GENERATED' ELSE '' END
    || coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), '')
    || coalesce(' COLLATE ' || nullif(o.collname, 'default'), '')
    || CASE a.attstorage WHEN 'e' THEN ' STORAGE EXTERNAL' ELSE '' END
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  LEFT JOIN pg_collation o ON o.oid = a.attcollation
  WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'r'
  UNION ALL
  SELECT 'index ' || pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE c.relnamespace = $1::regnamespace
  UNION ALL
  SELECT 'function ' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ') ' || md5(replace(p.prosrc, $1, 'holdfast'))
    || coalesce(' SET ' || array_to_string(p.proconfig, ', '), '')
  FROM pg_proc p WHERE p.pronamespace = $1::regnamespace`

/** Makes a schema as it was after this migration, with nothing in it. */
async function migrateTo(last: number, old: string): Promise<void> {
  const applied = MIGRATIONS.filter(({ version }) => version <= last)
  await runSql(
    url,
    `CREATE SCHEMA "${old}"`,
    `CREATE TABLE "${old}".migrations (version integer PRIMARY KEY, name text NOT NULL, breaking boolean NOT NULL)`,
    ...(await Promise.all(applied.map((migration) => readMigration(migration, `"${old}"`)))),
    ...applied.map(
      ({ version, file, breaking }) => `INSERT INTO "${old}".migrations VALUES (${version}, '${file}', ${breaking})`,
    ),
  )
}

describe.skipIf(given === undefined)('the Postgres schema', () => {
  afterAll(() => dropSchema(url, schema))

  // After a new migration: HOLDFAST_UPDATE_SCHEMA=1 npm test -- test/drivers/postgres-schema.test.ts, and read the diff.
  it('is the committed one once all migrations ran', async () => {
    await (await openPostgres(url, { schema })).close()
    const rows = await runSql(url, CATALOG.replaceAll('$1', `'${schema}'`))
    const found = rows
      .map(({ line }) => String(line).replaceAll(schema, 'holdfast'))
      .sort()
      .join('\n')
    if (process.env['HOLDFAST_UPDATE_SCHEMA']) await writeFile(committed, `${found}\n`)
    expect(`${found}\n`).toBe(await readFile(committed, 'utf8'))
  })

  it('has no index, not even in a condition, on what every append changes', async () => {
    const rows = await runSql(
      url,
      `SELECT DISTINCT a.attname AS name FROM pg_index i
       JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
       WHERE i.indrelid = '"${schema}".logs'::regclass`,
    )
    const indexed = rows.map(({ name }) => name)
    expect(indexed).toContain('updated_minute')
    // Otherwise each append would write to all indexes of the table instead of to none (no heap-only update).
    for (const name of ['seq', 'hash', 'epoch', 'lease_owner', 'lease_until', 'status', 'updated_at', 'expires_at']) {
      expect(indexed).not.toContain(name)
    }
  })

  it('fills in what an append leaves out that waits while the schema is updated', async () => {
    const old = newSchema()
    await migrateTo(21, old)
    await runSql(
      url,
      `INSERT INTO "${old}".logs (tenant, thread, branch, incarnation, seq, hash, epoch, base_seq, base_hash, status,
         created_at, updated_at, tags, metadata) VALUES ('t', 'waits', 'main', 'i', 0, '\\x00', 1, 0, '\\x00', 'active', 0, 0, '[]', '[]')`,
    )
    const [holder, writer] = [new pg.Client(url), new pg.Client(url)]
    await Promise.all([holder.connect(), writer.connect()])
    const step = (status: string, hash: string) =>
      writer.query(
        `SELECT "${old}".record_step('t', 'waits', 'main', 0, $1, 1, 'i', NULL, $2, 0, 60000, NULL, NULL, 0, '\\x01', '', '')`,
        [hash, status],
      )
    const isWaitedFor = async (times: number): Promise<void> => {
      const text = `SELECT 1 FROM pg_locks WHERE relation = '"${old}".logs'::regclass AND NOT granted`
      while ((await holder.query(text)).rows.length < times);
    }
    // Conflicts, and is ready to go as far as the table the next time.
    await step('active', '\\xff')
    await holder.query('BEGIN')
    await holder.query(`LOCK TABLE "${old}".logs IN SHARE MODE`)
    const opening = openPostgres(url, { schema: old })
    await isWaitedFor(1)
    const appended = step('paused', '\\x00')
    await isWaitedFor(2)
    await holder.query('COMMIT')
    const driver = await opening
    await appended
    const { heads } = await driver.heads({ status: ['paused'], limit: 10 })
    expect(heads.map(({ seq }) => seq)).toEqual([1])
    await Promise.all([driver.close(), holder.end(), writer.end()])
    await dropSchema(url, old)
  })

  it('fills in what an append leaves out that waits for its thread while the schema is updated', async () => {
    const old = newSchema()
    await migrateTo(21, old)
    const [holder, writer] = [new pg.Client(url), new pg.Client(url)]
    await Promise.all([holder.connect(), writer.connect()])
    const create = (thread: string) =>
      writer.query(`SELECT * FROM "${old}".append('{t}', '{${thread}}', '{main}', '{NULL}', '{NULL}', '{NULL}', '{i}', '{1}',
        '{NULL}', '{NULL}', '{keep}', '{NULL}', '{NULL}', '{paused}', '{0}', '{0}', '{NULL}', '{NULL}', '{[]}', '{[]}',
        '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{1}', '{1}', '{false}', '{0}', '{0}', '{"\\\\x00"}', '{"\\\\x00"}',
        '{"\\\\x00"}', '{}', '{}')`)
    // Ready to go as far as the thread's lock the next time, with no lock of the table.
    await create('other')
    await holder.query('BEGIN')
    await holder.query(`SELECT pg_advisory_xact_lock("${old}".thread_lock('t', 'waits'))`)
    const { pid } = (await writer.query('SELECT pg_backend_pid() AS pid')).rows[0] as { pid: number }
    const created = create('waits')
    const has = async (text: string): Promise<boolean> => (await holder.query(text)).rows.length > 0
    while (!(await has(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = ${pid}`)));
    let isOpen = false
    const opening = openPostgres(url, { schema: old }).finally(() => (isOpen = true))
    const waits = `SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()
      AND strpos(query, 'pg_stat_clear_snapshot') > 0 AND strpos(query, '"${old}"') > 0`
    while (!isOpen && !(await has(waits))) await holder.query('SELECT pg_stat_clear_snapshot()')
    await holder.query('COMMIT')
    const driver = await opening
    expect((await created).rows).toMatchObject([{ failed: null }])
    const { heads } = await driver.heads({ status: ['paused'], limit: 10 })
    expect(heads.map(({ log }) => log.thread).toSorted()).toEqual(['other', 'waits'])
    await Promise.all([driver.close(), holder.end(), writer.end()])
    await dropSchema(url, old)
  })

  it('answers several entries for one log as it does one', async () => {
    const driver = await openPostgres(url, { schema })
    const log = logKey(newTenant(), 'several')
    const start = await createLog(driver, log)
    const several = (at: typeof start, lease: Append['lease']) => ({
      ...makeAppend(log, at, { count: 3, keyframe: 0, lease }),
      labelsChanged: false,
    })
    const claim = several(start, { kind: 'claim', owner: 'a', ms: 60_000, force: false })
    const at = await mustAppend(driver, claim)
    expect(await driver.append([claim])).toMatchObject([{ status: 'conflict', head: { seq: at.seq, epoch: at.epoch } }])
    const other = several(at, { kind: 'claim', owner: 'b', ms: 60_000, force: false })
    expect(await driver.append([other])).toMatchObject([{ status: 'held', head: { lease: { owner: 'a' } } }])
    const { seq } = await mustAppend(driver, several(at, { kind: 'release' }))
    const tail = await driver.tail(log)
    expect(tail?.head).toMatchObject({ seq, lease: null })
    expect(tail?.entries.map((entry) => entry.seq)).toEqual(Array.from({ length: seq + 1 }, (_, i) => i))
    expect(tail?.entries.slice(1, 4)).toEqual(
      claim.entries.map((entry) => ({ ...entry, header: Buffer.from(entry.header), body: Buffer.from(entry.body) })),
    )
    const gone = await driver.append([{ ...several(at, { kind: 'keep' }), log: { ...log, branch: 'none' as never } }])
    expect(gone).toEqual([{ status: 'conflict', head: undefined }])
    await driver.close()
  })

  it('keeps what is derived right, whichever function writes', async () => {
    const driver = await openPostgres(url, { schema })
    const log = logKey(newTenant(), 'derived')
    const index = (minute: number, metadata: Record<string, string | number>) =>
      makeIndex({
        updatedAt: minute * 60_000 + 1,
        expiresAt: minute * 60_000 + 60_001,
        status: minute % 200 === 0 ? 'waiting_tool' : 'paused',
        metadata,
      })
    const derived = async () => {
      const [row] = await runSql(
        url,
        `SELECT updated_minute, expires_minute, program, priority, limit_key, status_group FROM "${schema}".logs WHERE thread = 'derived'`,
      )
      return Object.values(row ?? {})
    }
    const labels = { 'holdfast.program': 'support', 'holdfast.priority': 3, 'holdfast.limit': 'gold' }
    let at = await createLog(driver, log, { index: index(100, labels) })
    expect(await derived()).toEqual([100, 101, '"support"', 3, '"gold"', 'paused'])

    const append = async (options: Parameters<typeof makeAppend>[2], labelsChanged = false): Promise<void> => {
      at = await mustAppend(driver, { ...makeAppend(log, at, options), labelsChanged })
    }
    // record_step, append_one, append_several, append with new labels, append of two logs, and reindex.
    await append({ index: index(200, labels) })
    expect(await derived()).toEqual([200, 201, '"support"', 3, '"gold"', 'active'])
    await append({ index: index(300, labels), lease: { kind: 'claim', owner: 'a', ms: 1, force: true } })
    expect(await derived()).toEqual([300, 301, '"support"', 3, '"gold"', 'paused'])
    await append({ index: index(400, labels), count: 2 })
    expect(await derived()).toEqual([400, 401, '"support"', 3, '"gold"', 'active'])
    await append({ index: index(500, { 'holdfast.program': 'sales' }) }, true)
    expect(await derived()).toEqual([500, 501, '"sales"', 0, '', 'paused'])
    const other = makeAppend(logKey(newTenant(), 'beside'), null)
    const both = [
      { ...makeAppend(log, at, { index: index(550, { 'holdfast.program': 'sales' }) }), labelsChanged: false },
      other,
    ]
    expect(await driver.append(both)).toEqual([{ status: 'appended' }, { status: 'appended' }])
    at = expectAfter(both[0] as Append)
    expect(await derived()).toEqual([550, 551, '"sales"', 0, '', 'paused'])
    expect(await driver.reindex(log, at, index(600, labels))).toBe(true)
    expect(await derived()).toEqual([600, 601, '"support"', 3, '"gold"', 'active'])
    await driver.close()
  })
})
