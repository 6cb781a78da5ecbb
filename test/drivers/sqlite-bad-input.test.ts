import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packAppends, unpackAppends } from '#src/drivers/sqlite/parcel/append-parcel.js'
import { appendOne } from '#src/drivers/sqlite/append.js'
import { openConnection } from '#src/drivers/sqlite/connection/connection.js'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import { readEntries, unpackEntries } from '#src/drivers/sqlite/entries.js'
import { migrate } from '#src/drivers/sqlite/connection/migrate.js'
import { MIGRATIONS } from '#src/drivers/sqlite/migrations/list.js'
import { openSqlite, type SqliteOptions } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend, makeEntry, mustAppend } from '#src/testing/entries.js'
import type { Driver, Expect, LogKey } from 'holdfast/driver'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const run = promisify(execFile)
const isRoot = process.getuid?.() === 0
const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey

let folder: string
let file: string
let mounted: boolean

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
  file = join(folder, 'test.db')
  mounted = false
})

afterEach(async () => {
  // Lazily: a statement made by a test keeps its file open until it is collected.
  if (mounted) await run('umount', ['-l', folder])
  await chmod(folder, 0o700)
  await rm(folder, { recursive: true, force: true })
})

/** Makes the folder a disk of its own. False where that is not allowed. */
async function mountSmallDisk(kilobytes: number): Promise<boolean> {
  if (!isRoot || process.platform !== 'linux') return false
  mounted = await run('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder]).then(
    () => true,
    () => false,
  )
  return mounted
}

describe('opening SQLite refuses', () => {
  it.each<[string, string, SqliteOptions, string]>([
    ['a database in memory', ':memory:', {}, 'path'],
    ['an empty path', '', {}, 'path'],
    ['a path with a NUL', 'a\0b', {}, 'path'],
    ['an unknown level of synchronous', 'x.db', { synchronous: 'off' as 'full' }, 'synchronous'],
    ['a negative busy timeout', 'x.db', { busyTimeoutMs: -1 }, 'busyTimeoutMs'],
  ])('%s', async (_, path, options, field) => {
    await expect(openSqlite(path, options)).rejects.toMatchObject({
      code: 'invalid-option',
      data: { field },
      remedy: expect.stringMatching(/\w/),
    })
  })

  it('a folder', async () => {
    await expect(openSqlite(folder)).rejects.toMatchObject({ code: 'storage', data: { reason: 'is-a-folder' } })
  })

  it('a path in a folder that does not exist, without making it', async () => {
    await expect(openSqlite(join(folder, 'none', 'x.db'))).rejects.toMatchObject({
      code: 'storage',
      data: { reason: 'no-such-folder', written: 'nothing' },
    })
    await expect(stat(join(folder, 'none'))).rejects.toThrow('ENOENT')
  })

  it('a file that is not a database, and leaves it as it is', async () => {
    await writeFile(file, 'Dear diary, this is no database. '.repeat(200))
    const before = await readFile(file)
    await expect(openSqlite(file)).rejects.toMatchObject({ code: 'storage', data: { reason: 'not-a-database' } })
    expect((await readFile(file)).equals(before)).toBe(true)
  })

  it.each([
    ['by its tables', 'CREATE TABLE customers (id INTEGER)'],
    ['by its application id', 'PRAGMA application_id = 252006673'],
  ])("another application's database, known %s, and leaves it as it is", async (_, sql) => {
    const sqlite = (await loadSqlite())(file)
    sqlite.exec(sql)
    sqlite.close()
    const before = await readFile(file)
    await expect(openSqlite(file)).rejects.toMatchObject({ code: 'storage', data: { reason: 'foreign-database' } })
    expect((await readFile(file)).equals(before)).toBe(true)
    await expect(stat(`${file}-wal`)).rejects.toThrow('ENOENT')
  })

  it('a read-only file', async ({ skip }) => {
    const writable = await mountSmallDisk(4096)
    skip(isRoot && !writable, 'root writes to read-only files, and mounting a read-only disk is not allowed here')
    const driver = await openSqlite(file)
    const end = await mustAppend(driver, makeAppend(log, null))
    await driver.close()
    if (isRoot) await run('mount', ['-o', 'remount,ro', folder])
    else await chmod(file, 0o400)
    await expect(openSqlite(file)).rejects.toMatchObject({
      code: 'storage',
      data: { reason: 'read-only', written: 'nothing' },
      remedy: expect.stringContaining('permission'),
    })
    if (isRoot) await run('mount', ['-o', 'remount,rw', folder])
    else await chmod(file, 0o600)
    await expectWhole(end)
  })

  it('a new file in a read-only folder', async ({ skip }) => {
    const writable = await mountSmallDisk(4096)
    skip(isRoot && !writable, 'root writes to read-only folders, and mounting a read-only disk is not allowed here')
    if (isRoot) await run('mount', ['-o', 'remount,ro', folder])
    else await chmod(folder, 0o500)
    await expect(openSqlite(file)).rejects.toMatchObject({ code: 'storage', data: { reason: 'read-only' } })
  })
})

