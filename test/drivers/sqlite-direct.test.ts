import { renameSync } from 'node:fs'
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Driver, Expect, LogKey } from 'holdfast/driver'
import { systemClock } from '#src/core/time/system-clock.js'
import { closeDirectConnection, openDirectConnection } from '#src/drivers/sqlite/connection/connection.js'
import { DirectConnection } from '#src/drivers/sqlite/direct.js'
import { loadSqlite, type SqliteLike } from '#src/drivers/sqlite/connection/engine.js'
import { unpackEntries } from '#src/drivers/sqlite/entries.js'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { expectAfter, makeAppend, makeEntry, mustAppend } from '#src/testing/entries.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
const WAL = { journalMode: 'wal', synchronous: 2, sqliteVersion: '3' }

let folder: string
let path: string
let driver: Driver

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-direct-'))
  path = join(folder, 'test.db')
  driver = await openSqlite(path, { busyTimeoutMs: 60_000 })
})
afterEach(async () => {
  await driver.close()
  await rm(folder, { recursive: true, force: true })
})

function settings() {
  const { bootId } = systemClock()
  return { path, synchronous: 'full' as const, busyTimeoutMs: 60_000, bootId, ownClock: true, now: 0 }
}

async function direct(): Promise<DirectConnection> {
  const opened = await DirectConnection.open(settings(), systemClock(), WAL)
  if (opened === undefined) throw new Error('It did not open.')
  return opened
}

