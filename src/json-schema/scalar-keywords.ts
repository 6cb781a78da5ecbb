import type { Value } from '../codec/value.js'
import {
  describeValue,
  fail,
  type Found,
  isFit,
  kindOf,
  type Look,
  merge,
  showJson,
  spokeOf,
  spokeOfItem,
  take,
} from './findings.js'
import { hasFormat } from './format.js'
import { isSchemaObject, type SchemaObject } from './references.js'

export function checkNumber(schema: SchemaObject, value: number, path: string, found: Found): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema
  const refuse = (rule: string, limit: Value) => fail(found, path, `must be ${rule} ${String(limit)}, not ${value}`)
  // Draft 4 says with `true` that the limit itself is out.
  const above = exclusiveMinimum === true ? minimum : exclusiveMinimum
  const below = exclusiveMaximum === true ? maximum : exclusiveMaximum
  if (typeof minimum === 'number' && !(value >= minimum)) refuse('at least', minimum)
  if (typeof maximum === 'number' && !(value <= maximum)) refuse('at most', maximum)
  if (typeof above === 'number' && !(value > above)) refuse('above', above)
  if (typeof below === 'number' && !(value < below)) refuse('below', below)
  if (typeof multipleOf === 'number' && !isMultiple(value, multipleOf)) refuse('a multiple of', multipleOf)
}

/** 19.99 is a multiple of 0.01, though not to the last bit. */
function isMultiple(value: number, of: number): boolean {
  if (!(of > 0)) return false
  if (Number.isInteger(value) && Number.isInteger(of)) return value % of === 0
  const times = value / of
  if (!Number.isFinite(times)) return Number.isInteger(value) && Number.isInteger(1 / of)
  return Math.abs(times - Math.round(times)) <= Math.abs(times) * Number.EPSILON * 2
}

export function checkText(check: Look, schema: SchemaObject, text: string, path: string, found: Found): void {
  const { minLength, maxLength, pattern, format } = schema
  if (typeof minLength === 'number' || typeof maxLength === 'number') {
    const length = lengthOf(text, Math.max(Number(minLength ?? 0), Number(maxLength ?? 0)))
    if (typeof minLength === 'number' && length < minLength) {
      fail(found, path, `must have at least ${minLength} characters, not ${length}`)
    }
    if (typeof maxLength === 'number' && length > maxLength) {
      fail(found, path, `must have at most ${maxLength} characters, not ${text.length}`)
    }
  }
  if (typeof pattern === 'string') {
    const isFound = check.find(pattern, text, path)
    if (isFound === undefined) fail(found, path, `can't be compared with the pattern ${showJson(pattern)} in time`)
    else if (!isFound) fail(found, path, `must fit the pattern ${showJson(pattern)}, unlike ${describeValue(text)}`)
  }
  if (typeof format === 'string') {
    check.spend(Math.ceil(text.length / 100), path)
    if (!hasFormat(format, text)) fail(found, path, `must be in the format "${format}", unlike ${describeValue(text)}`)
  }
}

/** In characters as people count them, not in units of UTF-16; exact only where it is near the limit. */
function lengthOf(text: string, limit: number): number {
  if (text.length > limit * 2) return text.length
  let length = text.length
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      length--
      i++
    }
  }
  return length
}

type List = readonly Value[]

export function checkArray(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { minItems, maxItems, uniqueItems } = schema
  if (typeof minItems === 'number' && list.length < minItems) {
    fail(found, path, `must have at least ${minItems} items, not ${list.length}`)
  }
  if (typeof maxItems === 'number' && list.length > maxItems) {
    fail(found, path, `must have at most ${maxItems} items, not ${list.length}`)
  }
  checkItems(check, schema, list, path, found)
  checkContained(check, schema, list, path, found)
  if (uniqueItems === true) {
    const seen = new Set<string>()
    for (const [i, item] of list.entries()) {
      const name = canonical(item)
      check.spend(Math.ceil(name.length / 100), path)
      if (seen.has(name)) fail(found, `${path}[${i}]`, 'appears twice')
      seen.add(name)
    }
  }
  const { unevaluatedItems } = schema
  if (unevaluatedItems === undefined) return
  for (const [i, item] of list.entries()) {
    if (i < found.items || found.contained?.has(i)) continue
    take(found, check.apply(unevaluatedItems, item, `${path}[${i}]`))
  }
  found.items = Number.POSITIVE_INFINITY
}

/** `prefixItems` and `items`; before 2020 these were a list in `items`, and `additionalItems`. */
function checkItems(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { items } = schema
  const isOld = Array.isArray(items)
  const first = isOld ? (items as List) : Array.isArray(schema['prefixItems']) ? (schema['prefixItems'] as List) : []
  const rest = isOld ? schema['additionalItems'] : items
  for (const [i, item] of list.entries()) {
    const own = i < first.length ? first[i] : rest
    if (own === undefined) break
    take(found, check.apply(own, item, `${path}[${i}]`))
  }
  found.items = Math.max(found.items, rest === undefined ? first.length : Number.POSITIVE_INFINITY)
}

