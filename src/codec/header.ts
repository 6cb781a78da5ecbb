import { CorruptError } from '../core/errors.js'
import type { Packing } from './compress.js'
import { parseJson } from './decode.js'

export const FORMAT_VERSION = 1

/** Where the chain of a forked log begins: the entry of another branch that it continues. */
export interface ChainBase {
  readonly branch: string
  readonly incarnation: string
  readonly seq: number
  readonly hash: string
}

/**
 * What every entry says of itself. Tenant, thread, branch and incarnation are part of the header as it is hashed,
 * but a row's key and its head hold them already, so they are not stored again with each entry (see `chainHash`).
 */
export interface EntryHeader {
  readonly seq: number
  readonly epoch: number
  readonly kind: string
  /** Random, the same through retries and rebases: how a writer recognises its own append after a lost reply. */
  readonly appendId: string
  /** Wall time in milliseconds since 1970. */
  readonly at: number
  /** The seq of the keyframe this entry's fold starts from. */
  readonly keyframe: number
  readonly packing: Packing
  /** Bytes of the body before packing. */
  readonly size: number
  /** The hash of the entry before; kept only in keyframes, where reading starts. */
  readonly parent: string | null
  /** Only in the first entry of a fork. */
  readonly base: ChainBase | null
  /** The data key that authenticates this entry, if any. */
  readonly key: string | null
  /** True when the body is encrypted under that key. */
  readonly encrypted: boolean
  /** The blobs that the body points to. */
  readonly blobs: readonly string[]
}

/** One line of JSON in a fixed order; what is absent or usual is left out. */
export function encodeHeader(header: EntryHeader): Buffer {
  const fields: Record<string, unknown> = {
    v: FORMAT_VERSION,
    seq: header.seq,
    epoch: header.epoch,
    kind: header.kind,
    append: header.appendId,
    at: header.at,
    keyframe: header.keyframe,
    size: header.size,
  }
  if (header.packing !== 'plain') fields.packing = header.packing
  if (header.parent !== null) fields.parent = header.parent
  if (header.base !== null) {
    const { branch, incarnation, seq, hash } = header.base
    fields.base = { branch, incarnation, seq, hash }
  }
  if (header.key !== null) fields.key = header.key
  if (header.encrypted) fields.encrypted = true
  if (header.blobs.length > 0) fields.blobs = header.blobs
  return Buffer.from(JSON.stringify(fields))
}

/** Reads a header strictly: an unknown field or version is refused, never skipped. */
export function decodeHeader(bytes: Uint8Array): EntryHeader {
  if (bytes.length > 1024 * 1024) throw corrupt('is over 1 MiB')
  const fields = parseJson(bytes)
  if (!isRecord(fields)) throw corrupt('is not an object')
  if (fields.v !== FORMAT_VERSION) {
    throw corrupt(`has format version ${String(fields.v)}, and this version reads ${FORMAT_VERSION}`)
  }
  for (const name of Object.keys(fields)) if (!FIELDS.has(name)) throw corrupt(`has the unknown field "${name}"`)
  const { packing = 'plain', parent = null, key = null, encrypted = false, blobs = [], base = null } = fields
  if (packing !== 'plain' && packing !== 'br') throw corrupt('names an unknown packing')
  if (parent !== null && !isHash(parent)) throw corrupt('has a malformed parent')
  if (key !== null && typeof key !== 'string') throw corrupt('has a malformed key id')
  if (typeof encrypted !== 'boolean') throw corrupt('has a malformed encryption mark')
  if (!Array.isArray(blobs) || !blobs.every(isHash)) throw corrupt('has a malformed list of blobs')
  return {
    seq: whole(fields.seq, 'seq'),
    epoch: whole(fields.epoch, 'epoch'),
    kind: text(fields.kind, 'kind'),
    appendId: text(fields.append, 'append id'),
    at: finite(fields.at),
    keyframe: whole(fields.keyframe, 'keyframe'),
    size: whole(fields.size, 'size'),
    packing,
    parent,
    base: base === null ? null : readBase(base),
    key,
    encrypted,
    blobs,
  }
}

const FIELDS = new Set(
  'v seq epoch kind append at keyframe size packing parent base key encrypted blobs'.split(' '),
)

function readBase(base: unknown): ChainBase {
  if (!isRecord(base) || !isHash(base.hash)) throw corrupt('has a malformed base')
  return {
    branch: text(base.branch, 'base'),
    incarnation: text(base.incarnation, 'base'),
    seq: whole(base.seq, 'base'),
    hash: base.hash,
  }
}

function whole(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw corrupt(`has a malformed ${field}`)
  return value
}

function finite(value: unknown): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw corrupt('has a malformed time')
  return value
}

function text(value: unknown, field: string): string {
  if (typeof value !== 'string') throw corrupt(`has a malformed ${field}`)
  return value
}

function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function corrupt(problem: string): CorruptError {
  return new CorruptError(`The header of a stored entry ${problem}.`, {})
}
