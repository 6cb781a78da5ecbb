import type { LogKey, Position, StoredEntry, StoredHeader } from '../../log/contract.js'
import type { Connection } from './connection/connection.js'
import type { Row } from './connection/engine.js'
import { HEAD_COLUMNS, type PackedHead, packHead } from './rows/head-row.js'
import type { Instant } from './rows/lease.js'
import { NAMED } from './rows/log-row.js'
import { type Parcel, ParcelReader, ParcelWriter } from './parcel/parcel.js'

const FIND_ID = `SELECT id FROM logs WHERE ${NAMED}`
const COLUMNS = 'seq, keyframe, lower(hex(hash)) AS hash, header'
const SELECT_RANGE = `SELECT ${COLUMNS}, body FROM entries WHERE log = ? AND seq BETWEEN ? AND ? ORDER BY seq`
/**
 * The same in one row: a value that leaves SQLite costs more than the bytes in it, and a fold has hundreds of entries. Bytes
 * pass through as they are where text is in UTF-8.
 */
const SELECT_FOLD = `SELECT
    group_concat(seq || ' ' || keyframe || ' ' || hash || ' ' || length(header) || ' ' || length(body), ' ') AS places,
    CAST(group_concat(CAST(header || body AS TEXT), '') AS BLOB) AS bytes
  FROM (${SELECT_RANGE})`
const SELECT_ENTRIES = `SELECT ${COLUMNS}, body FROM entries WHERE log = ? AND seq >= ? ORDER BY seq LIMIT ?`
const SELECT_HEADERS = `SELECT ${COLUMNS}, length(body) AS size FROM entries WHERE log = ? AND seq < ?
  ORDER BY seq DESC LIMIT ?`

export interface PackedTail {
  readonly head: PackedHead
  readonly entries: Parcel
}

export function readTail(db: Connection, log: LogKey, upTo: number | null, now: Instant): PackedTail | null {
  return db.read(() => {
    const row = db.get(`SELECT id, ${HEAD_COLUMNS} FROM logs WHERE ${NAMED}`, log.tenant, log.thread, log.branch)
    if (row === undefined) return null
    const id = row['id'] as number
    const end = upTo ?? (row['seq'] as number)
    const last = db.get('SELECT keyframe FROM entries WHERE log = ? AND seq = ?', id, end)
    // A keyframe that was pruned has another in its place, at the base.
    const from = Math.max((last?.['keyframe'] as number | undefined) ?? 0, row['base_seq'] as number)
    const entries = last === undefined ? packEntries([]) : readFold(db, id, from, end)
    return { head: packHead(row, now), entries }
  })
}

export function readEntries(db: Connection, log: LogKey, from: number, limit: number): Parcel {
  return db.read(() => {
    const row = db.get(FIND_ID, log.tenant, log.thread, log.branch)
    return packEntries(row === undefined ? [] : db.all(SELECT_ENTRIES, row['id'] as number, from, limit))
  })
}

export function readHeaders(db: Connection, log: LogKey, before: number | null, limit: number): Parcel {
  return db.read(() => {
    const row = db.get(FIND_ID, log.tenant, log.thread, log.branch)
    const end = before ?? Number.MAX_SAFE_INTEGER
    return packHeaders(row === undefined ? [] : db.all(SELECT_HEADERS, row['id'] as number, end, limit))
  })
}

export function readPosition(db: Connection, { tenant, thread, branch }: LogKey): Position | null {
  const row = db.get(`SELECT incarnation, seq FROM logs WHERE ${NAMED}`, tenant, thread, branch)
  return row === undefined ? null : { incarnation: row['incarnation'] as string, seq: row['seq'] as number }
}

export function readHead(db: Connection, log: LogKey, now: Instant): PackedHead | null {
  const row = db.get(`SELECT ${HEAD_COLUMNS} FROM logs WHERE ${NAMED}`, log.tenant, log.thread, log.branch)
  return row === undefined ? null : packHead(row, now)
}

function readFold(db: Connection, id: number, from: number, end: number): Parcel {
  if (!db.isInUtf8) return packEntries(db.all(SELECT_RANGE, id, from, end))
  const row = db.get(SELECT_FOLD, id, from, end)
  const places = row?.['places']
  if (typeof places !== 'string') return packEntries([])
  const parts = places.split(' ')
  const numbers = [parts.length / PLACE_PARTS]
  const hashes: string[] = []
  for (let i = 0; i < parts.length; i += PLACE_PARTS) {
    numbers.push(Number(parts[i]), Number(parts[i + 1]), Number(parts[i + 3]), Number(parts[i + 4]))
    hashes.push(parts[i + 2] as string)
  }
  return [numbers, hashes, bufferOf(row?.['bytes'] as Uint8Array<ArrayBuffer>)]
}

/** Of each entry: seq, keyframe, hash, and the lengths of header and body. */
const PLACE_PARTS = 5

function bufferOf(bytes: Uint8Array<ArrayBuffer>): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = bytes
  // Never empty, as in every parcel.
  if (byteLength === 0) return new ArrayBuffer(1)
  return byteLength === buffer.byteLength ? buffer : buffer.slice(byteOffset, byteOffset + byteLength)
}

function packEntries(rows: readonly Row[]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(rows.length)
  for (const row of rows) {
    packCommon(parcel, row)
    parcel.bytes(row['body'] as Uint8Array)
  }
  return parcel.finish()
}

export function unpackEntries(packed: Parcel): StoredEntry[] {
  const parcel = new ParcelReader(packed)
  const entries: StoredEntry[] = []
  for (let left = parcel.number(); left > 0; left--) {
    entries.push({ ...unpackCommon(parcel), body: parcel.bytes() })
  }
  return entries
}

function packHeaders(rows: readonly Row[]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(rows.length)
  for (const row of rows) {
    packCommon(parcel, row)
    parcel.number(row['size'] as number)
  }
  return parcel.finish()
}

export function unpackHeaders(packed: Parcel): StoredHeader[] {
  const parcel = new ParcelReader(packed)
  const headers: StoredHeader[] = []
  for (let left = parcel.number(); left > 0; left--) {
    headers.push({ ...unpackCommon(parcel), size: parcel.number() })
  }
  return headers
}

function packCommon(parcel: ParcelWriter, row: Row): void {
  parcel.number(row['seq'] as number)
  parcel.number(row['keyframe'] as number)
  parcel.text(row['hash'] as string)
  parcel.bytes(row['header'] as Uint8Array)
}

function unpackCommon(parcel: ParcelReader): Omit<StoredEntry, 'body'> {
  return { seq: parcel.number(), keyframe: parcel.number(), hash: parcel.text(), header: parcel.bytes() }
}
