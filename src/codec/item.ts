import { createHash, createHmac, hash, timingSafeEqual } from 'node:crypto'
import { andThen } from '../core/async/at-once.js'
import { CorruptError } from '../core/errors.js'
import { pack, type Packed, unpack } from './pack/compress.js'
import { type DataKey, decrypt, encrypt } from './secret/data-key.js'
import { decodeValue, parseJson } from './decode/decode.js'
import { isKeyId } from './header.js'
import type { Limits } from './limits.js'
import type { Value } from './value.js'

/** Where an item belongs. Its bytes verify in this place only. */
export interface ItemPlace {
  readonly tenant: string
  readonly space: string
  readonly key: string
}

/** What is known about an item besides its content. */
export interface ItemFacts {
  readonly version: string
  /** Wall time in milliseconds since 1970. */
  readonly at: number
  /** When it expires. Sealed only under a key: without one, whoever can change it can also change the seal. */
  readonly expiresAt?: number | null
  /** Reading it may postpone its expiry. */
  readonly renewable?: boolean
}

/** An item that verified. The value is unpacked and parsed only on demand. */
export interface VerifiedItem {
  readonly vector: Float32Array | undefined
  /** Bytes of the value's JSON, which it never exceeds. */
  readonly size: number
  /** When it expires at the latest, as sealed; undefined if that is not known, or may be postponed by reading. */
  readonly endsAt: number | undefined
  read(): Value | Promise<Value>
}

const HASH_BYTES = 32
const MAX_HEADER_BYTES = 1024
const ONE_SHOT = 64 * 1024
const NEWLINE = Buffer.from('\n')
const FIELDS = new Set(['v', 'version', 'at', 'size', 'packing', 'vector', 'key', 'encrypted', 'ends'])

/**
 * The bytes of an item: a hash, one line of JSON that says how the rest is packed, the vector, and the value. The hash
 * is SHA-256, or HMAC-SHA-256 with a key, over the item's place and everything else, so that bytes that were changed,
 * or copied from another tenant, space or key, are detected.
 */
export function encodeItem(
  place: ItemPlace,
  facts: ItemFacts,
  content: { readonly json: string; readonly vector?: Float32Array | undefined },
  key: DataKey | null,
  encrypted: boolean,
): Uint8Array | Promise<Uint8Array> {
  const raw = Buffer.from(content.json)
  return andThen(pack(raw), (packed) => joinItem(place, facts, content.vector, raw.length, packed, key, encrypted))
}

function joinItem(
  place: ItemPlace,
  facts: ItemFacts,
  vector: Float32Array | undefined,
  size: number,
  packed: Packed,
  key: DataKey | null,
  encrypted: boolean,
): Uint8Array {
  const header = Buffer.from(
    JSON.stringify({
      v: 1,
      version: facts.version,
      at: facts.at,
      size,
      ...(packed.packing === 'plain' ? {} : { packing: packed.packing }),
      ...(vector ? { vector: vector.length } : {}),
      ...(key ? { key: key.id } : {}),
      ...(key && typeof facts.expiresAt === 'number' && !facts.renewable ? { ends: facts.expiresAt } : {}),
      ...(key && encrypted ? { encrypted: true } : {}),
    }),
  )
  const plain = vector ? Buffer.concat([vectorBytes(vector), packed.bytes]) : packed.bytes
  const identity = itemIdentity(place)
  const payload = key && encrypted ? encrypt(key.encryptionKey, plain, context(identity, header)) : plain
  return Buffer.concat([hashItem(identity, header, payload, key), header, NEWLINE, payload])
}

/**
 * Checks an item's bytes against its place, version and time. `findKey` returns the key that an id names; for an item
 * without one it is called with null, and says whether that is allowed.
 */
