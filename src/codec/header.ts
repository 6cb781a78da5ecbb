import { CorruptError, SchemaTooNewError, TooLargeError } from '../core/errors.js'
import { isPacking, type Packing } from './pack/compress.js'
import { parseJson } from './decode/decode.js'

/**
 * 1: every field by its name. 2: the same, for a keyframe that stands in for an entry. 3: what every entry has as one
 * list, half as long. 4: that list as words, with numbers to the base of 36, where none of them needs quotes; and bodies
 * packed with `d2`. This version writes 4 and reads all of them, for ever. Code that knows less must find a version that
 * is too new for it, and not take the entry for a damaged one: so it is JSON.
 */
export const FORMAT_VERSION = 4
const NAMED_VERSION = 1
const STAND_IN_VERSION = 2
const LISTED_VERSION = 3

/** Room for a list of about 250,000 blobs. */
const MAX_HEADER_BYTES = 16 * 1024 * 1024

/** Where the chain of a forked log begins: the entry of another branch that it continues. */
export interface ChainBase {
  readonly branch: string
  readonly incarnation: string
  readonly seq: number
  readonly hash: string
}

/**
 * What every entry says about itself. Tenant, thread, branch and incarnation are part of the header as it is hashed,
 * but a row's key and its head hold them already, so they are not stored again with each entry (see `chainHash`).
 */
export interface EntryHeader {
  readonly seq: number
  readonly epoch: number
  readonly kind: string
  /** Random, the same through retries and rebases: how a writer recognizes its own append after a lost reply. */
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
  /**
   * For a keyframe that was written in place of an entry when everything before it was pruned: the hash by which the
   * chain knows that entry, and the key that it was under.
   */
  readonly stands?: { readonly hash: string; readonly key: string | null }
}

/** One line of JSON in a fixed order; defaults and absent values are left out. */
export function encodeHeader(header: EntryHeader): Buffer {
  const { base, stands } = header
  // Written out: an object of the fields, and a walk of it, would take longer than anything else about a small entry.
  let text = `{"v":${FORMAT_VERSION},"e":${areWords(header) ? asWords(header) : asList(header)}`
  if (header.parent !== null) text += `,"parent":${JSON.stringify(header.parent)}`
  if (base !== null) {
    const { branch, incarnation, seq, hash } = base
    text += `,"base":${JSON.stringify({ branch, incarnation, seq, hash })}`
  }
  if (header.key !== null) text += `,"key":${JSON.stringify(header.key)}`
  if (header.encrypted) text += ',"encrypted":true'
  if (header.blobs.length > 0) text += `,"blobs":${JSON.stringify(header.blobs)}`
  if (stands) text += `,"stands":${JSON.stringify({ hash: stands.hash, ...(stands.key && { key: stands.key }) })}`
  const bytes = Buffer.from(`${text}}`)
  // Only the list of blobs can get this long; an entry that could not be read back must not be written.
  if (bytes.length > MAX_HEADER_BYTES) {
    const remedy = 'Keep fewer large values in one state, or raise blobThreshold.'
    throw new TooLargeError('The header of an entry', 'bytes', MAX_HEADER_BYTES, bytes.length, remedy)
  }
  return bytes
}

function areWords({ kind, appendId, at }: EntryHeader): boolean {
  return Number.isSafeInteger(at) && at >= 0 && WORD.test(kind) && WORD.test(appendId)
}

const WORD = /^[\w-]+$/

function asWords({ seq, epoch, kind, appendId, at, keyframe, size, packing }: EntryHeader): string {
  const numbers = `${at.toString(36)} ${keyframe.toString(36)} ${size.toString(36)}`
  const words = `${seq.toString(36)} ${epoch.toString(36)} ${kind} ${appendId} ${numbers}`
  return packing === 'plain' ? `"${words}"` : `"${words} ${packing}"`
}

