import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { CorruptError, SchemaTooNewError } from '../core/errors.js'
import type { TenantId, ThreadId } from '../core/ids.js'
import type { IndexFields, LogKey, StoredEntry } from '../log/contract.js'

/** What an archived file says about itself, in its first line. */
export interface SegmentHead {
  readonly tenant: TenantId
  readonly thread: ThreadId
  readonly branch: LogKey['branch']
  readonly incarnation: string
  /** The incarnation of the thread's branch `main` at that time: an id that was archived may be reused. */
  readonly life?: string
  /** 'thread': up to where the branch ended. 'past': what was pruned, while the branch continued. */
  readonly kind: 'thread' | 'past'
  readonly first: number
  readonly last: number
  /** The hash of the last entry: what follows it names this as its parent. */
  readonly hash: string
  /** The hash of the first entry. */
  readonly start: string
  /** The hash of the entry before the first, as that names it. */
  readonly parent: string
  readonly epoch: number
  readonly index: IndexFields
  readonly archivedAt: number
  readonly entries: number
  readonly blobs: number
}

/** An archived file, read. */
export interface Segment {
  readonly head: SegmentHead
  readonly entries: readonly StoredEntry[]
  readonly blobs: ReadonlyMap<string, Uint8Array>
}

const FORMAT = 1
/** What an archive may unpack to at most: no more than it is cut to, but for one entry or blob that is larger by itself. */
const MAX_RAW = 1024 ** 3

const pack = promisify(gzip)
const unpack = promisify(gunzip)

/**
 * A line of JSON, then everything else gzipped: for each entry a line of JSON with its seq, keyframe, hash and two lengths,
 * and its header and body as the log stored them; then the blobs they point to, each behind a line with its hash and
 * length. `tail -n +2 file | gunzip` shows it.
 */
export async function writeSegment({ head, entries, blobs }: Segment): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  const line = (value: object): void => void parts.push(Buffer.from(`${JSON.stringify(value)}\n`))
  for (const { seq, keyframe, hash, header, body } of entries) {
    line({ seq, keyframe, hash, header: header.length, body: body.length })
    parts.push(header, body)
  }
  for (const [hash, bytes] of blobs) {
    line({ blob: hash, size: bytes.length })
    parts.push(bytes)
  }
  const raw = Buffer.concat(parts)
  const packed = await pack(raw)
  const sum = createHash('sha256').update(packed).digest('hex')
  const about = { holdfast: 'archive', format: FORMAT, ...head, size: raw.length, sum }
  return Buffer.concat([Buffer.from(`${JSON.stringify(about)}\n`), packed])
}

/** What a file says of itself, without unpacking it. */
export function readSegmentHead(
  name: string,
  bytes: Uint8Array,
): SegmentHead & { readonly size: number; readonly sum: string } {
  const end = bytes.indexOf(0x0a)
  if (end < 0) throw damaged(name, 'has no first line')
  let about: Record<string, unknown>
  try {
    about = JSON.parse(Buffer.from(bytes.subarray(0, end)).toString()) as Record<string, unknown>
  } catch {
    throw damaged(name, 'does not begin with a line of JSON')
  }
  const { holdfast, format, ...head } = about
  if (holdfast !== 'archive') throw damaged(name, 'is not a Holdfast archive')
  if (typeof format === 'number' && format > FORMAT)
    throw new SchemaTooNewError(`The archive ${name}`, { found: format, supported: FORMAT })
  return head as unknown as SegmentHead & { size: number; sum: string }
}

/** Reads and checks a file: its sum, its lengths, and that its entries are those that its first line names. */
export async function readSegment(name: string, bytes: Uint8Array): Promise<Segment> {
  const { size, sum, ...head } = readSegmentHead(name, bytes)
  const packed = bytes.subarray(bytes.indexOf(0x0a) + 1)
  if (createHash('sha256').update(packed).digest('hex') !== sum) throw damaged(name, 'does not match its sum')
  if (!(size <= MAX_RAW)) throw damaged(name, `says that it unpacks to ${size} bytes`)
  const raw = await unpack(packed, { maxOutputLength: Math.max(size, 1) }).catch(() => {
    throw damaged(name, "can't be unpacked")
  })
  if (raw.length !== size) throw damaged(name, 'unpacks to another size')
  const entries: StoredEntry[] = []
  const blobs = new Map<string, Uint8Array>()
  for (let at = 0; at < raw.length; ) {
    const end = raw.indexOf(0x0a, at)
    if (end < 0) throw damaged(name, 'ends in the middle of a line')
    const line = JSON.parse(raw.toString('utf8', at, end)) as Record<string, number | string>
    const take = (length: unknown): Uint8Array => {
      const from = at
      at += Number(length)
      if (!(at <= raw.length)) throw damaged(name, 'ends in the middle of an entry')
      return new Uint8Array(raw.subarray(from, at))
    }
    at = end + 1
    if (typeof line['blob'] === 'string') blobs.set(line['blob'], take(line['size']))
    else {
      const { seq, keyframe, hash } = line as unknown as StoredEntry
      entries.push({ seq, keyframe, hash, header: take(line['header']), body: take(line['body']) })
    }
  }
  const isWhole =
    entries.length === head.entries &&
    blobs.size === head.blobs &&
    entries[0]?.seq === head.first &&
    entries.at(-1)?.seq === head.last &&
    entries.at(-1)?.hash === head.hash
  if (!isWhole) throw damaged(name, 'holds other entries than it says')
  return { head, entries, blobs }
}

function damaged(name: string, problem: string): CorruptError {
  return new CorruptError(`The archive ${name} ${problem}.`, { archive: name }, undefined, 'Restore it from a backup.')
}
