import type { Scalar } from '../../codec/item-field.js'
import type { Value } from '../../codec/value.js'
import { compareUtf8 } from '../../core/text-order.js'

/** The order of types: missing values first, values without an order of their own last. */
type Kind = 'missing' | 'null' | 'boolean' | 'number' | 'bigint' | 'string' | 'date' | 'other'

const KINDS: readonly Kind[] = ['missing', 'null', 'boolean', 'number', 'bigint', 'string', 'date', 'other']

export function kindOf(value: Value | undefined): Kind {
  if (value === undefined) return 'missing'
  if (value === null) return 'null'
  if (value instanceof Date) return 'date'
  const type = typeof value
  return type === 'object' ? 'other' : (type as Kind)
}

/** Equal in type and value. 0 equals -0 and NaN equals itself, so that whatever is stored can be found. */
export function isEqual(a: Value | undefined, b: Scalar): boolean {
  const kind = kindOf(a)
  return kind !== 'missing' && kind !== 'other' && kind === kindOf(b) && compareSame(kind, a, b) === 0
}

/**
 * A total order over everything that can be stored, the same on every backend: first by type, then within it. Strings
 * go by code point, false before true, NaN before all numbers. Objects, arrays and bytes all compare as equal.
 */
export function compareValues(a: Value | undefined, b: Value | undefined): number {
  const [left, right] = [kindOf(a), kindOf(b)]
  return left === right ? compareSame(left, a, b) : KINDS.indexOf(left) - KINDS.indexOf(right)
}

function compareSame(kind: Kind, a: unknown, b: unknown): number {
  switch (kind) {
    case 'boolean':
      return Number(a) - Number(b)
    case 'number':
      return compareNumbers(a as number, b as number)
    case 'bigint':
      return (a as bigint) < (b as bigint) ? -1 : (a as bigint) > (b as bigint) ? 1 : 0
    case 'string':
      return compareUtf8(a as string, b as string)
    case 'date':
      return (a as Date).getTime() - (b as Date).getTime()
    default:
      return 0
  }
}

// By comparison, not by subtraction: Infinity - Infinity is NaN.
function compareNumbers(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(b)) - Number(Number.isNaN(a))
  return a < b ? -1 : a > b ? 1 : 0
}