function countTurns() {
  const turns = { counted: 0, stop: () => clearImmediate(next) }
  const count = () => {
    turns.counted++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  return turns
}

async function withSqlite(work: (sqlite: SqliteLike) => void | Promise<void>): Promise<void> {
  const sqlite = (await loadSqlite())(path)
  try {
    await work(sqlite)
  } finally {
    sqlite.close()
  }
}

describe('an append on the calling thread', () => {
  it('lands where the worker reads it, and the next one on either thread continues it', async () => {
    const here = await direct()
    const append = makeAppend(log, null)
    expect(here.append([append])).toEqual([expect.any(Number)])
    expect(await driver.head(log)).toMatchObject({ seq: 0, hash: append.entries[0]?.hash })
    const end = { incarnation: append.incarnation, seq: 0, hash: append.entries[0]?.hash ?? '', epoch: 0 } as Expect
    const next = await mustAppend(driver, makeAppend(log, end))
    expect(here.append([makeAppend(log, end)])).toEqual([
      { status: 'conflict', head: expect.objectContaining({ seq: 1 }) },
    ])
    expect(here.append([makeAppend(log, next)])).toEqual([expect.any(Number)])
    expect(await driver.head(log)).toMatchObject({ seq: 2 })
    here.close()
  })

  it('is synced like those of the worker, overwrites what it deletes, and copies no write-ahead log', async () => {
    const db = openDirectConnection(await loadSqlite(), settings())
    const set = ['file.synchronous', 'fullfsync', 'file.secure_delete', 'wal_autocheckpoint', 'busy_timeout']
    expect(set.map((name) => db.pragma(name))).toEqual([2, 1, 1, 0, 0])
    closeDirectConnection(db)
  })

  it('leaves it to the worker at once while another holds the lock', async () => {
    const here = await direct()
    await withSqlite(async (sqlite) => {
      sqlite.exec('BEGIN IMMEDIATE')
      expect(here.append([makeAppend(log, null)])).toBeUndefined()
      const waits = mustAppend(driver, makeAppend(log, null))
      // The event loop turns while the worker waits, or this would never be.
      await new Promise(setImmediate)
      sqlite.exec('ROLLBACK')
      await waits
    })
    expect(await driver.head(log)).toMatchObject({ seq: 0 })
    here.close()
  })

  it('leaves it to the worker to say what is wrong, with nothing written', async () => {
    const here = await direct()
    const other = { ...log, thread: 'b' } as LogKey
    const broken = makeAppend(log, null, { index: { createdAt: Number.NaN } })
    expect(here.append([makeAppend(other, null), broken])).toBeUndefined()
    expect(await driver.head(other)).toBeUndefined()
    expect(here.append([makeAppend(other, null)])).toEqual([expect.any(Number)])
    here.close()
  })

  it('is never acknowledged in a file that was moved, whether it looked before or only afterwards', async () => {
    const here = await direct()
    const first = makeAppend(log, null)
    expect(here.append([first])).toEqual([expect.any(Number)])
    const next = makeAppend(log, expectAfter(first))
    // In the same turn of the event loop it looks only afterwards.
    renameSync(path, `${path}-moved`)
    const gone = { failure: { kind: 'file-gone', written: 'unknown' } }
    expect(() => here.append([next])).toThrow(expect.objectContaining(gone))
    // From then on it looks first.
    expect(here.append([makeAppend(log, expectAfter(next))])).toBeUndefined()
    await new Promise(setImmediate)
    expect(here.append([makeAppend(log, expectAfter(next))])).toBeUndefined()
    renameSync(`${path}-moved`, path)
    expect(await driver.head(log)).toMatchObject({ seq: 1 })
    here.close()
  })

  it('is not for many at once, nor for much, and now and then not for one', async () => {
    const here = await direct()
    const named = (n: number) => makeAppend({ ...log, thread: `t${n}` } as LogKey, null)
    expect(here.takes([1, 2, 3, 4, 5].map(named))).toBe(false)
    expect(here.takes([makeAppend(log, null, { entries: [makeEntry({ bodySize: 100_000 })] })])).toBe(false)
    const taken = Array.from({ length: 200 }, () => here.takes([named(1)]))
    expect(taken.filter((each) => each).length).toBeGreaterThan(150)
    expect(taken).toContain(false)
    here.close()
  })

  it('is not made where only one connection at a time can work', async () => {
    expect(await DirectConnection.open(settings(), systemClock(), { ...WAL, journalMode: 'delete' })).toBeUndefined()
  })
})

describe('a read on the calling thread', () => {
  it('finds what either thread wrote, as the worker does', async () => {
    const here = await direct()
    const first = await mustAppend(driver, makeAppend(log, null))
    here.append([makeAppend(log, first)])
    const known = await driver.tail(log)
    const tail = here.read('tail', [log, null])?.found
    expect(tail?.head.seq).toBe(1)
    expect(unpackEntries(tail?.entries ?? expect.fail('nothing found'))).toEqual(known?.entries)
    expect(here.read('positions', [[log]])?.found).toEqual([{ incarnation: first.incarnation, seq: 1 }])
    expect(here.read('head', [{ ...log, thread: 'none' } as LogKey])).toEqual({ found: null })
    here.close()
  })

  it('is left to the worker, who says what is wrong, where the file or a table is gone, or it is closed', async () => {
    await mustAppend(driver, makeAppend(log, null))
    const here = await direct()
    await withSqlite((sqlite) => sqlite.exec('ALTER TABLE entries RENAME TO elsewhere'))
    expect(here.read('read', [log, 0, 1])).toBeUndefined()
    await expect(driver.read(log, 0, 1)).rejects.toThrow(/no such table/)
    await withSqlite((sqlite) => sqlite.exec('ALTER TABLE elsewhere RENAME TO entries'))
    expect(here.read('read', [log, 0, 1])).toBeDefined()
    await rename(path, `${path}-moved`)
    expect(here.read('read', [log, 0, 1])).toBeUndefined()
    await expect(driver.read(log, 0, 1)).rejects.toMatchObject({ code: 'storage' })
    await rename(`${path}-moved`, path)
    here.close()
    expect(here.read('read', [log, 0, 1])).toBeUndefined()
  })
})

describe('a SQLite driver', () => {
  it('lets the event loop turn now and then, while a program does nothing but append', async () => {
    const turns = countTurns()
    let end: Expect | null = null
    // Each takes some microseconds at least: together far longer than a turn may.
    for (let i = 0; i < 10_000 && turns.counted < 3; i++) end = await mustAppend(driver, makeAppend(log, end))
    expect(turns.counted).toBeGreaterThanOrEqual(3)
    turns.stop()
  })

  it('lets the event loop turn after each append where several logs are written, so that they meet in a batch', async () => {
    const turns = countTurns()
    const logs = ['a', 'b'].map((thread) => ({ ...log, thread }) as LogKey)
    const ends: (Expect | null)[] = [null, null]
    for (let i = 0; i < 50; i++) {
      const before = turns.counted
      ends[i % 2] = await mustAppend(driver, makeAppend(logs[i % 2] as LogKey, ends[i % 2] ?? null))
      expect(turns.counted).toBeGreaterThan(before)
    }
    turns.stop()
  })

  it('lets the event loop turn between batches of the worker, however quickly the two threads answer each other', async () => {
    const turns = countTurns()
    let batches = 0
    const write = async (half: string) => {
      for (let i = 0; i < 50; i++) {
        const logs = Array.from({ length: 8 }, (_, n) => ({ ...log, thread: `${half}-${i}-${n}` }) as LogKey)
        const before = turns.counted
        await driver.append(logs.map((one) => makeAppend(one, null)))
        batches++
        expect(turns.counted).toBeGreaterThan(before)
      }
    }
    await Promise.all([write('a'), write('b')])
    turns.stop()
    expect(batches).toBe(100)
  })

  it('keeps the write-ahead log short, whichever thread appends', { timeout: 600_000 }, async () => {
    const quick = await openSqlite(path, { synchronous: 'normal' })
    let end: Expect | null = null
    for (let seq = 0; seq < 1500; seq++) {
      end = await mustAppend(quick, makeAppend(log, end, { entries: [makeEntry({ seq, bodySize: 10_000 })] }))
    }
    const { size } = await stat(`${path}-wal`)
    await quick.close()
    // Twice what makes it start over; all that was written is more than three times that.
    expect(size).toBeLessThan(2 * 1000 * 4120)
  })

  it('lets go of its file when it is closed', async () => {
    await mustAppend(driver, makeAppend(log, null))
    await driver.close()
    expect(await readdir(folder)).toEqual(['test.db'])
  })
})
