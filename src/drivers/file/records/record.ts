import { createHash } from 'node:crypto'
import { CorruptError, SchemaTooNewError } from '../../../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../../../core/ids.js'
import type { Hash, IndexFields, LogKey, StoredEntry, Tombstone } from '../../../log/contract.js'

/** Of the store as a whole and of each record. */
export const FORMAT = 1

/** What every record of a chain says about its place. */
export interface ChainRecord {
  readonly slot: number
  /** The only slot in which the next record of this chain can be. */
  readonly next: number
  /** Null in the first record of a folder. */
  readonly prev: { readonly slot: number; readonly sum: Hash } | null
}

/** A change of a thread's directory: which logs it has, and in which folders. */
export interface ThreadRecord extends ChainRecord {
  readonly kind: 'thread'
  readonly tenant: TenantId
  readonly thread: ThreadId
  readonly logs: readonly { readonly branch: BranchId; readonly incarnation: string; readonly folder: string }[]
  readonly tombstone: Tombstone | null
  /** Folders of erased logs that may still have to be removed. */
  readonly removed: readonly string[]
}

/** The lease as the last claim, extension or release left it. `slot` is the record that did. */
export interface LeaseState {
  readonly owner: string
  readonly bootId: string
  /** By the monotonic clock of that boot. */
  readonly ends: number
  readonly ms: number
  readonly slot: number
}

/** The first entry that is kept, and the record that holds it. */
export interface BaseRow {
  readonly seq: number
  readonly hash: Hash
  readonly slot: number
  /** The record of the prune that put a keyframe in its place. */
  readonly standIn?: number
}

/** The head row, repeated in every record: the newest record alone says everything about a log's end. */
export interface HeadRow {
  readonly incarnation: string
  readonly seq: number
  readonly hash: Hash
  readonly epoch: number
  readonly base: BaseRow
  readonly lease: LeaseState | null
  readonly index: IndexFields
  /** The seq up to which what entries carry was applied to items. */
  readonly applied?: number
}

/** Written by an erasure before it commits: from here on the log may be gone, which the thread's directory decides. */
export interface Seal {
  /** The slot of the thread's directory in which the erasure commits. */
  readonly threadSlot: number
  readonly pid: number
  readonly bootId: string
}

export interface EntryLine {
  readonly seq: number
  readonly keyframe: number
  readonly hash: Hash
  /** Lengths in bytes. */
  readonly header: number
  readonly body: number
}

export interface LogRecord extends ChainRecord {
  /** 'intent' announces a claim, 'note' answers one; both change nothing. */
  readonly kind: 'append' | 'intent' | 'note' | 'prune' | 'index' | 'applied' | 'seal'
  readonly log: LogKey
  readonly row: HeadRow
  readonly entries: readonly EntryLine[]
  /** Of a prune: the keyframe that stands in for the entry at the base. Its bytes are in the record's file. */
  readonly standIn?: EntryLine
  readonly seal?: Seal
}

const MAGIC = 'holdfast-record'
const FIRST_LINE = /^holdfast-record (\d+) ([0-9a-f]{64}) (\d+) (\d+) (\d+)\n/
/** What a record's file holds behind the record: entries of a log, or the value of an item. */
export type RecordPart = Pick<StoredEntry, 'header' | 'body'>

/** The first line is never longer. */
export const FIRST_LINE_BYTES = 160

export interface Preamble {
  readonly sum: Hash
  /** Where the headers, the bodies and the file end. */
  readonly metaAt: number
  readonly headersAt: number
  readonly bodiesAt: number
  readonly end: number
}

/**
 * A record as a file: one line with checksum and lengths, one line of JSON, the headers, the bodies, each followed by a
 * line break. The checksum covers the JSON and the headers, and the JSON holds a checksum of the bodies, so that
 * headers can be read and verified without them.
 */
export function encodeRecord(
  record: ChainRecord,
  parts: readonly RecordPart[] = [],
): { readonly bytes: Buffer; readonly sum: Hash } {
  const bodies = joinLines(parts.map((part) => part.body))
  const meta = Buffer.from(`${JSON.stringify({ ...record, bodies: sha256(bodies) }, metadataAsPairs)}\n`)
  const headers = joinLines(parts.map((part) => part.header))
  const sum = sha256(meta, headers)
  const first = `${MAGIC} ${FORMAT} ${sum} ${meta.length} ${headers.length} ${bodies.length}\n`
  return { bytes: Buffer.concat([Buffer.from(first), meta, headers, bodies]), sum }
}

// Names in metadata hold any character, and JSON.parse of V8 since Node 24 misreads some keys with escapes
// (nodejs/node#63785): as pairs, names are values.
function metadataAsPairs(key: string, value: unknown): unknown {
  return key === 'metadata' ? Object.entries(value as object) : value
}

function metadataFromPairs(key: string, value: unknown): unknown {
  return key === 'metadata' ? Object.fromEntries(value as [string, unknown][]) : value
}

/** The lines of a record that describe its entries. */
export function describeEntries(entries: readonly StoredEntry[]): EntryLine[] {
  return entries.map(({ seq, keyframe, hash, header, body }) => ({
    seq,
    keyframe,
    hash,
    header: header.length,
    body: body.length,
  }))
}

