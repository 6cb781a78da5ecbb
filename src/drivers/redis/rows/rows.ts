import { CorruptError } from '../../../core/errors.js'
import {
  type Expect,
  type Head,
  type IndexFields,
  LIMIT_LABEL,
  type LogKey,
  type Origin,
  PRIORITY_LABEL,
  PROGRAM_LABEL,
  type StoredEntry,
  type StoredHeader,
} from '../../../log/contract.js'
import { nameLog } from '../../../core/log-name.js'
import type { Reply } from '../client.js'
import { metadataFromText, metadataToText } from '../../shared/metadata-text.js'

const MINUTE = 60_000

/** Up to here a body lies behind its header. */
const SMALL_BODY = 2048

/** What the head is compared by, in one value. The incarnation comes last, because it may hold anything. */
export function encodeCore({ seq, hash, epoch, incarnation }: Expect): string {
  return `${seq} ${hash} ${epoch} ${escapeControls(incarnation)}`
}

/**
 * The head of a log in one value, by lines: what the index is made from, what appends are compared by, the index fields,
 * and the end of the lease, which the scripts add because only the server knows its time.
 */
export function encodeHead(indexRow: string, core: Expect, index: IndexFields): string {
  const fields = [index.status, index.createdAt, index.updatedAt, index.expiresAt, index.wakeAt]
  return `${indexRow}\n${encodeCore(core)}\n${JSON.stringify(fields)}\n`
}

export function encodeLabels(index: IndexFields): string {
  return JSON.stringify([index.tags, metadataToText(index.metadata), index.origin])
}

/** What the bucket's index is built from: it changes only when one of its rows must. See index-members.lua. */
export function encodeIndexRow(index: IndexFields): string {
  const { createdAt, updatedAt, wakeAt, status } = index
  const program = index.metadata[PROGRAM_LABEL]
  const row = `${createdAt} ${minuteOf(updatedAt)} ${wakeAt ?? '-'} ${markedExpiry(index)} ${escapeControls(status)}`
  if (program === undefined) return row
  const priority = index.metadata[PRIORITY_LABEL] ?? 0
  const key = index.metadata[LIMIT_LABEL]
  const turn = priority === 0 && key === undefined ? '' : `\t${Number(priority)}`
  return `${row}\t${escapeControls(String(program))}${turn}${key === undefined ? '' : `\t${escapeControls(String(key))}`}`
}

/**
 * An expiry as index rows have it: below every time there is, or above if there is none. Versions without rows of labels
 * write the time itself, or '-', and take rows out of the index by what the log says of them. So the numbers of rows tell
 * whether every log of a bucket was last written by a version that also wrote its labels, however many versions write
 * beside each other. Those that read the time itself find these rows among what has expired, and look at the heads.
 */
function markedExpiry({ expiresAt }: IndexFields): string {
  return expiresAt === null ? '1e300' : String(beforeAllTimes(expiresAt))
}

/** In the same order as the times, give or take some milliseconds. */
export function beforeAllTimes(time: number): number {
  return time - 1e17
}

/** The index knows of updates by the minute, so that a busy log moves in it once a minute and not at every append. */
export function minuteOf(time: number): number {
  return Math.floor(time / MINUTE)
}

