import assert from 'node:assert/strict'
import { decodeValue } from '#src/codec/decode/decode.js'
import { DEFAULT_LIMITS, type Limits } from '#src/codec/limits.js'
import { type BlobSink, copyValue, encodeValue, Whole } from '#src/codec/value.js'
import { isHoldfastError } from '#src/core/errors.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyValue, bytesOf, nested } from './values.js'

function limits(changed: Partial<Limits>): Limits {
  return { ...DEFAULT_LIMITS, ...changed }
}

function isTooLarge(what: string): (error: unknown) => boolean {
  return (error) => isHoldfastError(error, 'too-large') && error.data['what'] === what
}

function isCorrupt(error: unknown): boolean {
  return isHoldfastError(error, 'corrupt')
}

/** How many items and properties a value has, and how deep it is, counted in the plainest way. */
function measure(value: unknown): { keys: number; depth: number } {
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array) {
    return { keys: 0, depth: 0 }
  }
  const children = Object.values(value).map(measure)
  return {
    keys: children.reduce((sum, { keys }) => sum + keys, children.length),
    depth: children.reduce((most, { depth }) => Math.max(most, depth), 0) + 1,
  }
}

/** What comes of it: a value, or the code and the text of what was thrown. */
function outcome(make: () => unknown): unknown {
  try {
    return { value: make() }
  } catch (error) {
    assert(isHoldfastError(error))
    return { code: error.code, message: error.message }
  }
}

describe('limits', () => {
  it('refuse a copy exactly when they refuse what would be written', () => {
    const bounds = fc.record({
      maxBytes: fc.integer({ min: 2, max: 3000 }),
      maxDepth: fc.integer({ min: 1, max: 8 }),
      maxKeys: fc.integer({ min: 1, max: 60 }),
      maxReadBytes: fc.constant(DEFAULT_LIMITS.maxReadBytes),
    })
    fc.assert(
      fc.property(anyValue, bounds, (value, limits) => {
        assert.deepStrictEqual(
          outcome(() => copyValue(value, limits)),
          outcome(() => encodeValue(value, limits).value),
        )
      }),
      randomly(rounds(1500)),
    )
  })

  it.each(['array', 'object'] as const)(
    '%s nesting: at the limit fine, one above refused, written or stored',
    (form) => {
      const bounds = limits({ maxDepth: 128 })
      const { json, depth } = encodeValue(nested(128, form), bounds)
      assert.equal(depth, 128)
      assert.deepStrictEqual(decodeValue(bytesOf(json), bounds), nested(128, form))
      assert.throws(() => encodeValue(nested(129, form), bounds), isTooLarge('levels of nesting'))
      assert.throws(() => decodeValue(bytesOf([nested(129, form)]), bounds), isCorrupt)
    },
  )

  it('keys: at the limit fine, one above refused, written or stored', () => {
    const bounds = limits({ maxKeys: 100 })
    const fits = [...Array.from({ length: 97 }, () => 1), { a: {} }, []]
    assert.equal(measure(fits).keys, 100)
    assert.deepStrictEqual(decodeValue(bytesOf(encodeValue(fits, bounds).json), bounds), fits)
    assert.throws(() => encodeValue([...fits, 1], bounds), isTooLarge('keys'))
    assert.throws(() => decodeValue(bytesOf([[...fits, 1]]), bounds), isCorrupt)
    assert.throws(
      () => decodeValue(bytesOf([{ ...Object.fromEntries(fits.map((_, i) => [i, 1])), a: 1, b: 2 }]), bounds),
      isCorrupt,
    )
  })

  it('bytes: at the limit fine, one above refused, counted as UTF-8 and not as characters', () => {
    for (const text of ['x'.repeat(96), 'é'.repeat(48), '\u0000'.repeat(16), '😀'.repeat(24)]) {
      const bounds = limits({ maxBytes: 100 })
      const { json } = encodeValue(text, bounds)
      assert.equal(Buffer.byteLength(json), 100)
      assert.equal(decodeValue(bytesOf(json), bounds), text)
      assert.throws(() => encodeValue(`${text}x`, bounds), isTooLarge('bytes'))
      assert.throws(() => decodeValue(bytesOf([`${text}x`]), bounds), isCorrupt)
    }
  })

  it('what was written under some limits can be read under the same, to the last key, level and byte', () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const { keys, depth } = measure(value)
        const exact: Limits = {
          ...DEFAULT_LIMITS,
          maxKeys: keys,
          maxDepth: depth,
          maxBytes: Buffer.byteLength(encodeValue(value, DEFAULT_LIMITS).json),
        }
        const { json } = encodeValue(value, exact)
        assert.deepStrictEqual(decodeValue(bytesOf(json), exact), value)
        for (const [field, what] of [
          ['maxKeys', 'keys'],
          ['maxDepth', 'levels of nesting'],
          ['maxBytes', 'bytes'],
        ] as const) {
          if (exact[field] === 0) continue
          const less = { ...exact, [field]: exact[field] - 1 }
          assert.throws(() => encodeValue(value, less), isTooLarge(what))
          assert.throws(() => decodeValue(bytesOf(json), less), isCorrupt)
        }
      }),
      randomly(rounds(500)),
    )
  })

  it('many typed values deep inside count as keys once, however long their paths are', () => {
    let value: unknown = Array.from({ length: 200 }, (_, i) => BigInt(i))
    for (let i = 0; i < 50; i++) value = [value]
    const bounds = limits({ maxKeys: 250 })
    assert.deepStrictEqual(decodeValue(bytesOf(encodeValue(value, bounds).json), bounds), value)
  })

  it('text that looks like nesting is no nesting, with every kind of escape before its end', () => {
    const texts = [
      '[[[[',
      '{"a":{',
      '"[',
      '\\',
      '\\\\"[',
      `${'\\'.repeat(25)}"[[`,
      `${'x'.repeat(40)}"[[{`,
      `${'x'.repeat(23)}\\`,
      `${'x'.repeat(22)}\\"`,
    ]
    for (const text of texts) {
      for (let pad = 0; pad < 30; pad++) {
        const value = { [`${'k'.repeat(pad)}${text}`]: `${'v'.repeat(pad)}${text}` }
        const bounds = limits({ maxDepth: 1, maxKeys: 1 })
        assert.deepStrictEqual(decodeValue(bytesOf([value]), bounds), value)
      }
    }
  })

  it('stops at a graph of shared objects that would unfold without end', () => {
    let value: unknown = 'leaf'
    for (let i = 0; i < 60; i++) value = [value, value]
    assert.throws(() => encodeValue(value, DEFAULT_LIMITS), isTooLarge('keys'))
    const text = 'x'.repeat(1024 * 1024)
    assert.throws(
      () =>
        encodeValue(
          Array.from({ length: 1_000_000 }, () => text),
          DEFAULT_LIMITS,
        ),
      isTooLarge('bytes'),
    )
    const bytes = new Uint8Array(1024 * 1024)
    assert.throws(
      () =>
        encodeValue(
          Array.from({ length: 1000 }, () => bytes),
          DEFAULT_LIMITS,
        ),
      isTooLarge('bytes'),
    )
  })
})

