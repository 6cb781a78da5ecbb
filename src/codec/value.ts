import { Encoder } from './encode/encoder.js'
import { joinWritten, stringify, tooManyBytes } from './encode/json-text.js'
import type { Limits } from './limits.js'
import { keepWritten } from './encode/written.js'
import type { BlobSink, Value } from './value-types.js'

export * from './value-types.js'

export interface Encoded {
  /** `[value]`, or `[value,types]`. */
  readonly json: string
  /** A deep copy in the form in which it will be read back: what a fold may keep. */
  readonly value: Value
  /** How many arrays and objects lie inside each other at the deepest place. */
  readonly depth: number
}

/**
 * Turns a value into JSON text and an exact copy of itself, or refuses it with the path to what can't be stored. An
 * object property that is undefined is left out, as in JSON; undefined anywhere else is refused. Properties that are
 * not enumerable, and array properties other than items, are not part of a value.
 */
export function encodeValue(input: unknown, limits: Limits, sink?: BlobSink): Encoded {
  const encoder = new Encoder(limits, sink)
  const value = encoder.encode(input)
  const body = encoder.types.length === 0 ? [encoder.wire] : [encoder.wire, encoder.types]
  const json = joinWritten(stringify(body, limits), encoder.written)
  // JSON length in UTF-16 units is a lower bound of its bytes, so most values need no second look.
  if (json.length * 3 > limits.maxBytes) {
    const bytes = Buffer.byteLength(json)
    if (bytes > limits.maxBytes) {
      throw tooManyBytes(limits, bytes)
    }
  }
  return { json, value, depth: encoder.depth }
}

/**
 * The exact copy in a form that nobody can change, already written: `encodeValue` takes it as it is and does not look
 * inside again. So a value is walked once, where it comes in. Bytes can't be protected from changes: a value with bytes
 * is an ordinary copy.
 */
export function writeValue(input: unknown, limits: Limits): Value {
  const encoder = new Encoder(limits, undefined, 'frozen')
  const value = encoder.encode(input)
  if (encoder.hasBytes || typeof value !== 'object' || value === null) return copyValue(value, limits)
  if (value instanceof Date) return value
  // Parts of it may have been written before, and not be stored yet.
  const json = joinWritten(stringify(encoder.wire, limits), encoder.written)
  if (json.length * 3 > limits.maxBytes && Buffer.byteLength(json) > limits.maxBytes) {
    throw tooManyBytes(limits, Buffer.byteLength(json))
  }
  const { types, depth, size, keys } = encoder
  keepWritten(value, { json, types, depth, size, keys })
  return value
}

/** The exact copy alone, refused as `encodeValue` refuses it: for what is not written yet, but will be. */
export function copyValue(input: unknown, limits: Limits): Value {
  const encoder = new Encoder(limits, undefined)
  const value = encoder.encode(input)
  // Nothing that counts as one becomes longer than this in JSON. What may be too long is measured.
  const isSurelyShort = encoder.types.length === 0 && (encoder.size + 1) * MOST_JSON_BYTES < limits.maxBytes
  return isSurelyShort ? value : encodeValue(value, limits).value
}

const MOST_JSON_BYTES = 32
