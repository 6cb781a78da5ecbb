import type { Value } from '../codec/value.js'

/** What is wrong with a part of a value. */
export interface Problem {
  /** As in messages: `$.items[3].name`. */
  readonly path: string
  readonly message: string
}

/** What was found about one value: problems, and which of its parts a schema spoke of. */
export interface Found {
  readonly problems: Problem[]
  /** Made when there is one to add, as below: most values have none. */
  names?: Set<string>
  /** Items from the first on; Infinity for all. */
  items: number
  /** Items that `contains` spoke of. */
  contained?: Set<number>
}

/** What the keywords use of the look that they are part of. */
export interface Look {
  /** What a schema finds about a value. */
  apply(schema: Value | undefined, value: Value, path: string): Found
  /** Counts work against the limit. */
  spend(units: number, path: string): void
  /** Whether a pattern is found in a text; undefined where nobody can tell in time. */
  find(pattern: string, text: string, path: string): boolean | undefined
}

export function isFit({ problems }: Found): boolean {
  return problems.length === 0
}

export function fail(found: Found, path: string, message: string): void {
  found.problems.push({ path, message })
}

export function merge(found: Found, other: Found): void {
  // By a loop: there may be more than a call takes arguments.
  for (const problem of other.problems) found.problems.push(problem)
  for (const name of other.names ?? []) spokeOf(found, name)
  for (const item of other.contained ?? []) spokeOfItem(found, item)
  found.items = Math.max(found.items, other.items)
}

export function spokeOf(found: Found, name: string): void {
  found.names ??= new Set()
  found.names.add(name)
}

export function spokeOfItem(found: Found, item: number): void {
  found.contained ??= new Set()
  found.contained.add(item)
}

/** What a part of a value brought: only its problems. */
export function take(found: Found, { problems }: Found): void {
  merge(found, { problems, items: 0 })
}

/** The problem that says what is wrong; the ones above only say that something below is. */
export function deepest(problems: readonly Problem[]): Problem {
  return problems.reduce((a, b) => (b.path.length > a.path.length ? b : a))
}

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
