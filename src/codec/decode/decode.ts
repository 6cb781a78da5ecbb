import { isAscii, isUtf8 } from 'node:buffer'
import { CorruptError } from '../../core/errors.js'
import { parseEscapedKeys } from './escaped-keys.js'
import type { Limits } from '../limits.js'
import { checkJsonLimits } from './scan.js'
import type { PathPart, TypeEntry, TypeName, Value } from '../value.js'
import { renderPath, setOwn } from '../value.js'

/** Where large values come from. */
export interface BlobSource {
  /** The content of the entry's blob of that number; throws CorruptError if there is none. */
  get(number: number): Uint8Array
  /** Told which object a blob became, so that it is not written again. */
  learned?(number: number, value: object | string): void
}

/** Reads what `encodeValue` wrote. Anything else is corrupt: nothing is guessed and no class is ever instantiated. */
export function decodeValue(bytes: Uint8Array, limits: Limits, blobs?: BlobSource): Value {
  const { escapedKeys } = checkJsonLimits(bytes, limits)
  const body = parseJson(bytes, escapedKeys)
  if (!Array.isArray(body) || body.length < 1 || body.length > 2) {
    throw corrupt('A stored value is not wrapped as it should be.')
  }
  if (body.length === 1) return body[0] as Value
  const types: unknown = body[1]
  if (!Array.isArray(types)) throw corrupt('The list of types of a stored value is not a list.')
  for (const entry of types) revive(body, entry, limits, blobs)
  return body[0] as Value
}

/** Strict UTF-8, then JSON. */
export function parseJson(bytes: Uint8Array, escapedKeys = false): unknown {
  try {
    const text = decodeUtf8(bytes)
    return escapedKeys ? parseEscapedKeys(text) : JSON.parse(text)
  } catch (cause) {
    throw corrupt('Stored data is not well-formed JSON in UTF-8.', cause)
  }
}

// Checking first and then decoding is several times as fast as a fatal TextDecoder, for every body that is read. Where
// all is ASCII, as it mostly is, bytes are copied as they are.
function decodeUtf8(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (isAscii(buffer)) return buffer.toString('latin1')
  if (!isUtf8(buffer)) throw new TypeError('not well-formed UTF-8')
  return buffer.toString('utf8')
}

function revive(root: unknown[], entry: unknown, limits: Limits, blobs: BlobSource | undefined): void {
  if (!isTypeEntry(entry)) throw corrupt('An entry in the list of types of a stored value is malformed.')
  const [type, ...path] = entry
  let parent: unknown = root
  let key: PathPart = 0
  for (const part of path) {
    parent = ownChild(parent, key)
    key = part
  }
  const wire = ownChild(parent, key)
  if (typeof wire !== 'string')
    throw corrupt(`The stored value at ${renderPath(path)} should be text for type ${type}.`)
  const value = readTyped(type, wire, path, limits, blobs)
  if (Array.isArray(parent)) parent[key as number] = value
  else setOwn(parent as Record<string, unknown>, key as string, value)
}

function readTyped(
  type: TypeName,
  wire: string,
  path: readonly PathPart[],
  limits: Limits,
  blobs: BlobSource | undefined,
): Value {
  switch (type) {
    case 'date': {
      const date = new Date(wire)
      if (Number.isNaN(date.getTime()) || date.toISOString() !== wire) throw malformed(type, path)
      return date
    }
    case 'bigint':
      return readBigint(wire) ?? fail(malformed(type, path))
    case 'number':
      if (wire === '-0') return -0
      if (wire === 'NaN') return Number.NaN
      if (wire === 'Infinity') return Number.POSITIVE_INFINITY
      if (wire === '-Infinity') return Number.NEGATIVE_INFINITY
      throw malformed(type, path)
    case 'bytes': {
      const bytes = Buffer.from(wire, 'base64')
      if (bytes.toString('base64') !== wire) throw malformed(type, path)
      return new Uint8Array(bytes)
    }
    case 'text-blob':
      try {
        return learnText(decodeUtf8(readBlob(wire, path, blobs)), wire, blobs)
      } catch (cause) {
        if (cause instanceof TypeError) throw malformed(type, path)
        throw cause
      }
    case 'bytes-blob':
      return new Uint8Array(readBlob(wire, path, blobs))
    case 'json-blob': {
      const value = decodeValue(readBlob(wire, path, blobs), limits)
      if (typeof value === 'object' && value !== null) blobs?.learned?.(Number(wire), value)
      return value
    }
  }
}

/** Hexadecimal, as `toString(16)` writes it. Undefined for anything else, and for more bits than a bigint can have. */
function readBigint(wire: string): bigint | undefined {
  if (!/^(?:0|-?[1-9a-f][0-9a-f]*)$/.test(wire)) return undefined
  try {
    return wire.startsWith('-') ? -BigInt(`0x${wire.slice(1)}`) : BigInt(`0x${wire}`)
  } catch {
    return undefined
  }
}

function fail(error: Error): never {
  throw error
}

function learnText(text: string, wire: string, blobs: BlobSource | undefined): string {
  blobs?.learned?.(Number(wire), text)
  return text
}

function readBlob(wire: string, path: readonly PathPart[], blobs: BlobSource | undefined): Uint8Array {
  if (!blobs) throw corrupt(`The stored value at ${renderPath(path)} names a blob where none can be.`)
  if (!/^\d{1,9}$/.test(wire)) throw malformed('json-blob', path)
  return blobs.get(Number(wire))
}

function ownChild(parent: unknown, key: PathPart): unknown {
  const fits = Array.isArray(parent) ? typeof key === 'number' : typeof parent === 'object' && typeof key === 'string'
  if (!fits || parent === null || !Object.hasOwn(parent as object, key)) {
    throw corrupt('The list of types of a stored value points to a place that does not exist.')
  }
  return (parent as Record<PathPart, unknown>)[key]
}

const TYPE_NAMES: ReadonlySet<unknown> = new Set<TypeName>([
  'date',
  'bigint',
  'bytes',
  'number',
  'text-blob',
  'bytes-blob',
  'json-blob',
])

function isTypeEntry(entry: unknown): entry is TypeEntry {
  return (
    Array.isArray(entry) &&
    TYPE_NAMES.has(entry[0]) &&
    entry.every(
      (part) => typeof part === 'string' || (typeof part === 'number' && Number.isSafeInteger(part) && part >= 0),
    )
  )
}

function malformed(type: TypeName, path: readonly PathPart[]): CorruptError {
  return corrupt(`The stored ${type} at ${renderPath(path)} is malformed.`)
}

function corrupt(message: string, cause?: unknown): CorruptError {
  return new CorruptError(message, {}, cause)
}
