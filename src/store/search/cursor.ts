import type { FieldPath } from '../../codec/item-field.js'
import { decodeValue } from '../../codec/decode/decode.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { encodeValue, type Value } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'

/** How a search is ordered. */
export interface Order {
  /** Undefined: by key. */
  readonly field: FieldPath | undefined
  readonly descending: boolean
}

/** Where a page ended. `value` is what its last item was ordered by; absent if it had none. */
export interface Position {
  readonly key: string
  readonly value?: Value | undefined
}

/** Where the next page starts, as text that survives a URL. */
export function encodeCursor(order: Order, { key, value }: Position): string {
  const parts = [nameOrder(order), key, ...(value === undefined ? [] : [value])]
  return Buffer.from(encodeValue(parts, DEFAULT_LIMITS).json).toString('base64url')
}

/** Refuses what `encodeCursor` did not create for the same order: a cursor comes from outside. */
export function decodeCursor(order: Order, cursor: unknown): Position {
  const parts = decode(cursor)
  if (!Array.isArray(parts) || parts.length < 2 || parts.length > 3 || parts[0] !== nameOrder(order)) throw invalid()
  const [, key, value] = parts as readonly Value[]
  if (typeof key !== 'string' || key === '' || !key.isWellFormed() || key.includes('\0')) throw invalid()
  return { key, value }
}

function nameOrder({ field, descending }: Order): string {
  return JSON.stringify([field ?? null, descending])
}

function decode(cursor: unknown): Value | undefined {
  if (typeof cursor !== 'string' || !/^[A-Za-z0-9_-]+$/.test(cursor)) return undefined
  try {
    return decodeValue(Buffer.from(cursor, 'base64url'), DEFAULT_LIMITS)
  } catch {
    return undefined
  }
}

function invalid(): InvalidOptionError {
  const remedy = 'Pass the cursor of the page before, unchanged and with the same query, or none for the first page.'
  return new InvalidOptionError('cursor', 'is not one that a page of this order returned', remedy)
}
