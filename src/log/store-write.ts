import type { Value } from '../codec/value.js'

/**
 * A write to the store that travels in an entry: into which space (a scope and a collection, as the store names them),
 * under which key, what, and until when. Stored as these tuples.
 */
export type StoreWrite =
  | readonly ['put', string, string, Value, number | null]
  | readonly ['delete', string, string]

/** True for exactly the tuples above. */
export function isStoreWrite(write: unknown): write is StoreWrite {
  if (!Array.isArray(write) || typeof write[1] !== 'string' || typeof write[2] !== 'string') return false
  if (write[0] === 'delete') return write.length === 3
  return write[0] === 'put' && write.length === 5 && (write[4] === null || Number.isSafeInteger(write[4]))
}
