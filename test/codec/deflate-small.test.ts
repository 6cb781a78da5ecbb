import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { CODES_1, CODES_2, FIXED, PROSE } from '#src/codec/pack/deflate-codes.js'
import { SmallDeflate } from '#src/codec/pack/deflate-small.js'
import { DICTIONARY_1, DICTIONARY_2 } from '#src/codec/pack/dictionary.js'
import { SmallInflate } from '#src/codec/pack/inflate-small.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const MOST = 8192
/** What readers of the format are set up with. */
const READER = { windowBits: 13, dictionary: DICTIONARY_1 }
const deflater = new SmallDeflate(DICTIONARY_1, MOST, CODES_1)
const inflater = new SmallInflate(DICTIONARY_1, MOST, CODES_1)

const record = '{"type":"step","step":"2:model","status":"completed","attempt":1,"ms":12}'
const prose = 'The parcel left our depot in the morning and should reach you by Thursday, unless it rains. '
/** Pieces that repeat themselves, the dictionary or nothing at all. */
const piece = fc.oneof(
  fc.constantFrom(record, prose, 'Grüße, 日本 🎉', 'a'.repeat(300), DICTIONARY_1.toString().slice(-700)),
  fc.string({ maxLength: 60 }),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.integer({ min: 0, max: DICTIONARY_1.length - 50 }).map((at) => DICTIONARY_1.subarray(at, at + 50)),
)
const body = fc
  .array(piece, { maxLength: 40 })
  .map((pieces) => Buffer.concat(pieces.map((each) => Buffer.from(each as string))).subarray(0, MOST))

const byPlatform = (packed: Uint8Array) => {
  try {
    return inflateRawSync(packed, { ...READER, maxOutputLength: MOST })
  } catch {
    return undefined
  }
}

describe('packing of small bodies', () => {
  it('is read exactly by every reader of the format, and by its own', () => {
    fc.assert(
      fc.property(body, fc.boolean(), (raw, isThorough) => {
        const packed = deflater.deflate(raw, raw.length, isThorough)
        if (packed === undefined) return
        assert(packed.length <= raw.length)
        assert.deepStrictEqual(inflateRawSync(packed, READER), raw)
        assert.deepStrictEqual(inflater.inflate(packed, raw.length), raw)
      }),
      randomly(rounds(500)),
    )
  })

  it.each([1, 3, 4, 5, 257, 258, 259, 1000, 7929, 7930, 7931, MOST])('packs a body of %i bytes', (size) => {
    for (const raw of [Buffer.alloc(size, 'a'), Buffer.alloc(size, prose), Buffer.alloc(size, record)]) {
      for (const isThorough of [true, false]) {
        const packed = deflater.deflate(raw, MOST, isThorough) ?? raw
        if (size > 100) assert(packed.length < size)
        if (packed !== raw) assert.deepStrictEqual(inflateRawSync(packed, READER), raw)
      }
    }
  })

  it('never refers farther back than the window of a reader that gets the output in small pieces', () => {
    // The first words come again at the end, behind all of the body.
    const words = Buffer.from('words that the dictionary surely has never heard: zyx wvu tsr qpo nml kji hgf edc ba')
    const between = Buffer.from(
      randomBytes(MOST)
        .toString('base64')
        .slice(0, MOST - 2 * words.length - record.length),
    )
    const raw = Buffer.concat([words, between, Buffer.from(record), words])
    for (const isThorough of [true, false]) {
      const packed = deflater.deflate(raw, MOST, isThorough)
      assert(packed !== undefined)
      assert.deepStrictEqual(inflateRawSync(packed, { ...READER, chunkSize: 64 }), raw)
    }
  })

  it('gives up where the result would be longer than asked', () => {
    assert.equal(deflater.deflate(randomBytes(1000), 900), undefined)
    const raw = Buffer.from(prose.repeat(10))
    const length = deflater.deflate(raw, raw.length)?.length ?? 0
    assert.equal(deflater.deflate(raw, length)?.length, length)
    assert.equal(deflater.deflate(raw, length - 1), undefined)
    assert.equal(deflater.deflate(Buffer.alloc(MOST + 1), MOST), undefined)
  })

  it('packs prose nearly as well as the platform does', () => {
    const raw = Buffer.from(`[{"ops":[["push",["messages"],[{"role":"user","content":"${prose.repeat(2)}Write to us at
      any time; our colleagues in the workshop look after every question that customers ask about repairs."}]]]}]`)
    const packed = deflater.deflate(raw, raw.length)
    assert(packed !== undefined)
    assert(packed.length <= deflateRawSync(raw, { level: 3, ...READER }).length * 1.15)
  })

  it('leaves nothing of one body in the next', () => {
    const first = Buffer.from('a secret that nobody else may see '.repeat(20))
    const second = Buffer.from(`${record}${'a secret that nobody'}`.repeat(4))
    const fresh = new SmallDeflate(DICTIONARY_1, MOST, CODES_1).deflate(second, MOST)
    for (const isThorough of [true, false]) {
      deflater.deflate(first, MOST, isThorough)
      assert.deepStrictEqual(deflater.deflate(second, MOST), fresh)
    }
  })
})

