import { InvalidOptionError } from 'holdfast'

const OPERATORS = ['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin']

/** Whether the fields of a value fit a filter, as LangGraph's own stores decide it. Own properties only. */
export function fits(value: Record<string, unknown>, filter: Record<string, unknown>): boolean {
  return Object.keys(filter).every((key) => fitsField(Object.hasOwn(value, key) ? value[key] : undefined, filter[key]))
}

/** Refuses an operator that nothing knows, before anything is read: it would silently find nothing. */
export function checkFilter(filter: unknown): void {
  if (filter === undefined) return
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) {
    throw new InvalidOptionError('filter', 'is no object', 'Pass fields and what they should hold.')
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
