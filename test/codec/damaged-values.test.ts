import assert from 'node:assert/strict'
import { decodeValue, parseJson } from '#src/codec/decode/decode.js'
import { parseEscapedKeys } from '#src/codec/decode/escaped-keys.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue } from '#src/codec/value.js'
import { isHoldfastError } from '#src/core/errors.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyValue, assertPristine, bytesOf, ODD_KEYS } from './values.js'

function decodesOrIsCorrupt(bytes: Uint8Array): void {
  try {
    decodeValue(bytes, DEFAULT_LIMITS)
  } catch (error) {
    assert(isHoldfastError(error, 'corrupt'), error as Error)
  }
  assertPristine()
}

const MALFORMED: readonly (readonly [name: string, bytes: string | Uint8Array])[] = [
  ['nothing', ''],
  ['text that is no JSON', 'hello'],
  ['truncated JSON', '[{"a":1'],
  ['JSON with something after it', '[1]x'],
  ['a byte order mark', '\ufeff[1]'],
  ['invalid UTF-8', new Uint8Array([0x5b, 0x22, 0xff, 0x22, 0x5d])],
  ['overlong UTF-8', new Uint8Array([0x5b, 0x22, 0xc0, 0x80, 0x22, 0x5d])],
  ['a surrogate in UTF-8', new Uint8Array([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d])],
  ['truncated UTF-8', new Uint8Array([0x5b, 0x22, 0xe2, 0x82, 0x22, 0x5d])],
  ['a raw control character', '["\u0001"]'],
  ['a value without its envelope', '{"a":1}'],
  ['an empty envelope', '[]'],
  ['an envelope with a third part', '[1,[],2]'],
  ['types that are no list', '[1,{}]'],
  ['types that are null', '[1,null]'],
  ['a type that is no list', '["x",["date"]]'],
  ['a type without a name', '["x",[[]]]'],
  ['an unknown type', '["x",[["Map"]]]'],
  ['a type named like a property of all objects', '["x",[["constructor"]]]'],
  ['a type that is a number', '["x",[[0]]]'],
  ['a path with a negative number', '[["x"],[["date",-1]]]'],
  ['a path with a fraction', '[["x"],[["date",0.5]]]'],
  ['a path with null', '[["x"],[["date",null]]]'],
  ['a path with an object', '[["x"],[["date",{}]]]'],
  ['a path to no property', '[{"a":"x"},[["date","b"]]]'],
  ['a path to no item', '[["x"],[["date",1]]]'],
  ['a path through text', '["x",[["date",0]]]'],
  ['a path through text by its length', '["x",[["number","length"]]]'],
  ['a path to the length of a list', '[["x"],[["date","length"]]]'],
  ['a path to an item by a text', '[["NaN"],[["number","0"]]]'],
  ['a path to a property by a number', '[{"0":"NaN"},[["number",0]]]'],
  ['a path through null', '[{"a":null},[["date","a","b"]]]'],
  ['a path into the prototype', '[{},[["date","__proto__"]]]'],
  ['a path through the prototype', '[{},[["date","__proto__","x"]]]'],
  ['a path through the constructor', '[{},[["date","constructor","name"]]]'],
  ['a path into the prototype of a list', '[[],[["number","__proto__","x"]]]'],
  ['a type on a number', '[1,[["date"]]]'],
  ['a type on an object', '[{},[["bytes"]]]'],
  ['a type on null', '[null,[["bigint"]]]'],
  ['a type repeated', '["ff",[["bigint"],["bigint"]]]'],
  ['a second type on the same value', '["1970-01-01T00:00:00.000Z",[["date"],["number"]]]'],
  ['a path into a date', '[["1970-01-01T00:00:00.000Z"],[["date",0],["number",0,"x"]]]'],
  ['a path into bytes', '[["AQ=="],[["bytes",0],["number",0,"0"]]]'],
  ['a date that is none', '["soon",[["date"]]]'],
  ['a date in another form', '["1970-01-01",[["date"]]]'],
  ['a date that does not exist', '["2023-02-30T00:00:00.000Z",[["date"]]]'],
  ['a date beyond the end of time', '["+275760-09-13T00:00:00.001Z",[["date"]]]'],
  ['a bigint that is none', '["0x1",[["bigint"]]]'],
  ['an empty bigint', '["",[["bigint"]]]'],
  ['a bigint with a leading zero', '["00",[["bigint"]]]'],
  ['a bigint that is minus zero', '["-0",[["bigint"]]]'],
  ['a bigint in capitals', '["FF",[["bigint"]]]'],
  ['a bigint with spaces', '[" 1",[["bigint"]]]'],
  ['a number that JSON has', '["1",[["number"]]]'],
  ['a number that is none', '["nan",[["number"]]]'],
  ['bytes in another alphabet', '["_w==",[["bytes"]]]'],
  ['bytes without padding', '["AQ",[["bytes"]]]'],
  ['bytes with stray bits', '["AR==",[["bytes"]]]'],
  ['bytes with spaces', '["AQ ==",[["bytes"]]]'],
  ['a blob where there is none', '["0",[["json-blob"]]]'],
  ['a text blob where there is none', '["0",[["text-blob"]]]'],
  ['a bytes blob where there is none', '["0",[["bytes-blob"]]]'],
]