function asList({ seq, epoch, kind, appendId, at, keyframe, size, packing }: EntryHeader): string {
  return JSON.stringify([seq, epoch, kind, appendId, at, keyframe, size, ...(packing === 'plain' ? [] : [packing])])
}

/** Reads a header strictly: an unknown field or version is refused, never skipped. */
export function decodeHeader(bytes: Uint8Array): EntryHeader {
  if (bytes.length > MAX_HEADER_BYTES) throw corrupt(`is over ${MAX_HEADER_BYTES} bytes`)
  // Header and body are hashed with a line break between them; one inside the header would let the boundary move.
  if (bytes.includes(0x0a)) throw corrupt('holds a line break')
  const words = soleWords(bytes)
  return checkHeader(words === undefined ? readFields(parseJson(bytes)) : readWords(words))
}

function readFields(fields: unknown): EntryHeader {
  if (!isRecord(fields)) throw corrupt('is not an object')
  const isNamed = fields.v === NAMED_VERSION || fields.v === STAND_IN_VERSION
  if (!isNamed && fields.v !== LISTED_VERSION && fields.v !== FORMAT_VERSION) throw unknownVersion(fields.v)
  const names = Object.keys(fields)
  const known = isNamed ? NAMED_FIELDS : LISTED_FIELDS
  for (const name of names) if (!known.has(name)) throw corrupt(`has the unknown field "${name}"`)
  const areWords = fields.v === FORMAT_VERSION && typeof fields.e === 'string'
  const header = isNamed ? readNamed(fields) : areWords ? readWords(fields.e as string) : readListed(fields.e)
  // Most entries have nothing else to say.
  const entry = names.length === 2 ? header : { ...header, ...readOthers(fields) }
  if (isNamed && (fields.v === STAND_IN_VERSION) !== (entry.stands !== undefined)) throw corrupt('contradicts itself')
  return entry
}

function checkHeader(entry: EntryHeader): EntryHeader {
  const isKeyframe = entry.keyframe === entry.seq
  if (
    entry.keyframe > entry.seq ||
    isKeyframe !== (entry.parent !== null) ||
    (entry.base !== null && entry.seq > 0) ||
    (entry.stands !== undefined && !isKeyframe)
  ) {
    throw corrupt('contradicts itself')
  }
  return entry
}

const OTHER_FIELDS = ['v', 'parent', 'base', 'key', 'encrypted', 'blobs', 'stands']
const LISTED_FIELDS = new Set([...OTHER_FIELDS, 'e'])
const NAMED_FIELDS = new Set([
  ...OTHER_FIELDS,
  ...['seq', 'epoch', 'kind', 'append', 'at', 'keyframe', 'size', 'packing'],
])

function readNamed(fields: Record<string, unknown>): EntryHeader {
  const { seq, epoch, kind, append, at, keyframe, size, packing = 'plain' } = fields
  return readListed([seq, epoch, kind, append, at, keyframe, size, packing])
}

/** The words of a header that says nothing else, as most do: read without parsing JSON, which takes twice as long. */
function soleWords(bytes: Uint8Array): string | undefined {
  if (bytes.length > MOST_WORDS) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  const end = text.length - 2
  if (!text.startsWith(BEFORE_WORDS) || text.indexOf('"', BEFORE_WORDS.length) !== end || text[end + 1] !== '}') return
  return text.slice(BEFORE_WORDS.length, end)
}

const BEFORE_WORDS = `{"v":${FORMAT_VERSION},"e":"`
const MOST_WORDS = 200

function readWords(words: string): EntryHeader {
  const [seq = '', epoch = '', kind = '', appendId = '', at = '', keyframe = '', size = '', ...rest] = words.split(' ')
  if (!WORD.test(kind) || !WORD.test(appendId)) throw corrupt('has a malformed list of fields')
  const numbers = [fromBase36(at), fromBase36(keyframe), fromBase36(size)]
  return readListed([fromBase36(seq), fromBase36(epoch), kind, appendId, ...numbers, ...rest])
}

