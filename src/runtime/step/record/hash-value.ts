import { hash } from 'node:crypto'
import { DEFAULT_LIMITS } from '../../../codec/limits.js'
import type { Redactor } from '../../../codec/secret/redactor.js'
import { copyValue, encodeValue } from '../../../codec/value.js'
import type { Run } from '../../run/run.js'

const HASH_CHARACTERS = 32

/**
 * A hash of a value, independent of the order of its keys: the same arguments built in another order are the same
 * arguments. Refuses what can't be stored.
 */
export function hashValue(value: unknown): string {
  if (value === undefined) return 'none'
  const { json } = encodeValue(sorted(value), DEFAULT_LIMITS)
  return hash('sha256', json, 'hex').slice(0, HASH_CHARACTERS)
}

function sorted(value: unknown): unknown {
  try {
    return sortKeys(value, 0)
  } catch (cause) {
    // It lies too deep, refers back to itself or can't be read: this says so, with the path to it.
    encodeValue(value, DEFAULT_LIMITS)
    throw cause
  }
}

function sortKeys(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth > DEFAULT_LIMITS.maxDepth) throw new RangeError('too deep')
  if (Array.isArray(value)) return value.map((item) => sortKeys(item, depth + 1))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sortKeys((value as Record<string, unknown>)[name], depth + 1)]))
}

/**
 * The hash of a value as far as it would be kept: a hash of what is redacted, such as a card number, would give it
 * away.
 */
export function hashKept(value: unknown, redactor: Redactor | undefined): string {
  return hashValue(redactor && value !== undefined ? redactor.value(copyValue(value, DEFAULT_LIMITS)) : value)
}

/**
 * The key a service sees: the same across crashes and retries, a different one on every branch and after a definite
 * failure. Made when it is asked for, of the run that is in progress now: most steps never look at theirs.
 */
export function keyMaker({ key, state: { run } }: Run, path: string, generation: number): () => string {
  let made: string | undefined
  return () => {
    if (made !== undefined) return made
    const { tenant, thread, branch } = key
    const parts = [tenant, thread, branch, run?.key ?? run?.id ?? '', path, `${generation}`]
    // An id that was erased and reused would collide with the charges of its former life.
    if (run?.incarnation !== undefined) parts.push(run.incarnation)
    made = hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32)
    return made
  }
}
