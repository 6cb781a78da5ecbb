import { type FieldPath, fieldAt, isScalar, type Scalar } from '../../codec/item-field.js'
import type { Value } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'
import { compareValues, isEqual, kindOf } from './compare.js'
import { checkName, type FieldInput, parseField } from './field.js'

/** Conditions on a field. All that are given must hold. Types never mix: 1 is neither '1' nor 1n. */
export interface Operators {
  readonly eq?: Scalar
  /** The opposite of `eq`: also true where the field is missing. */
  readonly ne?: Scalar
  readonly gt?: Comparable
  readonly gte?: Comparable
  readonly lt?: Comparable
  readonly lte?: Comparable
  readonly in?: readonly Scalar[]
  /** The opposite of `in`: also true where the field is missing. */
  readonly nin?: readonly Scalar[]
  readonly exists?: boolean
  /** True for an array that contains such an item. */
  readonly contains?: Scalar
}

type Comparable = number | bigint | string | Date

/** `{ city: 'Paris', age: { gte: 18 } }`, or a list of clauses for fields that are nested or have odd names. */
export type Filter = Readonly<Record<string, Scalar | Operators>> | readonly Clause[]

/** Conditions on one field, for fields that are nested or have odd names. */
export interface Clause extends Operators {
  readonly field: FieldInput
}

/** A filter that has been checked. */
export interface Condition {
  readonly path: FieldPath
  readonly operator: keyof Operators
  readonly operand: unknown
}

type Check = (operand: unknown) => boolean

const MAX_CLAUSES = 100
const MAX_LIST = 1000

const isList: Check = (operand) => Array.isArray(operand) && operand.length <= MAX_LIST && operand.every(isOperand)
const OPERANDS: Readonly<Record<keyof Operators, readonly [Check, string]>> = {
  eq: [isOperand, 'a text, number, bigint, boolean, Date or null'],
  ne: [isOperand, 'a text, number, bigint, boolean, Date or null'],
  gt: [isComparable, 'a text, number, bigint or Date'],
  gte: [isComparable, 'a text, number, bigint or Date'],
  lt: [isComparable, 'a text, number, bigint or Date'],
  lte: [isComparable, 'a text, number, bigint or Date'],
  in: [isList, `a list of at most ${MAX_LIST} texts, numbers, bigints, booleans, Dates or nulls`],
  nin: [isList, `a list of at most ${MAX_LIST} texts, numbers, bigints, booleans, Dates or nulls`],
  exists: [(operand) => typeof operand === 'boolean', 'true or false'],
  contains: [isOperand, 'a text, number, bigint, boolean, Date or null'],
}

/** Checks a filter, which often comes from outside, and parses it. */
export function parseFilter(filter: unknown): readonly Condition[] {
  if (filter === undefined) return []
  const conditions = Array.isArray(filter) ? filter.flatMap(parseClause) : parseRecord(filter)
  if (conditions.length > MAX_CLAUSES)
    throw invalid('filter', `has more than ${MAX_CLAUSES} conditions`, 'Ask for less at once.')
  return conditions
}

/** Whether a value meets all conditions. */
export function matches(value: Value, conditions: readonly Condition[]): boolean {
  return conditions.every(({ path, operator, operand }) => holds(operator, fieldAt(value, path), operand))
}

/** For conditions that ask for one of several values: the field and those values. */
export function exactValues({
  path,
  operator,
  operand,
}: Condition): readonly [FieldPath, readonly Scalar[]] | undefined {
  if (operator === 'eq') return [path, [operand as Scalar]]
  return operator === 'in' ? [path, operand as readonly Scalar[]] : undefined
}

function holds(operator: keyof Operators, value: Value | undefined, operand: unknown): boolean {
  switch (operator) {
    case 'eq':
      return isEqual(value, operand as Scalar)
    case 'ne':
      return !isEqual(value, operand as Scalar)
    case 'in':
      return (operand as readonly Scalar[]).some((one) => isEqual(value, one))
    case 'nin':
      return !(operand as readonly Scalar[]).some((one) => isEqual(value, one))
    case 'exists':
      return (value !== undefined) === operand
    case 'contains':
      return Array.isArray(value) && value.some((item: Value) => isEqual(item, operand as Scalar))
    default:
      return isInRange(operator, value, operand as Comparable)
  }
}

function isInRange(operator: 'gt' | 'gte' | 'lt' | 'lte', value: Value | undefined, bound: Comparable): boolean {
  if (kindOf(value) !== kindOf(bound) || Number.isNaN(value)) return false
  const order = compareValues(value, bound)
  if (operator === 'gt') return order > 0
  if (operator === 'gte') return order >= 0
  return operator === 'lt' ? order < 0 : order <= 0
}

function parseRecord(filter: unknown): readonly Condition[] {
  if (!isPlainRecord(filter)) {
    throw invalid('filter', 'must be a plain object or a list', "Pass conditions such as { city: 'Paris' }.")
  }
  return Object.keys(filter).flatMap((name) => {
    checkName(name)
    // Otherwise Mongo-style operators would silently ask for a field of that name.
    if (name.startsWith('$')) {
      throw invalid(
        `filter.${name}`,
        'is a reserved name',
        "For a field of that name, use a clause: [{ field: ['$name'], eq: … }].",
      )
    }
    return parseCondition([name], filter[name], name)
  })
}

function parseClause(clause: unknown): readonly Condition[] {
  if (!isPlainRecord(clause))
    throw invalid('filter', 'holds something that is not a clause', "Use clauses such as { field: ['a', 'b'], eq: 1 }.")
  const { field, ...operators } = clause
  const path = parseField('filter.field', field)
  return parseCondition(path, operators, path.join('.'))
}

function parseCondition(path: FieldPath, condition: unknown, name: string): readonly Condition[] {
  if (isScalar(condition)) return [checkedCondition(path, 'eq', condition, name)]
  if (!isPlainRecord(condition) || Object.keys(condition).length === 0) {
    throw invalid(
      `filter.${name}`,
      'is not a condition',
      `Use a value, or operators: ${Object.keys(OPERANDS).join(', ')}.`,
    )
  }
  return Object.keys(condition).map((operator) => checkedCondition(path, operator, condition[operator], name))
}

function checkedCondition(path: FieldPath, operator: string, operand: unknown, name: string): Condition {
  if (!Object.hasOwn(OPERANDS, operator)) {
    throw invalid(
      `filter.${name}`,
      `has the unknown operator "${operator.slice(0, 100)}"`,
      `Use ${Object.keys(OPERANDS).join(', ')}.`,
    )
  }
  const known = operator as keyof Operators
  const [check, wanted] = OPERANDS[known]
  if (!check(operand)) throw invalid(`filter.${name}.${operator}`, `must be ${wanted}`, 'Correct the operand.')
  return { path, operator: known, operand: Array.isArray(operand) ? [...operand] : operand }
}

function isOperand(operand: unknown): boolean {
  return isScalar(operand) && !(operand instanceof Date && Number.isNaN(operand.getTime()))
}

function isComparable(operand: unknown): boolean {
  return isOperand(operand) && operand !== null && typeof operand !== 'boolean' && !Number.isNaN(operand)
}

// A filter with its own prototype, as `{ __proto__: … }` creates, hides what it asks for.
function isPlainRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function invalid(field: string, problem: string, remedy: string): InvalidOptionError {
  return new InvalidOptionError(field, problem, remedy)
}