export async function verifyItem(
  place: ItemPlace,
  facts: ItemFacts,
  stored: Uint8Array,
  limits: Limits,
  findKey: (id: string | null, at: number) => DataKey | null | Promise<DataKey | null>,
): Promise<VerifiedItem> {
  const header = headerOf(place, stored)
  const about = readHeader(place, header)
  const finding = findKey(about.key, about.at)
  const key = finding instanceof Promise ? await finding : finding
  const payload = stored.subarray(HASH_BYTES + header.length + 1)
  const identity = itemIdentity(place)
  if (!timingSafeEqual(hashItem(identity, header, payload, key), stored.subarray(0, HASH_BYTES))) {
    throw corruptItem(place, 'does not match its hash')
  }
  if (about.version !== facts.version || about.at !== facts.at)
    throw corruptItem(place, 'and its row name different versions')
  if (about.size > limits.maxBytes) throw corruptItem(place, `is over the limit of ${limits.maxBytes} bytes`)
  const plain = about.encrypted && key ? decrypt(key.encryptionKey, payload, context(identity, header)) : payload
  const packed = plain.subarray(about.vector * 4)
  if (about.vector * 4 > plain.length) throw corruptItem(place, 'is shorter than its vector')
  return {
    size: about.size,
    endsAt: about.ends,
    vector: about.vector === 0 ? undefined : readVector(plain.subarray(0, about.vector * 4)),
    read: () => {
      const raw = unpack(about.packing, packed, about.size)
      return raw instanceof Promise ? raw.then((bytes) => decodeValue(bytes, limits)) : decodeValue(raw, limits)
    },
  }
}

/** The key that an item says it is sealed under, before anything is verified; null for none. */
export function itemKeyId(place: ItemPlace, stored: Uint8Array): string | null {
  return readHeader(place, headerOf(place, stored)).key
}

function headerOf(place: ItemPlace, stored: Uint8Array): Uint8Array {
  const end = stored.indexOf(0x0a, HASH_BYTES)
  if (end < 0 || end > MAX_HEADER_BYTES) throw corruptItem(place, 'has no description')
  return stored.subarray(HASH_BYTES, end)
}

export function corruptItem(
  { space, key }: ItemPlace,
  problem: string,
  cause?: unknown,
  remedy?: string,
): CorruptError {
  const message = `The stored item ${JSON.stringify(key)} of ${JSON.stringify(space)} ${problem}.`
  return new CorruptError(
    message,
    { space, key },
    cause,
    remedy ?? 'Delete or overwrite the item, or restore a backup.',
  )
}

/** Little-endian on every machine. */
export function vectorBytes(vector: Float32Array): Buffer {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  for (let i = 0; i < vector.length; i++) bytes.writeFloatLE(vector[i] as number, i * 4)
  return bytes
}

export function readVector(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const vector = new Float32Array(bytes.length / 4)
  for (let i = 0; i < vector.length; i++) vector[i] = view.getFloat32(i * 4, true)
  return vector
}

function itemIdentity({ tenant, space, key }: ItemPlace): string {
  return `holdfast/1 item\n${JSON.stringify([tenant, space, key])}\n`
}

function context(identity: string, header: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(identity), header])
}

function hashItem(identity: string, header: Uint8Array, payload: Uint8Array, key: DataKey | null): Buffer {
  // Copying a small item into one buffer is cheaper than four calls into the hash.
  if (key === null && payload.length < ONE_SHOT) {
    return hash('sha256', Buffer.concat([Buffer.from(identity), header, NEWLINE, payload]), 'buffer')
  }
  const hasher = key ? createHmac('sha256', key.macKey) : createHash('sha256')
  return hasher.update(identity).update(header).update(NEWLINE).update(payload).digest()
}

// Read before anything is authenticated, because it names the key; a false one only makes the check fail.
function readHeader(place: ItemPlace, header: Uint8Array) {
  const about = parseHeader(place, header)
  if (about === null || typeof about !== 'object' || about.v !== 1) throw corruptItem(place, 'has no known format')
  for (const name of Object.keys(about))
    if (!FIELDS.has(name)) throw corruptItem(place, `has the unknown field "${name}"`)
  const { version, at, size, packing = 'plain', vector = 0, key = null, encrypted = false, ends } = about
  const fits =
    typeof version === 'string' &&
    typeof at === 'number' &&
    isCount(size) &&
    isCount(vector) &&
    (packing === 'plain' || packing === 'br') &&
    (key === null || isKeyId(key)) &&
    typeof encrypted === 'boolean' &&
    !(encrypted && key === null) &&
    (ends === undefined || (typeof ends === 'number' && Number.isFinite(ends)))
  if (!fits) throw corruptItem(place, 'has a malformed description')
  return { version, at, size, packing, vector, key, encrypted, ends } as const
}

function parseHeader(place: ItemPlace, header: Uint8Array): Record<string, unknown> | null {
  try {
    return parseJson(header) as Record<string, unknown> | null
  } catch (cause) {
    throw corruptItem(place, 'has no description', cause)
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
