import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { type BlobSink, encodeValue, type Value, Whole, writeValue } from '#src/codec/value.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyValue, containersOf, nested } from './values.js'

function collector(threshold: number): BlobSink & { readonly contents: string[] } {
  const contents: string[] = []
  return {
    threshold,
    contents,
    known: () => undefined,
    add: (content) => contents.push(Buffer.from(content).toString()) - 1,
    drop: (from) => void (contents.length = from),
  }
}

/** An entry as steps make it: a record with what the step returned, and an event beside it. */
function entryWith(result: Value, other: Value): object {
  return {
    ops: [
      ['set', ['steps', 'a'], new Whole({ status: 'done', result })],
      ['push', ['list'], [new Whole(other), new Whole(result)]],
    ],
    data: new Whole({ events: [{ result: other }] }),
  }
}

describe('a value that was written before', () => {
  it('is stored as if it had been written with all the rest, in blobs and out of them', () => {
    fc.assert(
      fc.property(anyValue, anyValue, fc.constantFrom(1, 8, 40, 1_000_000), (result, other, threshold) => {
        const plain = collector(threshold)
        const joined = collector(threshold)
        const expected = encodeValue(entryWith(result, other), DEFAULT_LIMITS, plain)
        const kept = writeValue(result, DEFAULT_LIMITS)
        const keptOther = writeValue(other, DEFAULT_LIMITS)
        const found = encodeValue(entryWith(kept, keptOther), DEFAULT_LIMITS, joined)
        expect(found.json).toBe(expected.json)
        expect(joined.contents).toEqual(plain.contents)
        expect(encodeValue(found.value, DEFAULT_LIMITS).json).toBe(encodeValue(expected.value, DEFAULT_LIMITS).json)
        expect(found.depth).toBe(expected.depth)
      }),
      randomly(rounds(300)),
    )
  })

  it('is stored whole where it lies in another one that was written before', () => {
    const around = (inner: Value, other: Value): Value => ({ a: [inner, { b: inner }], other, c: { d: [inner] } })
    fc.assert(
      fc.property(anyValue, anyValue, fc.constantFrom(1, 40, 1_000_000), (inner, other, threshold) => {
        const plain = collector(threshold)
        const joined = collector(threshold)
        const once = around(inner, other)
        const expected = encodeValue(entryWith(around(once, inner), once), DEFAULT_LIMITS, plain)
        const write = (value: Value) => writeValue(value, DEFAULT_LIMITS)
        const kept = write(inner)
        const twice = write(around(write(around(kept, write(other))), kept))
        const found = encodeValue(entryWith(twice, write(around(write(inner), other))), DEFAULT_LIMITS, joined)
        expect(found.json).toBe(expected.json)
        expect(joined.contents).toEqual(plain.contents)
        expect(found.depth).toBe(expected.depth)
      }),
      randomly(rounds(200)),
    )
  })

  it('can be changed by nobody, unless it holds bytes, and shares nothing with what was given', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const kept = writeValue(value, DEFAULT_LIMITS)
        expect(encodeValue([kept], DEFAULT_LIMITS).json).toBe(encodeValue([value], DEFAULT_LIMITS).json)
        const given = containersOf(value)
        const parts = [...containersOf(kept)]
        expect(parts.filter((part) => given.has(part))).toEqual([])
        if (!parts.some((part) => part instanceof Uint8Array)) {
          expect(parts.filter((part) => !Object.isFrozen(part))).toEqual([])
        }
      }),
      randomly(rounds(200)),
    )
  })

  it('is stored a second time as any other value', () => {
    const kept = writeValue({ at: new Date(0), text: 'x' }, DEFAULT_LIMITS)
    const first = encodeValue({ kept }, DEFAULT_LIMITS)
    expect((first.value as { kept: unknown }).kept).toBe(kept)
    expect(encodeValue({ kept }, DEFAULT_LIMITS)).toEqual(first)
    expect(encodeValue([kept, kept], DEFAULT_LIMITS).json).toBe(encodeValue([kept, kept], DEFAULT_LIMITS).json)
  })

  it('is refused where it lies too deep, is too large, or has too many keys together with the rest', () => {
    const limits = { ...DEFAULT_LIMITS, maxDepth: 10 }
    const deep = writeValue(nested(8), limits)
    expect(() => encodeValue([[[deep]]], limits)).toThrow(/levels of nesting/)
    expect(encodeValue([[deep]], limits).depth).toBe(10)
    expect(() => writeValue('x'.repeat(101), { ...DEFAULT_LIMITS, maxBytes: 100 })).toThrow(/bytes/)
    const long = writeValue(['x'.repeat(60)], DEFAULT_LIMITS)
    expect(() => encodeValue([long, 'x'.repeat(60)], { ...DEFAULT_LIMITS, maxBytes: 100 })).toThrow(/bytes/)
    const wide = writeValue([1, 2, 3, 4], DEFAULT_LIMITS)
    expect(() => encodeValue([wide, 5, 6], { ...DEFAULT_LIMITS, maxKeys: 6 })).toThrow(/keys/)
    expect(() => writeValue({ no: () => 1 }, DEFAULT_LIMITS)).toThrow('$.no')
  })
})
