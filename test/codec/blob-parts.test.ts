import assert from 'node:assert/strict'
import { decodeValue } from '#src/codec/decode/decode.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { type BlobSink, encodeValue, type Value, Whole, writeValue } from '#src/codec/value.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyValue } from './values.js'

const THRESHOLD = 40

class Sink implements BlobSink {
  readonly threshold = THRESHOLD
  readonly contents: Uint8Array[] = []
  /** Bytes of everything that was ever handed over, also of what was dropped again. */
  handed = 0

  known(): undefined {
    return undefined
  }

  add(content: Uint8Array): number {
    this.handed += content.length
    return this.contents.push(content) - 1
  }

  drop(from: number): void {
    this.contents.length = from
  }
}

function encode(value: unknown): { readonly sink: Sink; readonly back: Value; readonly json: string } {
  const sink = new Sink()
  const { json } = encodeValue({ before: 1, value: new Whole(value), after: [new Whole('x')] }, DEFAULT_LIMITS, sink)
  const source = { get: (number: number) => sink.contents[number] as Uint8Array }
  const back = (decodeValue(Buffer.from(json), DEFAULT_LIMITS, source) as { value: Value }).value
  return { sink, back, json }
}

/** Each is a blob by itself. */
const large: fc.Arbitrary<Value> = fc.oneof(
  fc.string({ minLength: THRESHOLD }),
  fc.uint8Array({ minLength: THRESHOLD, maxLength: 100 }),
  fc.array(fc.integer(), { minLength: THRESHOLD }),
  fc.array(fc.record({ at: fc.date({ noInvalidDate: true }) }), { minLength: 3 }),
)

const texts = (sink: Sink) => sink.contents.map((content) => Buffer.from(content).toString())

describe('a value whose large parts are blobs', () => {
  it('comes back exactly, written before or not', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const plain = encode(value)
        assert.deepStrictEqual(plain.back, value)
        const written = encode(writeValue(value, DEFAULT_LIMITS))
        assert.deepStrictEqual(written.back, value)
        expect([written.json, texts(written.sink)]).toEqual([plain.json, texts(plain.sink)])
      }),
      randomly(rounds(200, 5000)),
    )
  })

  it('has the same blobs in every small wrapper', () => {
    fc.assert(
      fc.property(large, (value) => {
        const [bare, named, listed] = [encode(value), encode({ a: value }), encode([1, { b: value }])]
        expect(bare.sink.contents).toHaveLength(1)
        expect(texts(named.sink)).toEqual(texts(bare.sink))
        expect(texts(listed.sink)).toEqual(texts(bare.sink))
      }),
      randomly(rounds(200, 5000)),
    )
  })

  it('costs a bounded number of passes, however its layers are made', () => {
    let value: Value = 'x'.repeat(100)
    for (let i = 0; i < 100; i++)
      value = { inner: value, ...Object.fromEntries([...Array(10).keys()].map((k) => [k, 'rest'])) }
    const { sink, back } = encode(value)
    assert.deepStrictEqual(back, value)
    expect(sink.contents).toHaveLength(1)
    expect(sink.handed).toBeLessThan(10 * JSON.stringify(value).length)
  })
})
