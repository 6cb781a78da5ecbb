import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Append, Expect, LogKey } from 'holdfast/driver'
import { appendOne } from '#src/drivers/sqlite/append.js'
import { type Connection, openConnection } from '#src/drivers/sqlite/connection/connection.js'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import { migrate } from '#src/drivers/sqlite/connection/migrate.js'
import { MIGRATIONS } from '#src/drivers/sqlite/migrations/list.js'
import { NextEntries } from '#src/drivers/sqlite/next-entry.js'
import { appendTaskOf } from '#src/drivers/sqlite/parcel/append-parcel.js'
import { type AppendOptions, expectAfter, makeAppend, makeEntry } from '#src/testing/entries.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
const MINUTE = 60_000
const at = (monotonic: number, bootId = 'this boot') => ({ bootId, wall: 0, monotonic, slackMs: 1 })
const extend = { kind: 'extend', ms: 1000 } as const
const claim = { kind: 'claim', owner: 'me', ms: 1000, force: true } as const

let folder: string
let db: Connection
let plain: Connection
let next: NextEntries

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-next-'))
  db = await open('a.db')
  plain = await open('b.db')
  next = new NextEntries(db)
})
afterEach(async () => {
  db.close()
  plain.close()
  await rm(folder, { recursive: true, force: true })
})

async function open(name: string): Promise<Connection> {
  const settings = { path: join(folder, name), synchronous: 'normal' as const, busyTimeoutMs: 0 }
  const opened = await openConnection(await loadSqlite(), settings)
  migrate(opened, MIGRATIONS, 0)
  return opened
}

/** Labels are set once. */
function make(end: Expect | null, options: AppendOptions & Pick<Append, 'carried'> = {}): Append {
  const { carried } = options
  return { ...makeAppend(log, end, options), labelsChanged: end === null, ...(carried && { carried }) }
}

/** As it is done without knowing the row. */
function appendPlainly(on: Connection, append: Append, now = at(0)): unknown {
  return on.write(() => appendOne(on, appendTaskOf(append), now))
}

/** A log that this process has claimed, with the row known. */
function begin(options: AppendOptions = {}): Expect {
  const first = make(null, { ...options, lease: claim })
  next.note(first, appendPlainly(db, first) as number, at(0))
  return expectAfter(first)
}

const item = (value: string) => ({
  item: { value: Buffer.from(value), version: value, at: 5, expiresAt: 9, fields: [] },
})

