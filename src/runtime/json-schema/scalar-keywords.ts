import type { Value } from '../../codec/value.js'
import { fail, type Found, type Look } from './findings.js'
import { hasFormat } from './format.js'
import type { SchemaObject } from './references.js'
import { describeValue, showJson } from './value-kind.js'

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