function checkContained(check: Look, schema: SchemaObject, list: List, path: string, found: Found): void {
  const { contains } = schema
  if (contains === undefined) return
  const least = typeof schema['minContains'] === 'number' ? schema['minContains'] : 1
  const most = typeof schema['maxContains'] === 'number' ? schema['maxContains'] : Number.POSITIVE_INFINITY
  let count = 0
  for (const [i, item] of list.entries()) {
    if (!isFit(check.apply(contains, item, `${path}[${i}]`))) continue
    count++
    spokeOfItem(found, i)
  }
  if (count < least) fail(found, path, `must hold at least ${least} items of a kind, not ${count}`)
  if (count > most) fail(found, path, `must hold at most ${most} items of a kind, not ${count}`)
}

/** A text that is the same for values that are the same to JSON. */
function canonical(value: Value): string {
  const kind = kindOf(value)
  if (kind === 'array') return `[${(value as List).map(canonical).join()}]`
  if (kind !== 'object') return kind === 'other' ? `${typeof value}:${String(value)}` : JSON.stringify(value)
  const names = Object.keys(value as object).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical((value as SchemaObject)[name] as Value)}`).join()}}`
}

export function checkObject(check: Look, schema: SchemaObject, value: SchemaObject, path: string, found: Found): void {
  const names = Object.keys(value)
  const { minProperties, maxProperties, required, propertyNames } = schema
  if (typeof minProperties === 'number' && names.length < minProperties) {
    fail(found, path, `must have at least ${minProperties} properties, not ${names.length}`)
  }
  if (typeof maxProperties === 'number' && names.length > maxProperties) {
    fail(found, path, `must have at most ${maxProperties} properties, not ${names.length}`)
  }
  for (const name of Array.isArray(required) ? (required as readonly string[]) : []) {
    if (!Object.hasOwn(value, name)) fail(found, path, `lacks the property ${showJson(name)}`)
  }
  if (propertyNames !== undefined) {
    for (const name of names) {
      const { problems } = check.apply(propertyNames, name, path)
      if (problems[0]) fail(found, path, `has a property ${showJson(name)}, whose name ${problems[0].message}`)
    }
  }
  checkProperties(check, schema, value, names, path, found)
  checkDependencies(check, schema, value, path, found)
  const { unevaluatedProperties } = schema
  if (unevaluatedProperties === undefined) return
  for (const name of names) {
    if (found.names?.has(name)) continue
    refuseOrTake(check, unevaluatedProperties, value, name, path, found)
    spokeOf(found, name)
  }
}

function checkProperties(
  check: Look,
  schema: SchemaObject,
  value: SchemaObject,
  names: readonly string[],
  path: string,
  found: Found,
): void {
  const properties = isSchemaObject(schema['properties']) ? schema['properties'] : {}
  const patterns = Object.entries(isSchemaObject(schema['patternProperties']) ? schema['patternProperties'] : {})
  const { additionalProperties } = schema
  for (const name of names) {
    const at = join(path, name)
    let isKnown = false
    if (Object.hasOwn(properties, name)) {
      isKnown = true
      take(found, check.apply(properties[name], value[name] as Value, at))
    }
    for (const [pattern, own] of patterns) {
      const isFound = check.find(pattern, name, path)
      if (isFound === undefined) fail(found, at, `can't be compared with the pattern ${showJson(pattern)} in time`)
      if (!isFound) continue
      isKnown = true
      take(found, check.apply(own, value[name] as Value, at))
    }
    if (isKnown) spokeOf(found, name)
    else if (additionalProperties !== undefined) {
      refuseOrTake(check, additionalProperties, value, name, path, found)
      spokeOf(found, name)
    }
  }
}

/** `false` for what else there is means that there must be nothing else. */
function refuseOrTake(check: Look, schema: Value, value: SchemaObject, name: string, path: string, found: Found): void {
  if (schema === false) fail(found, join(path, name), 'is not a known property')
  else take(found, check.apply(schema, value[name] as Value, join(path, name)))
}

function checkDependencies(check: Look, schema: SchemaObject, value: SchemaObject, path: string, found: Found) {
  for (const keyword of ['dependentRequired', 'dependentSchemas', 'dependencies'] as const) {
    const dependencies = schema[keyword]
    if (!isSchemaObject(dependencies)) continue
    for (const [name, own] of Object.entries(dependencies)) {
      if (!Object.hasOwn(value, name)) continue
      if (!Array.isArray(own)) merge(found, check.apply(own, value, path))
      else {
        for (const other of own as readonly string[]) {
          if (Object.hasOwn(value, other)) continue
          fail(found, path, `has ${showJson(name)} and lacks the property ${showJson(other)}, which goes with it`)
        }
      }
    }
  }
}

/** A path for messages. */
function join(path: string, name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`
}