describe('bombs in stored bytes are refused before they are parsed', () => {
  it.each([
    ['100 MB of opening brackets', Buffer.alloc(100 * 1024 * 1024, '[')],
    ['as many brackets as fit', Buffer.alloc(DEFAULT_LIMITS.maxBytes, '[')],
    ['nested objects', Buffer.from('{"a":'.repeat(1_000_000))],
    ['millions of items', Buffer.from(`[[${'0,'.repeat(2_000_001)}0]]`)],
    ['millions of empty lists', Buffer.from(`[[${'[],'.repeat(2_000_001)}0]]`)],
    ['millions of types', Buffer.from(`[0,[${'["date"],'.repeat(2_000_004)}0]]`)],
    ['a nested list of types', Buffer.from(`[0,[${'['.repeat(200)}`)],
  ])('%s', (_, bytes) => {
    assert.throws(
      () => decodeValue(bytes, DEFAULT_LIMITS),
      (error) => isHoldfastError(error, 'corrupt') && 'limit' in error.data,
    )
  })

  it('deep nesting that the limits allow neither overflows the stack', () => {
    const bounds = limits({ maxDepth: 1_000_000 })
    const value = decodeValue(Buffer.from(`[${'['.repeat(200_000)}${']'.repeat(200_000)}]`), bounds)
    assert(Array.isArray(value))
  })
})

describe('blobs are bounded like all else', () => {
  const collector = (threshold: number): BlobSink & { added: Uint8Array[] } => {
    const added: Uint8Array[] = []
    return {
      threshold,
      added,
      known: () => undefined,
      add: (content) => added.push(content) - 1,
      drop: (from) => void (added.length = from),
    }
  }

  it.each([
    ['text', 'x'.repeat(5000)],
    ['bytes', new Uint8Array(5000)],
    ['a whole', new Whole(Array.from({ length: 20 }, () => 'x'.repeat(250)))],
  ])('%s over the limit of bytes is refused when written, since it could not be read back', (_, value) => {
    const sink = collector(1024)
    assert.throws(() => encodeValue({ value }, limits({ maxBytes: 4096 }), sink), isTooLarge('bytes'))
    assert.deepEqual(sink.added, [])
  })

  it('what moved to blobs leaves its room to the rest', () => {
    const sink = collector(1024)
    const part = () => new Whole(Array.from({ length: 12 }, () => 'x'.repeat(250)))
    const { json } = encodeValue(
      [part(), part(), 'y'.repeat(3500), new Uint8Array(3500)],
      limits({ maxBytes: 4096 }),
      sink,
    )
    assert.equal(sink.added.length, 4)
    assert(json.length < 200)
  })
})
