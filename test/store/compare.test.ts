import { fieldAt, fieldToken, type Scalar } from '#src/codec/item-field.js'
import { compareUtf8 } from '#src/core/text-order.js'
import { compareValues, isEqual } from '#src/store/search/compare.js'
import { matches, parseFilter } from '#src/store/search/filter.js'
import { TopItems } from '#src/store/search/top-items.js'
import type { Value } from 'holdfast'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', 'a', '\uffff', '\u{10000}', '\ud800', '\udc00', '\ue000'),
)
const scalar: fc.Arbitrary<Scalar> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.double(),
  fc.constantFrom(0, -0, 1, Number.NaN),
  fc.bigInt(),
  text,
  fc.date({ noInvalidDate: true }),
)
const value: fc.Arbitrary<Value | undefined> = fc.oneof(
  { weight: 5, arbitrary: scalar },
  fc.constant(undefined),
  fc.array(scalar),
  fc.dictionary(text, scalar, { noNullPrototype: true }),
  fc.uint8Array(),
)
const settings = randomly(rounds(2000))

describe('the order of texts', () => {
  it('is that of their UTF-8 bytes', () => {
    const wellFormed = text.filter((each) => each.isWellFormed())
    fc.assert(
      fc.property(wellFormed, wellFormed, (a, b) => {
        expect(Math.sign(compareUtf8(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)))
      }),
      settings,
    )
  })
})

describe('the order of values', () => {
  it('is total: antisymmetric and transitive over everything that can be stored', () => {
    fc.assert(
      fc.property(value, value, value, (a, b, c) => {
        expect(Math.sign(compareValues(a, b)) + Math.sign(compareValues(b, a))).toBe(0)
        expect(compareValues(a, a)).toBe(0)
        if (compareValues(a, b) <= 0 && compareValues(b, c) <= 0) expect(compareValues(a, c)).toBeLessThanOrEqual(0)
      }),
      settings,
    )
  })

  it('agrees with equality, and equality with tokens', () => {
    fc.assert(
      fc.property(value, scalar, (a, b) => {
        const equal = isEqual(a, b)
        if (equal) expect(compareValues(a, b)).toBe(0)
        expect(isEqual(b as Value, b)).toBe(true)
        // A token may stand for more than one value, never for less: what is equal is always found.
        if (equal) expect(fieldToken('s', ['f'], a, undefined)).toBe(fieldToken('s', ['f'], b, undefined))
      }),
      settings,
    )
  })

  it('keeps the best of many, as sorting them all does', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ max: 1000 }), { maxLength: 500 }),
        fc.integer({ min: 1, max: 20 }),
        (numbers, count) => {
          const top = new TopItems<number>(count, (a, b) => a - b)
          for (const number of numbers) top.add(number)
          expect(top.take()).toEqual(numbers.toSorted((a, b) => a - b).slice(0, count))
        },
      ),
      settings,
    )
  })
})

describe('tokens', () => {
  it('differ by space, field, kind and value', () => {
    const values: (Value | undefined)[] = [
      undefined,
      null,
      false,
      true,
      0,
      1,
      '',
      '0',
      0n,
      1n,
      new Date(0),
      new Date(1),
      [],
      'missing',
      'null',
    ]
    const tokens = ['s', 't'].flatMap((space) =>
      [['f'], ['g'], ['f', 'g']].flatMap((path) => values.map((each) => fieldToken(space, path, each, undefined))),
    )
    expect(new Set(tokens).size).toBe(tokens.length)
    expect(fieldToken('s', ['f'], {}, undefined)).toBe(fieldToken('s', ['f'], [1], undefined))
  })
})

describe('fields', () => {
  it('are own properties of plain objects, never those of a prototype, an array, text or bytes', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'length', '0', 'getTime', 'byteLength']) {
      for (const holder of [{}, [1], 'text', new Date(0), new Uint8Array(1), 5, null] as Value[])
        expect(fieldAt(holder, [name])).toBeUndefined()
    }
    expect(fieldAt(JSON.parse('{"__proto__": {"a": 1}}'), ['__proto__', 'a'])).toBe(1)
  })

  it('satisfy a filter for exactly their own value', () => {
    fc.assert(
      fc.property(text, scalar, fc.oneof(scalar, fc.constant(undefined)), (name, wanted, other) => {
        fc.pre(!['__proto__', 'constructor', 'prototype'].includes(name) && name.length < 1000)
        const record = { [name]: wanted } as Value
        expect(matches(record, parseFilter([{ field: [name], eq: wanted }]))).toBe(true)
        expect(matches(record, parseFilter([{ field: [name], ne: wanted }]))).toBe(false)
        const rest = (other === undefined ? {} : { [name]: other }) as Value
        expect(matches(rest, parseFilter([{ field: [name], in: [wanted] }]))).toBe(isEqual(other, wanted))
        expect(matches(rest, parseFilter([{ field: [name], nin: [wanted] }]))).toBe(!isEqual(other, wanted))
      }),
      settings,
    )
  })
})
