import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openConnection } from '#src/drivers/sqlite/connection/connection.js'
import { describeDurability } from '#src/drivers/sqlite/connection/durability.js'
import { hasBuiltIn, loadSqlite, type SqliteLike } from '#src/drivers/sqlite/connection/engine.js'
import { buildHeadsQuery, type HeadsTask } from '#src/drivers/sqlite/index/heads.js'
import { migrate } from '#src/drivers/sqlite/connection/migrate.js'
import { MIGRATIONS } from '#src/drivers/sqlite/migrations/list.js'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import type { LogKey } from 'holdfast/driver'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const SCHEMA_FILE = new URL('./sqlite-schema.sql', import.meta.url)

let folder: string
let file: string
let open: (path: string) => SqliteLike

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
  file = join(folder, 'test.db')
  open = await loadSqlite()
})

afterEach(() => rm(folder, { recursive: true, force: true }))

/** Works on the file behind the driver's back. */
function withSqlite<T>(work: (sqlite: SqliteLike) => T): T {
  const sqlite = open(file)
  try {
    return work(sqlite)
  } finally {
    sqlite.close()
  }
}

async function create(): Promise<void> {
  await (await openSqlite(file)).close()
}

describe('the schema of SQLite', () => {
  it('is the one committed in sqlite-schema.sql', async () => {
    await create()
    const rows = withSqlite((sqlite) =>
      sqlite.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'").all(),
    ) as { sql: string }[]
    const schema = `${rows.map(({ sql }) => `${sql};`).join('\n\n')}\n`
    expect(schema).toBe(await readFile(SCHEMA_FILE, 'utf8'))
  })

  it('returns bytes as they are from a file whose text is in UTF-16', async () => {
    withSqlite((sqlite) => sqlite.exec("PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); DROP TABLE t"))
    const driver = await openSqlite(file)
    const append = makeAppend({ tenant: 'a', thread: 'b', branch: 'main' } as LogKey, null, { count: 3, keyframe: 0 })
    await mustAppend(driver, append)
    const tail = await driver.tail(append.log)
    expect(tail?.entries.map(({ body }) => Buffer.from(body))).toEqual(
      append.entries.map(({ body }) => Buffer.from(body)),
    )
    await driver.close()
    expect(withSqlite((sqlite) => sqlite.prepare('PRAGMA encoding').get())).toEqual({ encoding: 'UTF-16le' })
  })

  it('has migrations numbered without gaps', () => {
    expect(MIGRATIONS.map(({ version }) => version)).toEqual(MIGRATIONS.map((_, i) => i + 1))
  })

  it('is refused when a newer version broke it, and left as it is', async () => {
    await create()
    withSqlite((sqlite) => sqlite.exec("INSERT INTO schema_versions VALUES (1000, 'from the future', 1, 0)"))
    const before = await readFile(file)
    await expect(openSqlite(file)).rejects.toMatchObject({
      code: 'schema-too-new',
      data: { found: 1000, supported: MIGRATIONS.length },
      remedy: expect.stringContaining('Upgrade'),
    })
    expect((await readFile(file)).equals(before)).toBe(true)
  })

  it('is used as before when a newer version only added to it', async () => {
    await create()
    withSqlite((sqlite) => sqlite.exec("INSERT INTO schema_versions VALUES (1000, 'an index more', 0, 0)"))
    const driver = await openSqlite(file)
    await mustAppend(driver, makeAppend({ tenant: 't', thread: 'a', branch: 'main' } as LogKey, null))
    await driver.close()
  })

  it('grows from the first version on, and keeps what was there', async () => {
    const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
    const db = await openConnection(open, { path: file, synchronous: 'full', busyTimeoutMs: 1000 })
    migrate(db, MIGRATIONS.slice(0, 1), 0)
    db.close()
    withSqlite((sqlite) =>
      sqlite.exec("INSERT INTO tombstones (tenant, thread, at, reason) VALUES ('t', 'a', 5, '\"old\"')"),
    )
    const driver = await openSqlite(file)
    expect(await driver.tombstone(log.tenant, log.thread)).toEqual({ at: 5, reason: 'old' })
    expect(await driver.listSpaces?.(log.tenant, { limit: 1 })).toEqual([])
    await driver.close()
    const versions = withSqlite((sqlite) => sqlite.prepare('SELECT version FROM schema_versions').all())
    expect(versions).toHaveLength(MIGRATIONS.length)
  })

  it('keeps the order of changes of an older version, and of one that still writes beside it', async () => {
    const db = await openConnection(open, { path: file, synchronous: 'full', busyTimeoutMs: 1000 })
    migrate(db, MIGRATIONS.slice(0, 4), 0)
    const insert = (thread: string, updatedAt: number): void => {
      db.run(
        `INSERT INTO logs (tenant, thread, branch, incarnation, seq, hash, epoch, base_seq, base_hash, status, created_at,
          updated_at, tags, metadata, origin) VALUES ('t', ?, 'main', 'i', 0, x'00', 0, 0, x'00', 'idle', 0, ?, '[]', '[]', 'null')`,
        thread,
        updatedAt,
      )
    }
    insert('first', 70_000)
    insert('second', 65_000)
    insert('third', 130_000)
    const driver = await openSqlite(file)
    const order = async (): Promise<string[]> => {
      const { heads } = await driver.heads({ tenant: 't' as never, order: 'updated', direction: 'asc', limit: 9 })
      return heads.map(({ log }) => log.thread)
    }
    expect(await order()).toEqual(['second', 'first', 'third'])
    db.run("UPDATE logs SET updated_at = 200000 WHERE thread = 'first'")
    insert('fourth', 150_000)
    expect(await order()).toEqual(['second', 'third', 'fourth', 'first'])
    await driver.close()
    db.close()
  })

  it.each([
    ['none of what stays as it is', {}, []],
    ['that of a status that changes', { status: 'waiting_tool' }, ['logs_status']],
    ['those of a wake time that changes', { wakeAt: null }, ['logs_marked', 'logs_wake']],
  ])('has indexes that an append writes only where it must: %s', async (_, change, expected) => {
    const driver = await openSqlite(file)
    const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
    const index = { status: 'active', wakeAt: 0, updatedAt: 60_000 }
    const first = await mustAppend(driver, makeAppend(log, null, { index }))
    const before = (await readFile(`${file}-wal`)).length
    const second = makeAppend(log, first, { index: { ...index, ...change, updatedAt: 60_001 } })
    await mustAppend(driver, { ...second, labelsChanged: false })
    const written = (await readFile(`${file}-wal`)).subarray(before)
    await driver.close()
    // Each frame is a header, which begins with the number of the page, and the page.
    const pages = new Set<number>()
    for (let at = 0; at < written.length; at += 24 + 4096) pages.add(written.readUInt32BE(at))
    const roots = withSqlite((sqlite) => sqlite.prepare('SELECT name, rootpage FROM sqlite_schema').all()) as {
      name: string
      rootpage: number
    }[]
    const names = roots.filter(({ rootpage }) => pages.has(rootpage)).map(({ name }) => name)
    expect(names.sort()).toEqual(['entries', 'entries_place', 'logs', ...expected].sort())
  })

  it('is not taken for that of another application when it is made while somebody else opens', async () => {
    withSqlite((sqlite) => sqlite.exec('PRAGMA journal_mode = WAL'))
    const settings = { path: file, synchronous: 'full', busyTimeoutMs: 1000 } as const
    const other = await openConnection(open, settings)
    let made = false
    const late = await openConnection((path) => {
      const sqlite = open(path)
      return {
        exec: (sql) => sqlite.exec(sql),
        close: () => sqlite.close(),
        prepare(sql) {
          const statement = sqlite.prepare(sql)
          // Right after the first look, whichever it is.
          if (made || !/application_id|sqlite_schema/.test(sql)) return statement
          const get = (): unknown => {
            const row = statement.get()
            migrate(other, MIGRATIONS, 0)
            made = true
            return row
          }
          return { run: (...values) => statement.run(...values), all: (...values) => statement.all(...values), get }
        },
      }
    }, settings)
    expect(made).toBe(true)
    late.close()
    other.close()
  })

  it('never gives the id of an erased log to another', async () => {
    const driver = await openSqlite(file)
    const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
    const ids: unknown[] = []
    for (let i = 0; i < 3; i++) {
      await mustAppend(driver, makeAppend(log, null))
      ids.push(withSqlite((sqlite) => (sqlite.prepare('SELECT id FROM logs').get() as { id: number }).id))
      await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
    }
    await driver.close()
    expect(new Set(ids).size).toBe(3)
  })
})

