import { InvalidOptionError } from '../../../errors.js'
import type { Clause } from '../../../store/index.js'

const OPERATORS = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin']

/** More values than this are not passed on, but compared here. */
const MAX_LIST = 1000

/** Whether fields match a filter, as LangGraph's own stores decide it. */
export function fits(read: (field: string) => unknown, filter: Record<string, unknown>): boolean {
  return Object.keys(filter).every((key) => fitsField(read(key), filter[key]))
}

/**
 * What a backend can leave out by itself: among the fields it knows, whatever equals none of the requested values. It
 * never leaves out what `fits`; what it returns has yet to be compared.
 */
export function narrowing(filter: Record<string, unknown> | undefined, filterFields: readonly string[]): Clause[] {
  const clauses: Clause[] = []
  for (const field of filterFields) {
    if (filter === undefined || !Object.hasOwn(filter, field)) continue
    const wanted = filter[field]
    const { $eq, $in } = isOperators(wanted) ? wanted : { $eq: wanted, $in: undefined }
    if (isFilterable($eq)) clauses.push({ field: ['value', field], eq: $eq })
    if (Array.isArray($in) && $in.length <= MAX_LIST && $in.every(isFilterable)) {
      clauses.push({ field: ['value', field], in: $in })
    }
  }
  return clauses
}

/** What is equal to itself after it was stored, and stored as it is. */
export function isFilterable(value: unknown): value is null | string | number | bigint | boolean {
  return value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value)
}

/** Refuses an unknown operator before anything is read: it would silently find nothing. */
export function checkFilter(filter: unknown): void {
  if (filter === undefined) return
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) {
    throw new InvalidOptionError('filter', 'must be an object', 'Pass fields and what they should hold.')
  }
  for (const [key, wanted] of Object.entries(filter)) {
    if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) continue
    const unknown = Object.keys(wanted).find((name) => name.startsWith('$') && !OPERATORS.includes(name))
    if (unknown !== undefined) {
      throw new InvalidOptionError(`filter.${key}`, `has the operator ${unknown}`, `Use ${OPERATORS.join(', ')}.`)
    }
  }
}

function fitsField(field: unknown, wanted: unknown): boolean {
  if (!isOperators(wanted)) return field === wanted
  return Object.entries(wanted).every(([operator, operand]) => {
    switch (operator) {
      case '$eq':
        return field === operand
      case '$ne':
        return field !== operand
      case '$gt':
        return Number(field) > Number(operand)
      case '$gte':
        return Number(field) >= Number(operand)
      case '$lt':
        return Number(field) < Number(operand)
      case '$lte':
        return Number(field) <= Number(operand)
      case '$in':
        return Array.isArray(operand) && operand.includes(field)
      default:
        return !Array.isArray(operand) || !operand.includes(field)
    }
  })
}

function isOperators(wanted: unknown): wanted is Record<string, unknown> {
  return typeof wanted === 'object' && wanted !== null && Object.keys(wanted).every((key) => OPERATORS.includes(key))
}
