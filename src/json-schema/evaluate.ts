import type { Value } from '../codec/value.js'
import { InvalidValueError } from '../core/errors.js'
import { checkArray, checkNumber, checkObject, checkText } from './scalar-keywords.js'
import {
  deepest,
  describeValue,
  fail,
  type Found,
  isFit,
  kindOf,
  type Look,
  merge,
  sameJson,
  showJson,
} from './findings.js'
import type { Patterns } from './pattern.js'
import { isSchemaObject, type References, referencesOf, type SchemaObject } from './references.js'

/** Less than a second of work: enough for an answer of megabytes, and a limit for schemas that multiply themselves. */
const MAX_WORK = 500_000
const MAX_DEPTH = 1500

/** One look at one value. The schema is interpreted and never turned into code. */
export class Evaluation implements Look {
  readonly #references: References
  readonly #patterns: Patterns
  #work = 0
  #depth = 0

  constructor(references: References, patterns: Patterns) {
    this.#references = references
    this.#patterns = patterns
  }

  apply(schema: Value | undefined, value: Value, path: string): Found {
    const found: Found = { problems: [], items: 0 }
    this.spend(1, path)
    if (schema === false) fail(found, path, 'is not allowed here')
    if (!isSchemaObject(schema)) return found
    if (++this.#depth > MAX_DEPTH) throw tooMuch(path, `goes deeper than ${MAX_DEPTH} schemas`)
    try {
      this.#inPlace(schema, value, path, found)
      this.#ownKeywords(schema, value, path, found)
    } finally {
      this.#depth--
    }
    return found
  }

  /** Counts work against the limit. */
  spend(units: number, path: string): void {
    this.#work += units
    if (this.#work > MAX_WORK) throw tooMuch(path, `takes more than ${MAX_WORK} steps`)
  }

  /** Whether a pattern is found in a text; undefined if that can't be determined in time. */
  find(pattern: string, text: string, path: string): boolean | undefined {
    const compiled = this.#patterns.get(pattern)
    this.spend(1 + Math.ceil((text.length * compiled.weight) / 50), path)
    return compiled.find(text)
  }

  #inPlace(schema: SchemaObject, value: Value, path: string, found: Found): void {
    for (const reference of referencesOf(schema)) {
      const target = this.#references.resolve(schema, reference)
      if (target === undefined) fail(found, path, `is described by ${showJson(reference)}, which the schema lacks`)
      else merge(found, this.apply(target, value, path))
    }
    const { allOf, anyOf, oneOf, not } = schema
    if (Array.isArray(allOf)) for (const one of allOf) merge(found, this.apply(one as Value, value, path))
    if (Array.isArray(anyOf)) {
      const tried = anyOf.map((one) => this.apply(one as Value, value, path))
      for (const one of tried) if (isFit(one)) merge(found, one)
      if (!tried.some(isFit)) reportNearest(found, tried, path, 'fits none of the schemas it may fit')
    }
    if (Array.isArray(oneOf)) {
      const tried = oneOf.map((one) => this.apply(one as Value, value, path))
      const fitting = tried.filter(isFit)
      if (fitting.length === 1) merge(found, fitting[0] as Found)
      else if (fitting.length === 0) reportNearest(found, tried, path, 'fits none of the schemas it must fit one of')
      else fail(found, path, `fits ${fitting.length} schemas where it must fit one`)
    }
    if (not !== undefined && isFit(this.apply(not, value, path)))
      fail(found, path, 'fits a schema that it must not fit')
    if (schema['if'] !== undefined) {
      const tested = this.apply(schema['if'], value, path)
      if (isFit(tested)) merge(found, tested)
      merge(found, this.apply(schema[isFit(tested) ? 'then' : 'else'], value, path))
    }
  }

  #ownKeywords(schema: SchemaObject, value: Value, path: string, found: Found): void {
    const kind = kindOf(value)
    if (kind === 'other') {
      // JSON Schema would not see that a Date is not an object, and NaN is below every maximum.
      if (Object.keys(schema).some((keyword) => !SAYS_NOTHING.has(keyword))) {
        fail(found, path, `is ${describeValue(value)}, which JSON can't express`)
      }
      return
    }
    const { type, enum: choices, const: only } = schema
    const types = typeof type === 'string' ? [type] : Array.isArray(type) ? (type as readonly Value[]) : undefined
    if (types && !types.some((one) => one === kind || (one === 'integer' && Number.isInteger(value)))) {
      fail(found, path, `must be of type ${types.join(' or ')}, not ${describeValue(value)}`)
    }
    if (Array.isArray(choices) && !choices.some((one) => sameJson(one as Value, value))) {
      fail(found, path, `must be one of ${showJson(choices as Value)}, not ${describeValue(value)}`)
    }
    if (only !== undefined && !sameJson(only, value)) {
      fail(found, path, `must be ${showJson(only)}, not ${describeValue(value)}`)
    }
    if (typeof value === 'number') checkNumber(schema, value, path, found)
    else if (typeof value === 'string') checkText(this, schema, value, path, found)
    else if (Array.isArray(value)) checkArray(this, schema, value as readonly Value[], path, found)
    else if (kind === 'object') checkObject(this, schema, value as SchemaObject, path, found)
  }
}

/** Keywords that ask nothing of a value by themselves. */
const SAYS_NOTHING = new Set([
  ...['$ref', '$dynamicRef', '$recursiveRef', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else'],
  ...['$schema', '$id', '$anchor', '$dynamicAnchor', '$recursiveAnchor', '$defs', 'definitions', '$comment'],
  ...['title', 'description', 'default', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
])

/** Of several schemas, the one whose problem lies deepest was probably meant. */
function reportNearest(found: Found, tried: readonly Found[], path: string, otherwise: string): void {
  const problems = tried.flatMap((one) => one.problems).filter((problem) => problem.path.length > path.length)
  if (problems.length === 0) fail(found, path, otherwise)
  else found.problems.push(deepest(problems))
}

function tooMuch(path: string, what: string): InvalidValueError {
  return new InvalidValueError(path, `can't be checked: that ${what}`, 'Send a shorter value, or simplify the schema.')
}
