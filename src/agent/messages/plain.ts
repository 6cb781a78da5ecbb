import { setOwn, type Value } from '../../codec/value.js'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

const MAX_DEPTH = 64

/**
 * Plain, storable data from what a provider or a tool returned: undefined is left out, URLs become text, sets become
 * lists, maps and errors become objects, and what is neither data nor JSON (functions, symbols, circular references) is
 * dropped.
 */
export function toPlain(input: unknown): Value | undefined {
  return typeof input === 'object' && input !== null ? new Copier().copy(input, 0) : plainLeaf(input)
}

function plainLeaf(input: unknown): Value | undefined {
  switch (typeof input) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
      return input
    default:
      return input === null ? null : undefined
  }
}

/**
 * Copies each object once: the reply of an HTTP client refers to itself in so many ways that following all of them
 * never ends.
 */
class Copier {
  /** Undefined while the object is being copied: if it is met again then, it contains itself. */
  readonly #made = new Map<object, Value | undefined>()

  copy(input: unknown, depth: number): Value | undefined {
    if (typeof input !== 'object' || input === null) return plainLeaf(input)
    if (input instanceof Date || input instanceof Uint8Array) return input
    if (input instanceof URL) return input.href
    if (depth >= MAX_DEPTH) return undefined
    if (this.#made.has(input)) return this.#made.get(input)
    this.#made.set(input, undefined)
    const made = this.#copyObject(input, depth + 1)
    this.#made.set(input, made)
    return made
  }

  #copyObject(input: object, depth: number): Value | undefined {
    if (Array.isArray(input)) return input.map((item) => this.copy(item, depth) ?? null)
    const toJSON = (input as { toJSON?: unknown }).toJSON
    if (typeof toJSON === 'function') return this.copy(toJSON.call(input), depth)
    if (input instanceof Set) return this.#copyObject([...input], depth)
    if (input instanceof Map) return this.#copyObject(Object.fromEntries(input), depth)
    const copy: Record<string, Value> = input instanceof Error ? { name: input.name, message: input.message } : {}
    for (const key of Object.keys(input)) {
      const plain = this.copy((input as Record<string, unknown>)[key], depth)
      if (plain !== undefined) setOwn(copy, key, plain)
    }
    return copy
  }
}

/**
 * The JSON a model can be shown: dates as ISO text, bigints as decimal text, bytes as base64, and numbers that JSON
 * lacks as null.
 */
export function toJson(value: Value): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return value.toString()
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return toBase64(value)
  if (Array.isArray(value)) return value.map((item: Value) => toJson(item))
  const copy: Record<string, Json> = {}
  // Without allocating a pair for each property: a conversation is copied for every turn.
  for (const key of Object.keys(value)) {
    const item = (value as { readonly [key: string]: Value | undefined })[key]
    if (item !== undefined) setOwn(copy, key, toJson(item))
  }
  return copy
}

export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

export function fromBase64(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'base64'))
}

/** The content of a `data:` URL, or undefined for any other. */
export function readDataUrl(url: string): { readonly mediaType: string; readonly bytes: Uint8Array } | undefined {
  if (!/^data:/i.test(url)) return undefined
  const comma = url.indexOf(',')
  if (comma === -1) return undefined
  const head = url.slice(5, comma)
  const isBase64 = /;base64$/i.test(head)
  const mediaType = (isBase64 ? head.slice(0, -7) : head) || 'text/plain'
  const body = url.slice(comma + 1)
  if (isBase64) return { mediaType, bytes: fromBase64(body) }
  try {
    return { mediaType, bytes: new Uint8Array(Buffer.from(decodeURIComponent(body))) }
  } catch {
    return undefined
  }
}

export function toDataUrl(mediaType: string, bytes: Uint8Array): string {
  return `data:${mediaType};base64,${toBase64(bytes)}`
}