describe('unpacking of small bodies', () => {
  it('agrees with the platform about whatever begins like a small body, or leaves it to that', () => {
    const begun = fc.constantFrom(FIXED, PROSE).chain(({ header, headerBits }) =>
      fc.uint8Array({ minLength: 1, maxLength: 200 }).map((rest) => {
        const bytes = Buffer.concat([header.subarray(0, headerBits >> 3), rest])
        const at = headerBits >> 3
        const mask = (1 << (headerBits & 7)) - 1
        bytes[at] = ((bytes[at] as number) & ~mask) | ((header[at] ?? 0) & mask)
        return bytes
      }),
    )
    let agreed = 0
    fc.assert(
      fc.property(begun, fc.integer({ min: 0, max: 300 }), (packed, wrong) => {
        const known = byPlatform(packed)
        for (const size of [known?.length ?? 0, wrong]) {
          const found = inflater.inflate(packed, size)
          if (found === undefined) continue
          agreed++
          assert.deepStrictEqual(found, known)
        }
      }),
      randomly(rounds(1000)),
    )
    assert(agreed > 0)
  })

  it('agrees with the platform about damaged bodies', () => {
    fc.assert(
      fc.property(body, fc.nat(), fc.integer({ min: 1, max: 255 }), (raw, at, flip) => {
        const packed = deflater.deflate(raw, raw.length)
        if (packed === undefined || packed.length === 0) return
        const damaged = Buffer.from(packed)
        damaged[at % damaged.length] = (damaged[at % damaged.length] as number) ^ flip
        for (const bytes of [damaged, damaged.subarray(0, at % damaged.length)]) {
          const found = inflater.inflate(bytes, raw.length)
          if (found !== undefined) assert.deepStrictEqual(found, byPlatform(bytes))
        }
      }),
      randomly(rounds(500)),
    )
  })

  it('leaves bodies of other writers to the platform, and reads those that happen to look the same', () => {
    const raw = Buffer.from(`${prose}The quick brown fox jumps over the lazy dog, and nobody minds.`.repeat(2))
    const fixed = deflateRawSync(raw, { ...READER, strategy: constants.Z_FIXED })
    assert.deepStrictEqual(inflater.inflate(fixed, raw.length), raw)
    const counted = deflateRawSync(raw, { ...READER, strategy: constants.Z_HUFFMAN_ONLY })
    assert.equal(inflater.inflate(counted, raw.length), undefined)
    const stored = deflateRawSync(raw, { ...READER, level: 0 })
    assert.equal(inflater.inflate(stored, raw.length), undefined)
    assert.equal(inflater.inflate(Buffer.alloc(0), 0), undefined)
  })
})

describe('codes of our own', () => {
  const deflater = new SmallDeflate(DICTIONARY_2, MOST, CODES_2)
  const inflater = new SmallInflate(DICTIONARY_2, MOST, CODES_2)
  const ours = body.map((raw) => Buffer.concat([raw.subarray(0, MOST - 300), DICTIONARY_2.subarray(-300)]))

  it('are whole: whatever bits follow are a symbol, and no two symbols begin alike', () => {
    const taken = (lengths: Uint8Array) => lengths.reduce((sum, bits) => sum + 2 ** -bits, 0)
    for (const { lengths, distanceLengths, header, headerBits } of CODES_2) {
      assert.deepEqual([lengths.length, distanceLengths.length], header[0] === 0 ? [288, 30] : [286, 30])
      assert.equal(taken(lengths), 1)
      assert(taken(distanceLengths) <= 1)
      assert.equal(headerBits, 2)
    }
    assert.deepEqual(
      CODES_2.map(({ header }) => [...header]),
      [[0], [1], [2]],
    )
  })

  it('are each used for what they suit, and read exactly', () => {
    const used = new Set<number>()
    const attempt = (raw: Buffer) => {
      const packed = deflater.deflate(raw, raw.length)
      if (packed === undefined) return
      used.add((packed[0] as number) & 3)
      assert.deepStrictEqual(inflater.inflate(packed, raw.length), raw)
    }
    attempt(Buffer.from('Съешь же ещё этих мягких французских булок. '.repeat(3)))
    attempt(Buffer.from(record.repeat(3)))
    attempt(Buffer.from(prose.repeat(3)))
    fc.assert(fc.property(ours, attempt), randomly(rounds(500)))
    assert.deepEqual([...used].sort(), [0, 1, 2])
  })

  it('read damaged bodies as something of the right size, or not at all', () => {
    fc.assert(
      fc.property(ours, fc.nat(), fc.integer({ min: 1, max: 255 }), (raw, at, flip) => {
        const packed = deflater.deflate(raw, raw.length)
        if (packed === undefined) return
        const damaged = Buffer.from(packed)
        damaged[at % damaged.length] = (damaged[at % damaged.length] as number) ^ flip
        for (const bytes of [damaged, damaged.subarray(0, at % damaged.length)]) {
          const found = inflater.inflate(bytes, raw.length)
          if (found !== undefined) assert.equal(found.length, raw.length)
        }
      }),
      randomly(rounds(500)),
    )
    // A number that no code has.
    assert.equal(inflater.inflate(Uint8Array.of(3, 0, 0, 0), 1), undefined)
  })
})
