import { createHash } from 'node:crypto'
import { InvalidProgramError } from '../../../core/errors.js'

const MAX_ENCODED = 500

/** A key as it is part of a path. */
export interface EncodedKey {
  readonly text: string
  /** Where version 0.1 cut it off, if it is longer than that. */
  readonly cut?: string
}

/** A key in characters that have no other meaning in a path. A long one is distinguished by its hash. */
export function encodeKey(key: unknown): EncodedKey {
  if (Number.isSafeInteger(key)) return { text: String(key) }
  const text = typeof key === 'number' ? String(key) : key
  if (typeof text !== 'string' || !text.isWellFormed()) {
    const given =
      typeof key === 'string' ? 'text with half a surrogate pair' : `a ${key === null ? 'null' : typeof key}`
    throw new InvalidProgramError(`A key must be text or a number, not ${given}.`, 'key', 'Pass an id or a position.')
  }
  const encoded = encodeURIComponent(text)
  if (encoded.length <= MAX_ENCODED) return { text: encoded }
  const cut = encoded.slice(0, MAX_ENCODED)
  const hash = createHash('sha256').update(text).digest('base64url')
  // Encoded text holds no #, so no other key can look like this.
  return { text: `${cut}#${hash}`, cut }
}