/** Of its only text: anything else is not a number. */
function fromBase36(digits: string): number {
  let number = 0
  for (let i = 0; i < digits.length; i++) {
    const code = digits.charCodeAt(i)
    const digit = code <= NINE ? code - ZERO : code >= A && code <= Z ? code - A + 10 : -1
    if (digit < 0 || (digit === 0 && i === 0 && digits.length > 1)) return Number.NaN
    number = number * 36 + digit
  }
  return digits === '' || number > Number.MAX_SAFE_INTEGER ? Number.NaN : number
}

const [ZERO, NINE, A, Z] = ['0', '9', 'a', 'z'].map((digit) => digit.charCodeAt(0)) as [number, number, number, number]

/** What every entry has, in the order in which it is listed. */
function readListed(listed: unknown): EntryHeader {
  if (!Array.isArray(listed) || listed.length < 7 || listed.length > 8) throw corrupt('has a malformed list of fields')
  const packing: unknown = listed.length === 8 ? listed[7] : 'plain'
  if (!isPacking(packing)) throw corrupt('names an unknown packing')
  return {
    seq: whole(listed[0], 'seq'),
    epoch: whole(listed[1], 'epoch'),
    kind: text(listed[2], 'kind'),
    appendId: text(listed[3], 'append id'),
    at: finite(listed[4]),
    keyframe: whole(listed[5], 'keyframe'),
    size: whole(listed[6], 'size'),
    packing,
    parent: null,
    base: null,
    key: null,
    encrypted: false,
    blobs: NO_BLOBS,
  }
}

type OtherFields = Pick<EntryHeader, 'parent' | 'base' | 'key' | 'encrypted' | 'blobs' | 'stands'>

function readOthers(fields: Record<string, unknown>): OtherFields {
  const { parent = null, key = null, encrypted = false, blobs = NO_BLOBS, base = null } = fields
  if (parent !== null && !isHash(parent)) throw corrupt('has a malformed parent')
  if (key !== null && !isKeyId(key)) throw corrupt('has a malformed key id')
  if (typeof encrypted !== 'boolean') throw corrupt('has a malformed encryption mark')
  if (encrypted && key === null) throw corrupt('says that its body is encrypted without a key')
  if (!Array.isArray(blobs) || !blobs.every(isHash)) throw corrupt('has a malformed list of blobs')
  return {
    parent,
    base: base === null ? null : readBase(base),
    key,
    encrypted,
    blobs,
    ...('stands' in fields ? { stands: readStands(fields.stands) } : {}),
  }
}

const NO_BLOBS: readonly string[] = Object.freeze([])

// Not damage, and nothing to restore or fork from: during an upgrade, old processes see entries of new ones.
function unknownVersion(version: unknown): Error {
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > FORMAT_VERSION) {
    return new SchemaTooNewError('A stored entry', { found: version, supported: FORMAT_VERSION })
  }
  return corrupt('has no known format version')
}

function readBase(base: unknown): ChainBase {
  if (!isRecord(base) || !isHash(base.hash) || Object.keys(base).length !== 4) throw corrupt('has a malformed base')
  return {
    branch: text(base.branch, 'base'),
    incarnation: text(base.incarnation, 'base'),
    seq: whole(base.seq, 'base'),
    hash: base.hash,
  }
}

function readStands(stands: unknown): NonNullable<EntryHeader['stands']> {
  if (!isRecord(stands) || !isHash(stands.hash)) throw corrupt('has a malformed name of what it stands for')
  const { hash, key = null, ...unknown } = stands
  if (Object.keys(unknown).length > 0 || (key !== null && !isKeyId(key))) {
    throw corrupt('has a malformed name of what it stands for')
  }
  return { hash: hash as string, key: key as string | null }
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

/** Key ids are read before anything is authenticated, and appear in messages: short and printable. */
export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9._:-]{1,100}$/.test(value)
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