describe('a full disk', () => {
  it('refuses an append with nothing written, keeps what was acknowledged, and goes on when there is room', async () => {
    const db = await openConnection(await loadSqlite(), { path: file, synchronous: 'full', busyTimeoutMs: 1000 })
    migrate(db, MIGRATIONS, 0)
    const now = { bootId: 'b', wall: 0, monotonic: 0, slackMs: 1 }
    const append = (seq: number, end: Expect | null) => {
      const made = makeAppend(log, end, { entries: [makeEntry({ seq, bodySize: 20_000 })] })
      const tasks = unpackAppends(packAppends([made]))
      expect(db.write(() => tasks.map((task) => appendOne(db, task, now)))).toEqual([expect.any(Number)])
      return { incarnation: made.incarnation, seq, hash: made.entries[0]?.hash ?? '', epoch: 0 }
    }
    let end = append(0, null)
    db.pragma(`max_page_count = ${Number(db.pragma('page_count')) + 2}`)
    expect(() => append(1, end)).toThrow(
      expect.objectContaining({ failure: expect.objectContaining({ errcode: 13, written: 'nothing' }) }),
    )
    expect(unpackEntries(readEntries(db, log, 0, 10))).toHaveLength(1)
    db.pragma('max_page_count = 1000000')
    end = append(1, end)
    expect(db.pragma('integrity_check')).toBe('ok')
    db.close()
    await expectWhole(end)
  })

  it('is reported as such by the driver, and does not harm the file', async ({ skip }) => {
    skip(!(await mountSmallDisk(2048)), 'mounting a small disk is not allowed here')
    const driver = await openSqlite(file)
    let end: Expect | null = null
    let failure: unknown
    for (let seq = 0; failure === undefined; seq++) {
      const append = makeAppend(log, end, { entries: [makeEntry({ seq, bodySize: 50_000 })] })
      try {
        await driver.append([append])
        end = { incarnation: append.incarnation, seq, hash: append.entries[0]?.hash ?? '', epoch: 0 }
      } catch (error) {
        failure = error
      }
    }
    expect(failure).toMatchObject({
      code: 'storage',
      data: { reason: 'disk-full' },
      remedy: expect.stringMatching(/space/),
    })
    expect(end).not.toBeNull()
    expect(await driver.head(log)).toMatchObject(end as unknown as Record<string, unknown>)

    await run('mount', ['-o', 'remount,size=64m', folder])
    end = await mustAppend(driver, makeAppend(log, end))
    await driver.close()
    await expectWhole(end)
  })
})

describe('a SQLite driver', () => {
  it('refuses a row that SQLite refuses, with nothing of its batch written', async () => {
    const driver = await openSqlite(file)
    const other = { ...log, thread: 'b' } as LogKey
    const broken = makeAppend(log, null, { index: { createdAt: Number.NaN } })
    await expect(driver.append([makeAppend(other, null), broken])).rejects.toMatchObject({
      code: 'invalid-value',
      data: { written: 'nothing' },
    })
    expect(await driver.head(other)).toBeUndefined()
    await mustAppend(driver, makeAppend(other, null))
    await driver.close()
  })

  it('takes a path that looks like a URI for what it is: a path', async () => {
    await mkdir(join(folder, 'file:'))
    const odd = join(folder, 'file:', 'x?mode=memory')
    const driver = await openSqlite(odd)
    await driver.close()
    expect((await stat(odd)).isFile()).toBe(true)
  })
})

/** The file opens, is whole, and the log ends here. */
async function expectWhole(end: Expect): Promise<void> {
  const driver: Driver = await openSqlite(file)
  expect(await driver.head(log)).toMatchObject(end as unknown as Record<string, unknown>)
  expect(await driver.read(log, 0, 10_000)).toHaveLength(end.seq + 1)
  await driver.close()
  const sqlite = (await loadSqlite())(file)
  expect(sqlite.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  sqlite.close()
}
