import { CorruptError } from '../../core/errors.js'
import type { Limits } from '../limits.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Counts depth and keys of a stored value, `[value]` or `[value,types]`, without building anything, so that a bomb of
 * nesting or of a billion keys is refused before the parser sees it. Counts exactly what the writer counted: what was
 * written under the same limits is never refused. Whether the JSON is valid is left to the parser.
 */
export function checkJsonLimits(bytes: Uint8Array, limits: Limits): JsonTraits {
  if (bytes.length > limits.maxBytes) throw over('bytes', limits.maxBytes)
  let depth = 0
  let keys = 0
  let typed = 0
  let inTypes = false
  let escapedKeys = false
  const mayEscape = bytes.includes(BACKSLASH)
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) {
      const start = i
      i = mayEscape ? skipString(bytes, i) : skipPlain(bytes, i + 1)
      if (mayEscape && !escapedKeys && bytes[i + 1] === COLON) escapedKeys = hasEscape(bytes, start, i)
    } else if (byte === COMMA) {
      if (depth === 1) inTypes = true
      else if (!inTypes) keys++
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      depth++
      if (inTypes) typed++
      else if (depth > 1) keys++
      if (depth > (inTypes ? TYPES_DEPTH : limits.maxDepth + 1)) throw over('levels of nesting', limits.maxDepth)
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth--
      // Each container was counted for its first item, since n items have n - 1 commas; an empty one has none.
      const before = bytes[i - 1]
      if (!inTypes && (before === OPEN_BRACE || before === OPEN_BRACKET)) keys--
    }
  }
  // The list of types has one entry for each typed value at most: for every key, or for the value itself.
  if (keys > limits.maxKeys || typed > limits.maxKeys + 2) throw over('keys', limits.maxKeys)
  return { escapedKeys }
}

/** What a parser must know about the bytes beforehand. */
export interface JsonTraits {
  /** A key is written with an escape, which not every JSON.parse reads correctly: see `parseEscapedKeys`. */
  readonly escapedKeys: boolean
}

function hasEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] === BACKSLASH) return true
  return false
}

/** The envelope, the list of types, and an entry of it. */
const TYPES_DEPTH = 3

/** Long strings are searched for their end natively; for short ones the call would cost more than the loop. */
const SHORT_STRING = 24

/** The next quote, or the end of the bytes: the end of a string where nothing is escaped. */
function skipPlain(bytes: Uint8Array, start: number): number {
  let i = start
  for (const stop = Math.min(bytes.length, i + SHORT_STRING); i < stop; i++) if (bytes[i] === QUOTE) return i
  const quote = bytes.indexOf(QUOTE, i)
  return quote === -1 ? bytes.length : quote
}

/** The position of the quote that ends the string, or the end of the bytes. */
function skipString(bytes: Uint8Array, start: number): number {
  let i = start + 1
  for (const stop = Math.min(bytes.length, i + SHORT_STRING); i < stop; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) return i
    if (byte === BACKSLASH) i++
  }
  while (i < bytes.length) {
    const quote = bytes.indexOf(QUOTE, i)
    if (quote === -1) return bytes.length
    let escapes = 0
    while (quote - 1 - escapes >= i && bytes[quote - 1 - escapes] === BACKSLASH) escapes++
    if (escapes % 2 === 0) return quote
    i = quote + 1
  }
  return i
}

function over(what: string, limit: number): CorruptError {
  return new CorruptError(`Stored data is over the limit of ${limit} ${what}.`, { what, limit })
}