/** Control characters separate the parts of stored values, so a part must hold none. */
export function escapeControls(text: string): string {
  if (/^[\w-]*$/.test(text)) return text
  return text.replace(/[\p{Cc}%]/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function unescapeControls(text: string): string {
  if (!text.includes('%')) return text
  return text.replace(/%([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/**
 * Any number as 16 hex digits that sort like the numbers: a time may be negative or have a fraction. The scripts do the
 * same (index-members.lua).
 */
export function sortable(value: number): string {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeDoubleBE(value === 0 ? 0 : value)
  const first = bytes[0] as number
  if (first < 0x80) bytes[0] = first | 0x80
  else for (const [i, byte] of bytes.entries()) bytes[i] = ~byte
  return bytes.toString('hex')
}

/**
 * An entry in the log's hash, as field and value pairs: `m<seq>` holds keyframe, hash, size of the body, length of the
 * header, and the header. A small body follows it there, because a field of its own would cost more than the body; a
 * larger one is in `d<seq>`, so that headers are read without it.
 */
export function entryFields({ seq, keyframe, hash, header, body }: StoredEntry): [string, Buffer, string?, Buffer?] {
  const start = `${keyframe} ${hash} ${body.length} ${header.length} `
  const isSmall = body.length <= SMALL_BODY
  const meta = Buffer.allocUnsafe(start.length + header.length + (isSmall ? body.length : 0))
  meta.write(start, 'latin1')
  meta.set(header, start.length)
  if (!isSmall) return [`m${seq}`, meta, `d${seq}`, asBuffer(body)]
  meta.set(body, start.length + header.length)
  return [`m${seq}`, meta]
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** As it stands in a head, for comparing. */
export function incarnationIn(head: Reply): string | undefined {
  return /^[^\n]*\n\d+ \S+ \d+ ([^\n]*)\n/.exec(String(head))?.[1]
}

/** From a head row, see include/head-row.lua. */
export function decodeHead(log: LogKey, row: readonly Reply[]): Head {
  const [time, head, base, owner, labels, applied] = row.map((field) => (field === null ? null : String(field)))
  try {
    const parts = /^[^\n]*\n(\d+) (\S+) (\d+) ([^\n]*)\n([^\n]*)\n([^\n]*)$/.exec(head as string) as unknown as string[]
    const [, seq, hash, epoch, incarnation, index, leaseEnd] = parts
    const [baseSeq, baseHash] = (base as string).split(' ') as [string, string]
    const remainingMs = Number(leaseEnd) - Number(time)
    return {
      log,
      incarnation: unescapeControls(incarnation as string),
      seq: Number(seq),
      hash: hash as string,
      epoch: Number(epoch),
      base: { seq: Number(baseSeq), hash: baseHash },
      lease: typeof owner === 'string' && remainingMs > 0 ? { owner, remainingMs } : null,
      index: decodeIndex(index as string, labels as string),
      ...(typeof applied === 'string' && { applied: Number(applied) }),
    }
  } catch (cause) {
    throw new CorruptError(`The head of ${nameLog(log)} can't be read.`, { log, reason: 'head' }, cause)
  }
}

function decodeIndex(row: string, labels: string): IndexFields {
  const [status, createdAt, updatedAt, expiresAt, wakeAt] = JSON.parse(row) as [
    string,
    number,
    number,
    number | null,
    number | null,
  ]
  const [tags, metadata, origin] = JSON.parse(labels) as [string[], string, Origin | null]
  return { status, createdAt, updatedAt, expiresAt, wakeAt, tags, metadata: metadataFromText(metadata), origin }
}

/** From the two fields of each entry in turn, of entries that follow each other. */
export function decodeEntries(log: LogKey, first: number, fields: readonly Reply[]): StoredEntry[] {
  const entries: StoredEntry[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const seq = first + i / 2
    const { keyframe, hash, size, header, rest } = parseMeta(log, seq, fields[i] ?? null)
    const body = rest.length === size ? rest : fields[i + 1]
    if (!Buffer.isBuffer(body) || body.length !== size) throw damaged(log, seq)
    entries.push({ seq, keyframe, hash, header, body })
  }
  return entries
}

export function decodeHeader(log: LogKey, seq: number, meta: Reply): StoredHeader {
  const { keyframe, hash, size, header } = parseMeta(log, seq, meta)
  return { seq, keyframe, hash, header, size }
}

interface Meta {
  readonly keyframe: number
  readonly hash: string
  readonly size: number
  readonly header: Buffer
  readonly rest: Buffer
}

function parseMeta(log: LogKey, seq: number, meta: Reply): Meta {
  if (!Buffer.isBuffer(meta)) throw damaged(log, seq)
  const parts: string[] = []
  let at = 0
  while (parts.length < 4) {
    const end = meta.indexOf(0x20, at)
    if (end < 0) throw damaged(log, seq)
    parts.push(meta.toString('latin1', at, end))
    at = end + 1
  }
  const [keyframe, hash, size, length] = parts as [string, string, string, string]
  const bodyAt = at + Number(length)
  if (!(bodyAt <= meta.length)) throw damaged(log, seq)
  return {
    keyframe: Number(keyframe),
    hash,
    size: Number(size),
    header: meta.subarray(at, bodyAt),
    rest: meta.subarray(bodyAt),
  }
}

function damaged(log: LogKey, seq: number): CorruptError {
  return new CorruptError(`Entry ${seq} of ${nameLog(log)} is missing or damaged.`, { log, seq, reason: 'entry' })
}
