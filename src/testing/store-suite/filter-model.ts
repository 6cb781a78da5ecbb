import type { Clause, FieldInput, Operators, SearchQuery } from '../../store/index.js'
import type { Random } from './random.js'
import { byBytes } from './store-context.js'

/** Values that meet each other often, of every kind that a field can hold. */
const POOL: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  1,
  2.5,
  -3,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '',
  '0',
  '1',
  'a',
  'B',
  'é',
  '\uffff',
  '\u{10000}',
  0n,
  1n,
  -5n,
  new Date(0),
  new Date(1),
  new Date(1e12),
]
const OPAQUE: readonly unknown[] = [[], [1, 'a'], ['a', null, 1n], { x: 1 }, {}, new Uint8Array([1])]
const FIELDS: readonly (readonly string[])[] = [
  ['a'],
  ['b'],
  ['c.d'],
  ['n', 'x'],
  ['n', 'n', 'x'],
  ['none'],
  ['length'],
]
const OPERATORS = ['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'nin', 'exists', 'contains'] as const

export interface ModelItem {
  readonly key: string
  readonly value: unknown
}

/** A value with some of the fields that queries ask for. */
export function randomValue(random: Random): unknown {
  if (random.chance(0.05)) return random.pick([...POOL, ...OPAQUE])
  const value: Record<string, unknown> = {}
  for (const name of ['a', 'b', 'c.d'])
    if (random.chance(0.8)) value[name] = random.pick(random.chance(0.8) ? POOL : OPAQUE)
  if (random.chance(0.7))
    value.n = { x: random.pick(POOL), ...(random.chance(0.5) ? { n: { x: random.pick(POOL) } } : {}) }
  return value
}

export function randomQuery(random: Random): SearchQuery & { readonly filter: readonly Clause[] } {
  const filter = Array.from({ length: random.below(3) }, () => randomClause(random))
  const orderBy = random.chance(0.6) ? random.pick(FIELDS) : undefined
  return {
    filter,
    ...(orderBy ? { orderBy } : {}),
    ...(random.chance(0.5) ? { direction: random.pick(['asc', 'desc'] as const) } : {}),
    limit: 1 + random.below(6),
  }
}

/** Fields to index, of which some are never there. */
export function randomIndex(random: Random): readonly FieldInput[] {
  return FIELDS.filter(() => random.chance(0.4))
}

function randomClause(random: Random): Clause {
  const operator = random.pick(OPERATORS)
  const scalar = () => random.pick(POOL)
  const operand = (): unknown => {
    if (operator === 'exists') return random.chance(0.5)
    if (operator === 'in' || operator === 'nin') return Array.from({ length: random.below(4) }, scalar)
    if (operator === 'eq' || operator === 'ne' || operator === 'contains') return scalar()
    return random.pick(POOL.filter((value) => value !== null && typeof value !== 'boolean' && !Number.isNaN(value)))
  }
  return { field: random.pick(FIELDS), [operator]: operand() } as Clause
}

/** The keys that a query must find, in order: what the documentation says, in the plainest code. */
export function expectedKeys(
  items: readonly ModelItem[],
  query: SearchQuery & { readonly filter: readonly Clause[] },
): string[] {
  const found = items.filter(({ value }) => query.filter.every((clause) => holds(value, clause)))
  const path = query.orderBy as readonly string[] | undefined
  const place = ({ value }: ModelItem) => (path ? rank(at(value, path)) : rank(null))
  found.sort((a, b) => comparePlaces(place(a), place(b)) || byBytes(a.key, b.key))
  if (query.direction === 'desc') found.reverse()
  return found.map(({ key }) => key)
}

function holds(value: unknown, { field, ...operators }: Clause): boolean {
  const actual = at(value, field as readonly string[])
  return Object.entries(operators).every(([operator, operand]) => {
    switch (operator as keyof Operators) {
      case 'eq':
        return same(actual, operand)
      case 'ne':
        return !same(actual, operand)
      case 'in':
        return (operand as readonly unknown[]).some((one) => same(actual, one))
      case 'nin':
        return !(operand as readonly unknown[]).some((one) => same(actual, one))
      case 'exists':
        return operand === (actual !== undefined)
      case 'contains':
        return Array.isArray(actual) && actual.some((item) => same(item, operand))
      default:
        return isInRange(operator, actual, operand)
    }
  })
}

function isInRange(operator: string, actual: unknown, bound: unknown): boolean {
  const [left, right] = [rank(actual), rank(bound)]
  if (left[0] !== right[0] || Number.isNaN(actual)) return false
  const order = comparePlaces(left, right)
  return { gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[operator] ?? false
}

function same(actual: unknown, operand: unknown): boolean {
  if (actual instanceof Date || operand instanceof Date) {
    return actual instanceof Date && operand instanceof Date && actual.getTime() === operand.getTime()
  }
  return actual === operand || (Number.isNaN(actual) && Number.isNaN(operand))
}

type Place = readonly [kind: number, number: number | bigint | string]

function rank(value: unknown): Place {
  if (value === undefined) return [0, 0]
  if (value === null) return [1, 0]
  if (typeof value === 'boolean') return [2, value ? 1 : 0]
  if (typeof value === 'number') return [3, value]
  if (typeof value === 'bigint') return [4, value]
  if (typeof value === 'string') return [5, value]
  return value instanceof Date ? [6, value.getTime()] : [7, 0]
}

function comparePlaces([kindA, a]: Place, [kindB, b]: Place): number {
  if (kindA !== kindB) return kindA - kindB
  if (typeof a === 'string') return byBytes(a, b as string)
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a))
  const [left, right] = [a as number, b as number]
  return left < right ? -1 : left > right ? 1 : 0
}

function at(value: unknown, path: readonly string[]): unknown {
  let here = value
  for (const name of path) {
    const isRecord = typeof here === 'object' && here !== null && Object.getPrototypeOf(here) === Object.prototype
    if (!isRecord || !Object.keys(here as object).includes(name)) return undefined
    here = (here as Record<string, unknown>)[name]
  }
  return here
}