describe('the next entry of a log whose row is known', () => {
  it('leaves the tables as they are after an append that looks first', () => {
    const put = { seq: 0, space: 's', key: 'k', at: 5 }
    const steps: (AppendOptions & Pick<Append, 'carried'>)[] = [
      {},
      { index: { status: 'active', updatedAt: 5 * MINUTE, origin: { kind: 'fork' } as never } },
      { keyframe: 0, carried: [{ ...put, ...item('one') }] },
      { index: { status: 'active', updatedAt: 9 * MINUTE }, carried: [{ ...put, ...item('two') }] },
      { index: { updatedAt: 9 * MINUTE + 1 }, carried: [{ ...put, at: 20, ...item('three') }] },
      { carried: [] },
    ]
    const first = make(null, { lease: claim, incarnation: 'i', seed: 'seed' })
    for (const on of [db, plain]) next.note(first, appendPlainly(on, first) as number, at(0))
    let end = expectAfter(first)
    for (const [i, step] of steps.entries()) {
      const append = make(end, { seed: 'seed', ...step, lease: extend })
      expect(next.append(append, at(i))).toBe(1)
      appendPlainly(plain, append, at(i))
      end = expectAfter(append)
    }
    for (const table of ['logs', 'entries', 'labels', 'items']) {
      const rows = db.all(`SELECT * FROM ${table}`)
      expect(rows).toEqual(plain.all(`SELECT * FROM ${table}`))
      if (table !== 'labels') expect(rows).not.toHaveLength(0)
    }
    expect(db.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' })
  })

  it.each([
    ['another entry was appended', (end: Expect) => void appendPlainly(db, make(end, { lease: extend }))],
    ['another claimed the log', (end: Expect) => void appendPlainly(db, make(end, { lease: claim }))],
    ['another status was set', () => void db.run("UPDATE logs SET status = 'other'")],
    ['another wake time was set', () => void db.run('UPDATE logs SET wake_at = 0')],
    ['another expiry was set', () => void db.run('UPDATE logs SET expires_at = 7')],
    ['another time of creation was set', () => void db.run('UPDATE logs SET created_at = 7')],
    ['it was released', () => void db.run('UPDATE logs SET lease_boot = NULL')],
    ['it was begun again', () => void db.run("UPDATE logs SET incarnation = 'another'")],
    ['its hash is another', () => void db.run("UPDATE logs SET hash = x'00'")],
    ['it was erased', () => void db.run('DELETE FROM logs')],
  ])('writes nothing if %s', (_, change) => {
    const end = begin()
    const append = make(end, { lease: extend })
    change(end)
    const before = dump()
    expect(next.append(append, at(1))).toBeUndefined()
    expect(dump()).toEqual(before)
  })

  it('is taken for an entry of that log only, and by its owner only, who extends the lease in this boot', () => {
    const end = begin()
    const before = dump()
    const put = { seq: 0, space: 's', key: 'k', at: 0, ...item('x') }
    const others: Append[] = [
      make(end),
      make(end, { lease: claim }),
      make(end, { lease: { kind: 'release' } }),
      make(end, { lease: { kind: 'extend', ms: 0 } }),
      make(end, { lease: extend, count: 2 }),
      make(end, { lease: extend, requires: { branch: log.branch, incarnation: 'x' } }),
      make(end, { lease: extend, carried: [put, { ...put, key: 'l' }] }),
      make(end, { lease: extend, carried: [{ ...put, item: null }] }),
      make(end, { lease: extend, index: { wakeAt: 0 } }),
      make(end, { lease: extend, index: { expiresAt: 7 } }),
      make(end, { lease: extend, index: { createdAt: 7 } }),
      { ...make(end, { lease: extend }), labelsChanged: true },
      { ...make(end, { lease: extend }), log: { ...log, tenant: 'u' } as LogKey },
      { ...make(end, { lease: extend }), log: { ...log, thread: 'b' } as LogKey },
      { ...make(end, { lease: extend }), log: { ...log, branch: 'b' } as LogKey },
    ]
    for (const other of others) expect(next.append(other, at(1))).toBeUndefined()
    expect(next.append(make(end, { lease: extend }), at(1, 'the next boot'))).toBeUndefined()
    expect(dump()).toEqual(before)
    expect(next.append(make(end, { lease: extend }), at(1))).toBe(1)
  })

  it('is for logs that are held: an append that lets go, or of a guest, is forgotten', () => {
    for (const lease of [{ kind: 'release' }, { kind: 'keep' }] as const) {
      const end = begin({ incarnation: lease.kind })
      const last = make(end, { lease })
      next.note(last, appendPlainly(db, last) as number, at(0))
      expect(next.append(make(expectAfter(last), { lease: extend }), at(1))).toBeUndefined()
      db.run('DELETE FROM logs')
    }
  })

  it('says that nothing is written when there is no room, or another writes', async () => {
    const end = begin()
    const append = make(end, { lease: extend, entries: [makeEntry({ seq: 1, keyframe: 0, bodySize: 50_000 })] })
    const nothing = expect.objectContaining({ failure: expect.objectContaining({ written: 'nothing' }) })
    db.pragma(`max_page_count = ${Number(db.pragma('page_count'))}`)
    expect(() => next.append(append, at(1))).toThrow(nothing)
    db.pragma('max_page_count = 1000000')
    const other = await open('a.db')
    other.begin()
    expect(() => next.append(append, at(1))).toThrow(nothing)
    other.rollBack()
    other.close()
    expect(next.append(append, at(1))).toBe(1)
  })
})

function dump(): unknown {
  return ['logs', 'entries', 'labels', 'items'].map((table) => db.all(`SELECT * FROM ${table}`))
}
