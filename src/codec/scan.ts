import { CorruptError } from '../core/errors.js'
import type { Limits } from './limits.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Counts depth and keys of JSON bytes without building anything, so that a stored bomb of nesting or of a billion
 * keys is refused before the parser meets it. Whether the JSON is valid is left to the parser.
 */
export function checkJsonLimits(bytes: Uint8Array, limits: Limits): void {
  if (bytes.length > limits.maxBytes) throw over('bytes', limits.maxBytes)
  let depth = 0
  let keys = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      i = skipString(bytes, i)
    } else if (byte === COMMA) {
      keys++
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      keys++
      if (++depth > limits.maxDepth + ENVELOPE_DEPTH) throw over('levels of nesting', limits.maxDepth)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
    }
  }
  // The list of types may hold a few parts for each typed key, and the writer did not count empty containers.
  if (keys > limits.maxKeys * 4 + 64) throw over('keys', limits.maxKeys)
}

/** The arrays around a stored value and around its list of types. */
const ENVELOPE_DEPTH = 3

function skipString(bytes: Uint8Array, start: number): number {
  let i = start + 1
  for (; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i
    if (byte === BACKSLASH) i++
  }
  return i
}

function over(what: string, limit: number): CorruptError {
  return new CorruptError(`Stored data is over the limit of ${limit} ${what}.`, { what, limit })
}
