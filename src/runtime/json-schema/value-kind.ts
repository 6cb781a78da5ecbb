import type { Value } from '../../codec/value.js'

/** What JSON Schema calls a value; 'other' for those that JSON does not have. */
export function kindOf(value: Value): 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object' | 'other' {
  switch (typeof value) {
    case 'boolean':
    case 'string':
      return typeof value as 'boolean' | 'string'
    case 'number':
      return Number.isFinite(value) ? 'number' : 'other'
    case 'bigint':
      return 'other'
    default:
      if (value === null) return 'null'
      if (Array.isArray(value)) return 'array'
      return value instanceof Date || value instanceof Uint8Array ? 'other' : 'object'
  }
}

/** For messages: short values as they are, others by what they are. */
export function describeValue(value: Value): string {
  if (value instanceof Date) return 'a Date'
  if (value instanceof Uint8Array) return 'bytes'
  if (typeof value === 'bigint') return 'a bigint'
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value)
  if (typeof value === 'string') return value.length <= 60 ? showJson(value) : `a text of ${value.length} characters`
  return Array.isArray(value) ? 'a list' : 'an object'
}

/** As JSON, cut where it gets long. */
export function showJson(value: Value): string {
  const text = JSON.stringify(value, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one))
  return text.length > 200 ? `${text.slice(0, 199)}…` : text
}

/** Whether two values are the same to JSON: whatever the order of keys, and 0 is -0. */
export function sameJson(one: Value, other: Value): boolean {
  if (one === other) return true
  const kind = kindOf(one)
  if (kind !== kindOf(other) || (kind !== 'array' && kind !== 'object')) return false
  const [a, b] = [one as { readonly [key: string]: Value }, other as { readonly [key: string]: Value }]
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && sameJson(a[name] as Value, b[name] as Value))
}
