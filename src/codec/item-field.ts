import { createHash, createHmac, type KeyObject } from 'node:crypto'
import { isRecord, type Value } from './value.js'

/** The path to a field inside an item: the names of properties, outermost first. */
export type FieldPath = readonly string[]

/** What a filter compares with, and what can be ordered. */
export type Scalar = null | boolean | number | bigint | string | Date

/** The value at a path, through own properties of plain objects only; undefined if there is none. */
export function fieldAt(value: Value, path: FieldPath): Value | undefined {
  let at: Value = value
  for (const name of path) {
    if (!isRecord(at) || !Object.hasOwn(at, name)) return undefined
    at = at[name] as Value
  }
  return at
}

export function isScalar(value: unknown): value is Scalar {
  return value === null || ['boolean', 'number', 'bigint', 'string'].includes(typeof value) || value instanceof Date
}

/** The name under which a driver may narrow by a field: opaque, short, and different under a different key. */
export function fieldName(path: FieldPath, key: KeyObject | undefined): string {
  return digest(`holdfast/1 field\n${JSON.stringify(path)}`, key)
}

/**
 * What stands for a field's value in a driver: equal values of one field in one space have equal tokens, and nothing
 * else can be learned from them. All values that no filter can equal share one token.
 */
export function fieldToken(
  space: string,
  path: FieldPath,
  value: Value | undefined,
  key: KeyObject | undefined,
): string {
  return digest(`holdfast/1 token\n${JSON.stringify([space, path])}\n${canonical(value)}`, key)
}

function canonical(value: Value | undefined): string {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (value instanceof Date) return `date ${value.getTime()}`
  switch (typeof value) {
    case 'string':
      return `string ${value}`
    case 'number':
      // 0 and -0 are equal to a filter, and so is NaN to itself.
      return `number ${value + 0}`
    case 'bigint':
      return `bigint ${value.toString(16)}`
    case 'boolean':
      return `boolean ${value}`
    default:
      return 'other'
  }
}

function digest(text: string, key: KeyObject | undefined): string {
  const hasher = key ? createHmac('sha256', key) : createHash('sha256')
  return hasher.update(text).digest('base64url').slice(0, 22)
}
