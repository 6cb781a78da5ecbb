import type { Value } from '../../codec/value.js'

/** What a put brings along besides its value, so that an entry alone is enough to redo it. */
export interface WriteExtras {
  /** Paths of the fields that a driver may narrow by. */
  readonly index?: readonly (readonly string[])[]
  /** Float32, little-endian. */
  readonly vector?: Uint8Array
  /** Reading it may put its end off. Absent in what 0.1 wrote. */
  readonly renewable?: boolean
}

/**
 * A write to the store that travels in an entry: into which space (a scope and a collection, as the store names them),
 * under which key, what, and until when. Stored as these tuples. Made by `collection.write`.
 */
export type StoreWrite =
  | readonly ['put', string, string, Value, number | null, WriteExtras?]
  | readonly ['delete', string, string]

export const MAX_SPACE_BYTES = 1024
export const MAX_KEY_BYTES = 1024
export const MAX_INDEXED_FIELDS = 16

/** True for exactly the tuples above, with names that every driver takes. */
export function isStoreWrite(write: unknown): write is StoreWrite {
  if (!Array.isArray(write) || !isName(write[1], MAX_SPACE_BYTES) || !isName(write[2], MAX_KEY_BYTES)) return false
  if (write[0] === 'delete') return write.length === 3
  if (write[0] !== 'put' || (write.length !== 5 && write.length !== 6)) return false
  return (write[4] === null || Number.isSafeInteger(write[4])) && (write.length === 5 || isExtras(write[5]))
}

// Drivers take neither NUL nor lone surrogates.
function isName(name: unknown, maxBytes: number): boolean {
  return (
    typeof name === 'string' &&
    name !== '' &&
    name.isWellFormed() &&
    !name.includes('\0') &&
    Buffer.byteLength(name) <= maxBytes
  )
}

function isExtras(extras: unknown): boolean {
  if (typeof extras !== 'object' || extras === null) return false
  const { index, vector, renewable, ...unknown } = extras as Record<string, unknown>
  const fits =
    index === undefined || (Array.isArray(index) && index.length <= MAX_INDEXED_FIELDS && index.every(isPath))
  if (renewable !== undefined && typeof renewable !== 'boolean') return false
  return fits && (vector === undefined || isVector(vector)) && Object.keys(unknown).length === 0
}

function isPath(path: unknown): boolean {
  return Array.isArray(path) && path.length > 0 && path.every((part) => typeof part === 'string')
}

function isVector(vector: unknown): boolean {
  return vector instanceof Uint8Array && vector.length > 0 && vector.length % 4 === 0
}