describe('queries of the index', () => {
  const now = { bootId: 'b', wall: 1, monotonic: 1, slackMs: 1 }
  const after = { value: 5, log: { tenant: 't', thread: 'a', branch: 'main' } as LogKey }

  const cases: [string, Omit<HeadsTask['query'], never>, string][] = [
    ['what is due to wake', { wakeBefore: 5, lease: 'free' }, 'logs_wake'],
    ['what has expired', { expiresBefore: 5, order: 'updated' }, 'logs_expiry'],
    ['what is ready', { status: ['ready', 'running'], lease: 'free' }, 'logs_status'],
    ['what is held', { lease: 'held', order: 'updated', direction: 'asc' }, 'logs_leased'],
    ['a thread', { tenant: 't', thread: 'a' } as HeadsTask['query'], 'logs_name'],
    ['a thread with labels', { tenant: 't', thread: 'a', metadata: { a: 1 } } as never, 'logs_name'],
    ['a tag', { tenant: 't', tags: ['x'], order: 'updated' } as unknown as HeadsTask['query'], 'labels_value'],
    ['metadata', { metadata: { a: 1 }, tags: ['x'] }, 'labels_value'],
    ['a tenant', { tenant: 't' } as HeadsTask['query'], 'logs_tenant_created'],
    ['a tenant by change', { tenant: 't', order: 'updated' } as HeadsTask['query'], 'logs_tenant_updated'],
    ['everything', {}, 'logs_created'],
  ]

  it.each(cases)('find %s without walking through all logs', async (_, query, index) => {
    await create()
    for (const cursor of [null, after]) {
      const { sql, values } = buildHeadsQuery({ query, after: cursor, limit: 10 }, now)
      const plan = withSqlite((sqlite) => sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values)) as {
        detail: string
      }[]
      const steps = plan.map(({ detail }) => detail)
      expect(steps.join('\n')).toContain(`INDEX ${index}`)
      // A walk in the order asked for is right when nothing is filtered, and only then.
      const walks = steps.filter((step) => step.startsWith('SCAN'))
      expect(walks).toEqual(index === 'logs_created' && cursor === null ? [expect.stringContaining(index)] : [])
    }
  })
})

