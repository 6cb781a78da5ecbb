import { Buffer } from 'node:buffer'
import type { Value } from '#src/codec/value.js'
import fc from 'fast-check'

/** Keys that have undone other stores: special to JavaScript, to JSON, or to neither. */
export const ODD_KEYS = [
  '',
  '__proto__',
  'constructor',
  'prototype',
  'toJSON',
  'toString',
  'valueOf',
  'hasOwnProperty',
  '__defineGetter__',
  'then',
  'length',
  '0',
  '1',
  '-1',
  '01',
  '1.5',
  '4294967294',
  '4294967295',
  'NaN',
  'null',
  'a.b',
  '$ref',
  '\u0000',
  '\u2028',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '"',
  '\\',
  '~',
  'é',
  'e\u0301',
]

const MAX_TIME = 8_640_000_000_000_000

export const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.string({ unit: fc.integer({ min: 0, max: 0x1f }).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom('', '-0', 'NaN', '2020-01-01T00:00:00.000Z', '[]', '\ud83d\ude00', '\ude00\ud83d', '\u0000'),
)

export const anyKey: fc.Arbitrary<string> = fc.oneof(anyText, fc.constantFrom(...ODD_KEYS))

const anyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(
    0,
    -0,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    5e-324,
    1.7976931348623157e308,
  ),
)

const anyLeaf: fc.Arbitrary<Value> = fc.oneof(
  { weight: 3, arbitrary: anyText },
  { weight: 3, arbitrary: anyNumber },
  fc.boolean(),
  fc.constant(null),
  fc.bigInt(),
  fc.bigInt({ min: -(2n ** 300n), max: 2n ** 300n }),
  fc.date({ noInvalidDate: true }),
  fc.constantFrom(MAX_TIME, -MAX_TIME, 0, -1, -62_198_755_200_000, 253_402_300_800_000).map((time) => new Date(time)),
  fc.uint8Array({ maxLength: 40 }),
)

/** Anything that can be stored, of any shape. */
export const anyValue: fc.Arbitrary<Value> = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 4, arbitrary: anyLeaf },
    { weight: 2, arbitrary: fc.array(tie('value'), { maxLength: 6 }) },
    { weight: 3, arbitrary: recordOf(tie('value')) },
  ),
})).value

function recordOf(value: fc.Arbitrary<Value>): fc.Arbitrary<Record<string, Value>> {
  return fc.array(fc.tuple(anyKey, value), { maxLength: 6 }).map((entries) => Object.fromEntries(entries))
}

/** A value inside `depth` containers, the innermost of which is empty. */
export function nested(depth: number, form: 'array' | 'object' = 'array'): Value {
  let value: Value = form === 'array' ? [] : {}
  for (let i = 1; i < depth; i++) value = form === 'array' ? [value] : { a: value }
  return value
}

export function bytesOf(json: unknown): Uint8Array {
  return Buffer.from(typeof json === 'string' ? json : JSON.stringify(json))
}

/** Every object in a value, to see that two values share none. */
export function containersOf(value: unknown, found = new Set<object>()): Set<object> {
  if (typeof value !== 'object' || value === null || found.has(value)) return found
  found.add(value)
  if (value instanceof Uint8Array) found.add(value.buffer)
  else for (const key of Reflect.ownKeys(value)) containersOf((value as Record<PropertyKey, unknown>)[key], found)
  return found
}

/** The keys of every object in a value, in their order: what deep equality does not look at. */
export function keyOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(keyOrder)
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array) return null
  return Object.keys(value).map((key) => [key, keyOrder((value as Record<string, unknown>)[key])])
}

export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array) && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const key of Reflect.ownKeys(value)) deepFreeze((value as Record<PropertyKey, unknown>)[key])
  }
  return value
}

const PROTOTYPES = [Object.prototype, Array.prototype, Date.prototype, Uint8Array.prototype, String.prototype]
const PRISTINE = PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype).length)

/** Throws if a prototype has gained or lost a property since this file was loaded. */
export function assertPristine(): void {
  for (const [i, prototype] of PROTOTYPES.entries()) {
    if (Reflect.ownKeys(prototype).length !== PRISTINE[i]) throw new Error('A prototype was polluted.')
  }
}