describe('stored bytes that nobody wrote are corrupt', () => {
  it.each(MALFORMED)('%s', (_, bytes) => {
    assert.throws(
      () => decodeValue(typeof bytes === 'string' ? bytesOf(bytes) : bytes, DEFAULT_LIMITS),
      (error) => isHoldfastError(error, 'corrupt') && error.remedy.length > 0,
    )
    assertPristine()
  })

  it.each([
    ['a number that is no number', '"x"'],
    ['a number behind the end', '"7"'],
    ['a negative number', '"-1"'],
    ['a fraction', '"0.5"'],
    ['a huge number', '"99999999999999999999"'],
    ['a property of the list', '"length"'],
  ])('a blob by %s', (_, wire) => {
    const blobs = {
      get(number: number): Uint8Array {
        if (number !== 0) throw new (class extends Error {})('asked for a blob that is not listed')
        return bytesOf('[1]')
      },
    }
    for (const type of ['json-blob', 'text-blob', 'bytes-blob']) {
      const bytes = bytesOf(`[${wire},[["${type}"]]]`)
      if (wire === '"7"') assert.throws(() => decodeValue(bytes, DEFAULT_LIMITS, blobs), /not listed/)
      else
        assert.throws(
          () => decodeValue(bytes, DEFAULT_LIMITS, blobs),
          (error) => isHoldfastError(error, 'corrupt'),
        )
    }
  })

  it('a blob whose content is not what its type says', () => {
    const decode = (type: string, content: Uint8Array) =>
      decodeValue(bytesOf(`["0",[["${type}"]]]`), DEFAULT_LIMITS, { get: () => content })
    assert.equal(decode('text-blob', bytesOf('abc')), 'abc')
    assert.throws(
      () => decode('text-blob', new Uint8Array([0xff])),
      (error) => isHoldfastError(error, 'corrupt'),
    )
    assert.throws(
      () => decode('json-blob', bytesOf('{')),
      (error) => isHoldfastError(error, 'corrupt'),
    )
    assert.throws(
      () => decode('json-blob', bytesOf('["0",[["json-blob"]]]')),
      (error) => isHoldfastError(error, 'corrupt'),
    )
  })
})