export function parsePreamble(path: string, bytes: Buffer): Preamble {
  const match = FIRST_LINE.exec(bytes.toString('latin1', 0, FIRST_LINE_BYTES))
  if (match === null) throw damaged(path, 'does not begin like a record')
  const [line, version, sum = '', meta, headers, bodies] = match
  if (Number(version) > FORMAT) throw new SchemaTooNewError(path, { found: Number(version), supported: FORMAT })
  const metaAt = line.length
  const headersAt = metaAt + Number(meta)
  const bodiesAt = headersAt + Number(headers)
  return { sum, metaAt, headersAt, bodiesAt, end: bodiesAt + Number(bodies) }
}

/** Verifies and parses what stands before the bodies. `bytes` must reach to `bodiesAt`. */
export function parseRecord<Record extends ChainRecord>(
  path: string,
  bytes: Buffer,
  { sum, metaAt, headersAt, bodiesAt }: Preamble,
): Record & { readonly bodies: Hash } {
  if (bytes.length < bodiesAt) throw damaged(path, 'ends too early')
  if (sha256(bytes.subarray(metaAt, bodiesAt)) !== sum) throw damaged(path, 'does not match its checksum')
  try {
    return JSON.parse(bytes.toString('utf8', metaAt, headersAt), metadataFromPairs)
  } catch (cause) {
    throw damaged(path, 'holds no valid JSON', cause)
  }
}

/** The whole record with its entries. */
export function parseEntries(
  path: string,
  bytes: Buffer,
): { readonly record: LogRecord; readonly entries: StoredEntry[] } {
  const preamble = parsePreamble(path, bytes)
  const record = parseRecord<LogRecord>(path, bytes, preamble)
  if (bytes.length !== preamble.end) {
    throw damaged(path, `has ${bytes.length} bytes where ${preamble.end} were written`)
  }
  checkBodies(path, bytes, preamble, record.bodies)
  if (!areLines(record.entries)) throw damaged(path, 'does not describe its entries')
  const headers = splitLines(bytes, preamble.headersAt, record.entries, 'header')
  const bodyParts = splitLines(bytes, preamble.bodiesAt, record.entries, 'body')
  const entries = record.entries.map(({ seq, keyframe, hash }, i) => ({
    seq,
    keyframe,
    hash,
    header: headers[i] as Uint8Array,
    body: bodyParts[i] as Uint8Array,
  }))
  return { record, entries }
}

/** The keyframe that a prune put in the place of the entry at the base. */
export function parseStandIn(path: string, bytes: Buffer): StoredEntry {
  const preamble = parsePreamble(path, bytes)
  const { bodies, standIn } = parseRecord<LogRecord>(path, bytes, preamble)
  if (bytes.length !== preamble.end) {
    throw damaged(path, `has ${bytes.length} bytes where ${preamble.end} were written`)
  }
  checkBodies(path, bytes, preamble, bodies)
  const lines = [standIn]
  if (!areLines(lines)) throw damaged(path, 'does not describe the keyframe that it holds')
  const [header] = splitLines(bytes, preamble.headersAt, lines, 'header')
  const [body] = splitLines(bytes, preamble.bodiesAt, lines, 'body')
  const { seq, keyframe, hash } = lines[0] as EntryLine
  return { seq, keyframe, hash, header: header as Uint8Array, body: body as Uint8Array }
}

/** Anybody can create a file whose checksums match: what it says is checked before it is used. */
function areLines(entries: unknown): entries is readonly EntryLine[] {
  return (
    Array.isArray(entries) &&
    entries.every((line: Partial<EntryLine> | null) => {
      const { seq, keyframe, header, body, hash } = line ?? {}
      return typeof hash === 'string' && [seq, keyframe, header, body].every(isCount)
    })
  )
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** `bytes` must be the whole file. */
export function checkBodies(path: string, bytes: Buffer, { bodiesAt, end }: Preamble, sum: Hash): void {
  if (sha256(bytes.subarray(bodiesAt, end)) !== sum) throw damaged(path, 'does not match the checksum of its bodies')
}

/** The pieces of the headers (or bodies), as copies: a small piece must not keep a large file in memory. */
export function splitLines(
  bytes: Buffer,
  from: number,
  entries: readonly EntryLine[],
  part: 'header' | 'body',
): Uint8Array[] {
  let at = from
  return entries.map((entry) => {
    const piece = new Uint8Array(bytes.subarray(at, at + entry[part]))
    at += entry[part] + 1
    return piece
  })
}

export function damaged(path: string, problem: string, cause?: unknown): CorruptError {
  return new CorruptError(`The file ${path} ${problem}.`, { path, written: 'nothing' }, cause)
}

export function missing(path: string): CorruptError {
  return new CorruptError(`The file ${path} is missing.`, { path, missing: true, written: 'nothing' })
}

function joinLines(parts: readonly Uint8Array[]): Buffer {
  const lineBreak = Buffer.from('\n')
  return Buffer.concat(parts.flatMap((part) => [part, lineBreak]))
}

function sha256(...parts: readonly Uint8Array[]): Hash {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}
