import { createHash } from 'node:crypto'
import { DEFAULT_LIMITS } from '../codec/limits.js'
import { encodeValue } from '../codec/value.js'

const HASH_CHARACTERS = 32

/**
 * A hash of what a value is, whatever the order of its keys: the same arguments built in another order are the same
 * arguments. Refuses what can't be stored.
 */
export function hashValue(value: unknown): string {
  if (value === undefined) return 'none'
  const { json } = encodeValue(sortKeys(value), DEFAULT_LIMITS)
  return createHash('sha256').update(json).digest('hex').slice(0, HASH_CHARACTERS)
}

function sortKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sortKeys)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sortKeys((value as Record<string, unknown>)[name])]))
}