describe('whatever the bytes are, decoding returns a value or CorruptError', () => {
  it('random bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), decodesOrIsCorrupt), randomly(rounds(2000)))
  })

  it('random JSON', () => {
    const part = fc.oneof(
      fc.constantFrom('date', 'bigint', 'bytes', 'number', 'json-blob', 'text-blob', ...ODD_KEYS),
      fc.nat(3),
      fc.jsonValue(),
    )
    fc.assert(
      fc.property(fc.jsonValue(), fc.array(fc.array(part, { maxLength: 4 }), { maxLength: 4 }), (value, types) => {
        decodesOrIsCorrupt(bytesOf([value, types]))
      }),
      randomly(rounds(2000)),
    )
  })

  it('hostile types on hostile keys', () => {
    const key = fc.constantFrom(...ODD_KEYS)
    const type = fc.constantFrom('date', 'bigint', 'bytes', 'number')
    const wire = fc.constantFrom('1970-01-01T00:00:00.000Z', 'ff', 'AQ==', 'NaN', 'x')
    fc.assert(
      fc.property(key, key, type, wire, (outer, inner, name, text) => {
        const value = Object.fromEntries([[outer, Object.fromEntries([[inner, text]])]])
        decodesOrIsCorrupt(bytesOf([value, [[name, outer, inner]]]))
        decodesOrIsCorrupt(bytesOf([{}, [[name, outer, inner]]]))
        decodesOrIsCorrupt(bytesOf([[], [[name, outer, inner]]]))
      }),
      randomly(rounds(2000)),
    )
  })

  it('valid bodies with bits flipped, cut, and spliced into each other', () => {
    const body = anyValue.map((value) => bytesOf(encodeValue(value, DEFAULT_LIMITS).json))
    fc.assert(
      fc.property(body, body, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 7 }), (a, b, at, other, bit) => {
        const flipped = a.slice()
        const position = at % flipped.length
        flipped[position] = (flipped[position] ?? 0) ^ (1 << bit)
        decodesOrIsCorrupt(flipped)
        decodesOrIsCorrupt(a.subarray(0, position))
        decodesOrIsCorrupt(Buffer.concat([a.subarray(0, position), b.subarray(other % b.length)]))
      }),
      randomly(rounds(2000)),
    )
  })

  it('numbers of a million digits, in time that grows no faster than they do', () => {
    const digits = 'f'.repeat(8 * 1024 * 1024)
    assert.equal(decodeValue(bytesOf([digits, [['bigint']]]), DEFAULT_LIMITS), (1n << BigInt(digits.length * 4)) - 1n)
  })

  it('the same errors and values, whether or not a key has an escape', () => {
    const plain = fc.jsonValue().map((value) => JSON.stringify([value]))
    const space = fc.constantFrom('', ' ', '\n\t', '\r ')
    fc.assert(
      fc.property(plain, fc.nat(), fc.nat(255), space, (json, at, unit, gap) => {
        const position = at % json.length
        const changes = [
          json,
          `${json.slice(0, position)}${String.fromCharCode(unit)}${json.slice(position + 1)}`,
          json.slice(0, position),
        ]
        for (const text of [...changes, `${gap}[${gap}${json}${gap}]${gap}`]) {
          let expected: unknown = 'refused'
          try {
            expected = JSON.parse(text)
          } catch {}
          let parsed: unknown = 'refused'
          try {
            parsed = parseEscapedKeys(text)
          } catch (error) {
            assert(error instanceof SyntaxError)
          }
          assert.deepStrictEqual(parsed, expected)
        }
      }),
      randomly(rounds(1000)),
    )
    for (const text of [
      '',
      '{',
      '{"a"',
      '{"a":',
      '{"a":1',
      '{"a":1,',
      '{"a":1,}',
      '{a:1}',
      '[1,]',
      '[,]',
      '[1 2]',
      '"',
      '"\\',
      '01',
      '1.',
      '.5',
      '+1',
      'tru',
      'NaN',
      '{"a" 1}',
      '{1:1}',
      '["\n"]',
      '["\\x"]',
    ]) {
      assert.throws(() => JSON.parse(text), SyntaxError)
      assert.throws(() => parseEscapedKeys(text), SyntaxError, text)
    }
  })

  it('never a class, whatever the JSON says', () => {
    const value = decodeValue(bytesOf('[{"constructor":{"name":"Date"},"type":"Buffer","data":[1]}]'), DEFAULT_LIMITS)
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.deepStrictEqual(
      parseJson(bytesOf('{"__proto__":{"polluted":true}}')),
      JSON.parse('{"__proto__":{"polluted":true}}'),
    )
    assertPristine()
  })
})
