import assert from 'node:assert/strict'
import vm from 'node:vm'
import { decodeValue } from '#src/codec/decode/decode.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue } from '#src/codec/value.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyValue, assertPristine, bytesOf, containersOf, deepFreeze, keyOrder, ODD_KEYS } from './values.js'

function roundTrip(value: unknown): unknown {
  const { json, value: copy } = encodeValue(value, DEFAULT_LIMITS)
  const decoded = decodeValue(bytesOf(json), DEFAULT_LIMITS)
  assert.deepStrictEqual(decoded, copy)
  return decoded
}

describe('a stored value', () => {
  it('comes back exactly, keys in their order, whatever it holds', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const decoded = roundTrip(value)
        assert.deepStrictEqual(decoded, value)
        assert.deepStrictEqual(keyOrder(decoded), keyOrder(value))
        assertPristine()
      }),
      randomly(rounds(1500)),
    )
  })

  it('is copied without touching the original or sharing anything with it', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const originals = containersOf(deepFreeze(value))
        const { value: copy } = encodeValue(value, DEFAULT_LIMITS)
        for (const container of containersOf(copy)) assert(!originals.has(container))
        assert.deepStrictEqual(copy, value)
      }),
      randomly(rounds(500)),
    )
  })

  it('gives the same bytes each time it is written, and again after it was read', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const first = encodeValue(value, DEFAULT_LIMITS)
        assert.equal(encodeValue(value, DEFAULT_LIMITS).json, first.json)
        assert.equal(encodeValue(first.value, DEFAULT_LIMITS).json, first.json)
        assert.equal(encodeValue(decodeValue(bytesOf(first.json), DEFAULT_LIMITS), DEFAULT_LIMITS).json, first.json)
      }),
      randomly(rounds(500)),
    )
  })

  it.each(ODD_KEYS.map((key) => [JSON.stringify(key), key]))('keeps the key %s as an own property', (_, key) => {
    const value = Object.fromEntries([
      [key, { [key === '__proto__' ? 'x' : key]: new Date(0) }],
      ['after', 1n],
    ])
    const decoded = roundTrip(value) as Record<string, unknown>
    assert.deepStrictEqual(decoded, value)
    assert.equal(Object.getPrototypeOf(decoded), Object.prototype)
    assert(Object.hasOwn(decoded, key))
    assertPristine()
  })

  // JSON.parse of Node 24 takes `"\n"` for the key of an object it met before (nodejs/node#63785).
  it.each(['', 'a', 'a\\'])('keeps keys with escapes after other keys of the same beginning %j', (start) => {
    for (const poison of [
      { first: 1, [`${start}\\`]: 2 },
      { first: { deep: [] }, [`${start}\\`]: 2n },
    ]) {
      assert.deepStrictEqual(roundTrip(poison), poison)
      for (const end of ['\n', '\u0000', '"', '\\', '\\n', '\ud800', '\\"', '\u001f']) {
        const value = { first: 1, [`${start}${end}`]: [true, null, -1.5e-7, 'text', {}, [], new Date(0)] }
        assert.deepStrictEqual(roundTrip(value), value)
      }
    }
  })

  it('keeps a typed value under every odd key', () => {
    for (const key of ODD_KEYS) {
      for (const typed of [new Date(5), 7n, new Uint8Array([1]), -0]) {
        const value = Object.fromEntries([[key, typed]])
        assert.deepStrictEqual(roundTrip(value), value)
        assert.deepStrictEqual(roundTrip([[value]]), [[value]])
      }
    }
    assertPristine()
  })

  it('keeps text that looks like a typed value as text, and text of every UTF-16 unit', () => {
    const texts = ['-0', 'NaN', 'Infinity', '1970-01-01T00:00:00.000Z', 'ff', 'AQ==', '["date"]', '{"$date":0}']
    assert.deepStrictEqual(roundTrip(texts), texts)
    const units: string[] = []
    for (let unit = 0; unit <= 0xffff; unit++) units.push(String.fromCharCode(unit))
    assert.deepStrictEqual(roundTrip(units), units)
    assert.equal(roundTrip(units.join('')), units.join(''))
  })

  it('keeps the numbers that JSON lacks apart from those that it has', () => {
    const numbers = [
      0,
      -0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      5e-324,
      2 ** 53 + 2,
      1e21,
      0.1,
    ]
    const decoded = roundTrip(numbers) as number[]
    for (const [i, number] of numbers.entries()) assert(Object.is(decoded[i], number))
  })

  it('keeps dates to the ends of time, and bigints of any length', () => {
    const dates = [8.64e15, -8.64e15, -62_167_219_200_001, 253_402_300_800_000, 0].map((time) => new Date(time))
    assert.deepStrictEqual(roundTrip(dates), dates)
    const bigints = [0n, -1n, 1n, -255n, 10n ** 400n, -(2n ** 64n), 2n ** 100_000n - 1n]
    assert.deepStrictEqual(roundTrip(bigints), bigints)
  })

  it('gives bytes of their own memory, also from a Buffer or a view into the middle of one', () => {
    const source = Buffer.from('0123456789')
    const decoded = roundTrip([source.subarray(3, 6), new Uint8Array(source.buffer, source.byteOffset + 1, 2)])
    assert.deepStrictEqual(decoded, [new Uint8Array([0x33, 0x34, 0x35]), new Uint8Array([0x31, 0x32])])
    const { value } = encodeValue(source, DEFAULT_LIMITS)
    source[0] = 0xff
    assert.equal((value as Uint8Array)[0], 0x30)
    assert.equal(Object.getPrototypeOf(value), Uint8Array.prototype)
  })

  it('may be a single leaf, an empty container, or hold the same object twice', () => {
    for (const value of [null, true, 'x', 1, 1n, new Date(1), new Uint8Array(), [], {}]) {
      assert.deepStrictEqual(roundTrip(value), value)
    }
    const shared = { at: new Date(1) }
    const decoded = roundTrip([shared, shared]) as object[]
    assert.deepStrictEqual(decoded, [shared, shared])
    assert.notEqual(decoded[0], decoded[1])
  })

  it('accepts objects without a prototype and those of another realm, and returns plain ones', () => {
    const bare = Object.assign(Object.create(null) as object, { a: [1], toString: 'x' })
    assert.deepStrictEqual(roundTrip(bare), { a: [1], toString: 'x' })
    const foreign: unknown = vm.runInNewContext(
      '({ list: [1, { deep: [] }], at: new Date(86400000), bytes: new Uint8Array([1, 2]), big: 3n, none: undefined })',
    )
    const expected = { list: [1, { deep: [] }], at: new Date(86_400_000), bytes: new Uint8Array([1, 2]), big: 3n }
    assert.deepStrictEqual(roundTrip(foreign), expected)
  })

  it('reads through a proxy of plain data once', () => {
    let reads = 0
    const proxy = new Proxy({ a: 1, b: [2] }, { get: (target, key) => (reads++, Reflect.get(target, key)) })
    assert.deepStrictEqual(roundTrip({ proxy }), { proxy: { a: 1, b: [2] } })
    assert.equal(reads, 2)
  })

  it('ignores toJSON, as a key and as a function of the prototype', () => {
    assert.deepStrictEqual(roundTrip({ toJSON: 'text' }), { toJSON: 'text' })
    const at = new Date(1)
    Object.defineProperty(at, 'toJSON', { value: () => 'changed' })
    assert.equal((roundTrip(at) as Date).getTime(), 1)
  })

  it('leaves out properties that are undefined, and keeps those that are null', () => {
    const decoded = roundTrip({ a: undefined, b: null, c: { d: undefined } }) as object
    assert.deepStrictEqual(decoded, { b: null, c: {} })
    assert(!Object.hasOwn(decoded, 'a'))
  })
})
