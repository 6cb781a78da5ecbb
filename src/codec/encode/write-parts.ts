import { Encoder } from './encoder.js'
import { joinWritten, stringify } from './json-text.js'
import type { Limits } from '../limits.js'
import { setOwn, type Value } from '../value-types.js'
import { keepWritten } from './written.js'

/** Which parts of a property's value are stored on their own: all of it, each item of a list, each inner property. */
export type PartsOf = (name: string) => 'whole' | 'items' | 'properties'

/**
 * Like `writeValue`, for an object whose parts are stored separately: each of them is already written. Undefined if
 * that can't be done, for whatever reason: then `writeValue` returns the whole, or says why not.
 */
export function writeParts(
  input: object,
  partsOf: PartsOf,
  limits: Limits,
): Readonly<Record<string, Value>> | undefined {
  if (Object.getOwnPropertySymbols(input).length > 0) return undefined
  const encoder = new Encoder(limits, undefined, 'frozen')
  const kept: Record<string, Value> = {}
  try {
    for (const name of Object.keys(input)) {
      const value = (input as Record<string, unknown>)[name]
      if (value !== undefined) setOwn(kept, name, writeIn(encoder, value, partsOf(name), limits))
    }
  } catch {
    return undefined
  }
  // Longer than any part alone may be: the whole is measured.
  if (encoder.hasBytes || encoder.size * MOST_JSON_BYTES > limits.maxBytes) return undefined
  return Object.freeze(kept)
}

const MOST_JSON_BYTES = 32

function writeIn(encoder: Encoder, value: unknown, parts: ReturnType<PartsOf>, limits: Limits): Value {
  if (parts === 'items' && Array.isArray(value) && Object.getPrototypeOf(value) === Array.prototype) {
    const items: Value[] = []
    for (let i = 0; i < value.length; i++) items.push(writePart(encoder, value[i], limits))
    return Object.freeze(items)
  }
  if (parts === 'properties' && isRecord(value)) {
    const record: Record<string, Value> = {}
    for (const key of Object.keys(value)) {
      const inner = value[key]
      if (inner !== undefined) setOwn(record, key, writePart(encoder, inner, limits))
    }
    return Object.freeze(record)
  }
  return writePart(encoder, value, limits)
}

function writePart(encoder: Encoder, input: unknown, limits: Limits): Value {
  const { size, keys } = encoder
  encoder.depth = 0
  const value = encoder.encode(input)
  const written = encoder.written.splice(0)
  const types = encoder.types.splice(0)
  // A date can't be changed either, and has no parts.
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    const json = joinWritten(stringify(encoder.wire, limits), written)
    keepWritten(value, { json, types, depth: encoder.depth, size: encoder.size - size, keys: encoder.keys - keys })
  }
  return value
}

function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const isPlain = Object.getPrototypeOf(value) === Object.prototype
  return isPlain && Object.getOwnPropertySymbols(value).length === 0
}