describe('durability', () => {
  it('is what SQLite reports after opening', async () => {
    const sqlite = await openSqlite(file)
    expect(sqlite.survives).toMatchObject({
      powerLoss: 'yes',
      settings: { journal_mode: 'wal', synchronous: 'FULL' },
    })
    await sqlite.close()
    const normal = await openSqlite(file, { synchronous: 'normal' })
    expect(normal.survives).toMatchObject({
      processKill: 'yes',
      powerLoss: 'recent-loss',
      settings: { synchronous: 'NORMAL' },
    })
    await normal.close()
  })

  it('says so when WAL is not to be had, and asks for the sync that a rollback journal needs', () => {
    const settings = { journalMode: 'delete', sqliteVersion: '3' }
    expect(describeDurability({ ...settings, synchronous: 2 }).powerLoss).toBe('recent-loss')
    expect(describeDurability({ ...settings, synchronous: 3 })).toMatchObject({
      powerLoss: 'yes',
      note: expect.stringContaining('WAL is not available'),
    })
  })
})

describe('the engine', () => {
  it('is given no bytes as no bytes, not as NULL', async () => {
    const driver = await openSqlite(file)
    const { tenant } = { tenant: 't' } as LogKey
    const hash = 'ab'.repeat(32)
    await driver.putBlobs(tenant, [{ hash, bytes: new Uint8Array(0) }])
    expect([...(await driver.getBlobs(tenant, [hash]))]).toEqual([[hash, new Uint8Array(0)]])
    await driver.close()
  })

  it.each([
    ['20.20.2', false],
    ['22.12.0', false],
    ['22.13.0', true],
    ['23.0.0', true],
    ['24.1.0', true],
  ])('of Node %s is its own: %s', (version, expected) => {
    expect(hasBuiltIn(version)).toBe(expected)
  })
})
