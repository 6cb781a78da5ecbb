import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { brotliCompressSync, constants, deflateRawSync } from 'node:zlib'
import { blobHash, chainHash, chainIdentity, NO_PARENT, sameHash } from '#src/codec/chain.js'
import { pack, packEntry, unpack } from '#src/codec/pack/compress.js'
import { CODES_2 } from '#src/codec/pack/deflate-codes.js'
import { DICTIONARY_1, DICTIONARY_2 } from '#src/codec/pack/dictionary.js'
import { isHoldfastError } from '#src/core/errors.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const isCorrupt = (error: unknown) => isHoldfastError(error, 'corrupt')

describe('compression', () => {
  it.each([0, 1, 1023, 1024, 1025, 65_535, 65_536, 65_537, 1_500_000])(
    'keeps %i bytes exactly, repeating or random',
    async (size) => {
      for (const raw of [Buffer.alloc(size, 'holdfast '), randomBytes(size)]) {
        const packed = await pack(raw)
        assert.deepStrictEqual(Buffer.from(await unpack(packed.packing, packed.bytes, size)), raw)
      }
    },
  )

  it('is used from 1 KB on, and only where it saves a tenth', async () => {
    assert.equal((await pack(Buffer.alloc(1023, 'a'))).packing, 'plain')
    assert.equal((await pack(Buffer.alloc(1024, 'a'))).packing, 'br')
    assert.equal((await pack(randomBytes(4096))).packing, 'plain')
    assert.equal((await pack(randomBytes(200_000))).packing, 'plain')
    for (let compressible = 0; compressible <= 4096; compressible += 128) {
      const raw = Buffer.concat([randomBytes(4096 - compressible), Buffer.alloc(compressible, 'a')])
      const packed = await pack(raw)
      if (packed.packing === 'br') assert(packed.bytes.length <= raw.length * 0.9)
      else assert.equal(packed.bytes, raw)
    }
  })

  it('works off the event loop for large bodies only', () => {
    assert(!(pack(Buffer.alloc(65_535)) instanceof Promise))
    assert(pack(Buffer.alloc(65_536)) instanceof Promise)
    const packed = brotliCompressSync(Buffer.alloc(65_536))
    assert(unpack('br', packed, 65_536) instanceof Promise)
    assert(!(unpack('br', brotliCompressSync(Buffer.alloc(65_535)), 65_535) instanceof Promise))
  })

  it('never inflates further than the size that was written', async () => {
    const bomb = brotliCompressSync(Buffer.alloc(128 * 1024 * 1024), {
      params: { [constants.BROTLI_PARAM_QUALITY]: 1 },
    })
    assert(bomb.length < 100_000)
    const before = process.memoryUsage().arrayBuffers
    for (const size of [0, 1, 100, 65_535, 65_536, 1_000_000]) {
      await assert.rejects(async () => unpack('br', bomb, size), isCorrupt)
    }
    assert(process.memoryUsage().arrayBuffers - before < 64 * 1024 * 1024)
  })

  it.each([100, 100_000])('a body of %i bytes that is shorter or longer than its size is corrupt', async (size) => {
    const raw = Buffer.alloc(size, 'abc')
    for (const wrong of [0, size - 1, size + 1, size * 2]) {
      await assert.rejects(async () => unpack('br', brotliCompressSync(raw), wrong), isCorrupt)
      await assert.rejects(async () => unpack('plain', raw, wrong), isCorrupt)
    }
  })

  it('bytes that no compressor wrote are corrupt, in one piece or off the event loop', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(5, 1000, 70_000), async (bytes, size) => {
        await assert.rejects(async () => unpack('br', bytes, size), isCorrupt)
      }),
      randomly(rounds(200)),
    )
    const good = brotliCompressSync(Buffer.from(randomBytes(500).toString('hex').repeat(3)))
    for (let cut = 0; cut < good.length; cut += 7) {
      await assert.rejects(async () => unpack('br', good.subarray(0, cut), 3000), isCorrupt)
    }
  })
})

describe('compression with a dictionary', () => {
  const dictionary = DICTIONARY_1
  const deflate = (raw: Uint8Array) => deflateRawSync(raw, { windowBits: 13, dictionary })
  const record = (text: string) =>
    Buffer.from(`[{"ops":[["set",["steps","1"],{"status":"done","result":"${text}"}]],"data":{"events":[]}}]`)

  it('uses the bytes that everything packed with it needs to be read, for ever', () => {
    assert.equal(
      createHash('sha256').update(DICTIONARY_1).digest('hex'),
      '85a7dd907d5cbda35eaaf4916a4ed45cdd5ec818a195ec4ca3c96994a991f782',
    )
    assert.equal(
      createHash('sha256').update(DICTIONARY_2).digest('hex'),
      'a1bb80a5bcb785a6c018265088c0b7c22c9c9bc698f5011124190b372798ed32',
    )
    const codes = createHash('sha256')
    for (const { lengths, distanceLengths, header, headerBits } of CODES_2) {
      codes.update(lengths).update(distanceLengths).update(header).update(Uint8Array.of(headerBits))
    }
    assert.equal(codes.digest('hex'), 'fa1c2cf1ac7362b31196eb5ba4a81ff9fa8a0d88bf156023b182cf830eaaa968')
  })

  const letter =
    'Your jacket left the warehouse this morning and should be with you by Thursday. If it does not fit, send it back within thirty days; we pay for the label. The refund reaches your card three working days after the parcel has come in, and we write to you on the same day. Should the zipper be broken as you feared, keep the jacket: a photo is enough, and another one goes out at once, in the same size and color, as long as we have it in stock. Otherwise you choose between a voucher and the money. Sizes run small this year, said several customers, so think about one number larger.'
  const repeated = record('Fifteen boxes of apples and one of pears. '.repeat(14))

  it('reads what was packed by earlier versions', async () => {
    const stored = [
      [
        record('Fifteen boxes of apples and one of pears. '.repeat(10)),
        'w5P28KY6JbfMtBLQSF1SfkVqMWhEMLGgICe1GDI+mJcKEilITSwq1lMYVTlQoQRO4ZgJBxTvAA==',
      ],
      [repeated, 'w5P28KY6JbfMtBLQSF1SfkVqMWhEMLGgICe1GDI+mJcKEilITSwq1lMYVTmqEr9KcE7ETOCg9AkA'],
      [
        record(letter),
        '7T0DgCy7lmvb3vOv0XbPtW37pqtOd9dMdSUvybTWtm3btm3btu23cZ7td8fRsT8eR/ceV+s23FBdt1WSrKGEHIdSNwdnhOOYrgs0Tb8J5Sqs6p6hGOuW3gB9hxAGC7g8XuciJYsKnBiq7mFKUegW4TCTJRBYpGp1QJI1fS0r1MNcLiAlC7FLtQwZWejWowKfkwHmFVAFLsfhepECR5XFCdOQTAhXPUWOCDPK1xRm6hnQgtAPMMITXRcLSOgEIStKGvkZwkxlgqpAVphThQeCIBNUT1TgkqFOLS4zxpArQgdcdQ1Ui1P3R5FwTEuwhsj0QcO8FSDAxlT1UwVgQddHYwOTqMocOdACYaTYovqdRILqf5VU89VjILIl6isJzSkvKYA5VWwXpqc6RcXErAAhabJWgXPq3VkmUOOVjCkVCAOUM9V5JTCl64kCrF5UMCa0QEVitkQBfL0AMSF5biS8QMJLoOpeEDhFTnJI1oWkE+SiBIKqU8WabdYqSkzpCTnhI+QVbYKP1GylmA8C',
      ],
    ] as const
    for (const [raw, packed] of stored)
      assert.deepStrictEqual(Buffer.from(await unpack('d1', Buffer.from(packed, 'base64'), raw.length)), raw)
  })

  it('reads what this version packs, for ever: a record, prose, and what has a code for neither', async () => {
    const other = `${'Пятнадцать ящиков яблок и один груш. '.repeat(3)}${[...'детский сад, трава у дома, земля в иллюминаторе видна'].reverse().join('')}${' Съешь же ещё этих мягких французских булок, да выпей чаю.'.repeat(2)}`
    const stored = [
      [repeated, '3qLwc8uSz6GTcuQIgQ31NbSE2kRZ5mg9eFNIT0oUxobw0pYvbXnrlp6h3HSKyD5vAA=='],
      [
        record(letter),
        '3qLwc8uSz6HHCWddFckEHeQ4ckzdZsJgpiuLnqYV2pBHYRhnM2ZlQ9xFbzCcw8WsMjYV8xA2R4TlUo2W2dtIugAsqpSeDkUy4W5S0cDGzSEVc3uEWFwp5sz0aPpcDDEPgU6QwVGlUjBI/s560pcIQ7DOIMJMmwlJRsMAV+B4gFKYhA+ehUQXCFIFLPwMYUY+k04gSa5JDgQrCqQhQtj2q6OH12VZoqGFDg2l+sQOGTyiMJgGMEEsuaFX3joIKDNNoNICKl2NMz+noKOPBrRCGJNaCCQKB1Q2DIhq7kpg5XXkLonOtQlowlyT2q2HlVMkJUoF1ulkEsI5GncmLbJcSaa1RRiimxHSFDDVVUIT04g0R6EV0hLldbRgKgW2EHnud3iOwgRAWTFYnKIROSSVdbpAYwOwmlqpSU1BaSU+gYJcmDEacmX7HR8yzBs=',
      ],
      [
        record(other),
        '4Bn4wTvko3Rh/sX+i00X9l7YcGHLxbYLGy42XexRuNh/sfPCjgu7Luy7sEnhYv+FjRd2X9h3YZfChR0KF/Zd2HJhx4W9Chc2X2y42HyxQ09hkBix4cJesOAmhQtbLzZc2HexCSy048Kei30Xdl/YDdIGNmf3hT0Xtl7YrqBzYcOFPSCTFC42g7RvurDhYsPFJgWdC1subLjYqHBhJ8j2i40Xmy5svbBF4cLCi10Xtl7suNijcGHbha0gWzovTlS42Hux6cKOi60KF/Zc7L+w+cIuMOdiy8UGkPUX2y42X9h+sREqfGHjxWaIL3QUQLYoXNh0sfvC/gtbL+xUuNh+YcPFPj162QOZ8MBI8qDEBAA=',
      ],
    ] as const
    for (const [raw, packed] of stored)
      assert.deepStrictEqual(Buffer.from(await unpack('d2', Buffer.from(packed, 'base64'), raw.length)), raw)
  })

  it('with its own codes is corrupt where they make something else of it', async () => {
    const { bytes } = await packEntry(record(letter), true)
    for (const wrong of [0, 1, bytes.length, 9000]) {
      await assert.rejects(async () => unpack('d2', bytes, wrong), isCorrupt)
    }
    for (let cut = 0; cut < bytes.length; cut += 7) {
      await assert.rejects(async () => unpack('d2', bytes.subarray(0, cut), record(letter).length), isCorrupt)
    }
  })

  it.each([0, 511, 512, 513, 1023, 1024, 1535, 1536, 3071, 3072, 8191, 8192, 65_536])(
    'keeps %i bytes of an entry exactly, repeating or random, with and without records',
    async (size) => {
      const repeating = Buffer.alloc(size, 'holdfast ')
      for (const raw of [repeating, randomBytes(size), Buffer.concat([repeating, record('')])]) {
        const packed = await packEntry(raw, size % 2 === 0)
        assert.deepStrictEqual(Buffer.from(await unpack(packed.packing, packed.bytes, raw.length)), raw)
      }
    },
  )

  it('is used for small bodies and for records of the runtime, where it saves a tenth', async () => {
    const packing = async (raw: Buffer, records = false) => (await packEntry(raw, records)).packing
    assert.equal(await packing(Buffer.alloc(511, 'a')), 'plain')
    assert.equal(await packing(Buffer.alloc(512, 'a')), 'd2')
    assert.equal(await packing(randomBytes(1000)), 'plain')
    assert.equal(await packing(Buffer.alloc(1535, 'a')), 'd2')
    assert.equal(await packing(Buffer.alloc(1536, 'a')), 'br')
    assert.equal(await packing(Buffer.alloc(8191, 'a'), true), 'd2')
    assert.equal(await packing(Buffer.alloc(8192, 'a'), true), 'br')
  })

  it('is used for prose of up to 3 KB, and not for numbers, codes, capitals and other scripts', async () => {
    const prose = 'The courier could not find your door on Thursday. Would you tell us which entrance he should use? '
    const about = `{"id":"msg_4fXk20aQ","role":"assistant","at":1790000041000,"content":"${prose}"},`
    const digits = '0123456789.'
    const others = [
      randomBytes(1000).toString('hex'),
      randomBytes(1500).toString('base64'),
      Array.from(randomBytes(500), (byte) => (byte / 7).toFixed(3)).join(),
      Array.from(randomBytes(2000), (byte) => digits[byte % digits.length]).join(''),
      prose.repeat(20).toUpperCase(),
      '京都の庭園はとても静かです。'.repeat(50),
    ]
    for (const size of [1536, 2000, 3071]) {
      for (const text of [prose, about]) {
        const raw = Buffer.from(text.repeat(40)).subarray(0, size)
        const packed = await packEntry(raw, false)
        assert.equal(packed.packing, 'd2')
        assert.deepStrictEqual(Buffer.from(await unpack('d2', packed.bytes, size)), raw)
      }
      for (const text of others) {
        const raw = Buffer.from(text.repeat(2)).subarray(0, size)
        assert.notEqual((await packEntry(raw, false)).packing, 'd2')
      }
    }
    assert.equal((await packEntry(Buffer.alloc(3072, prose), false)).packing, 'br')
  })

  it('never inflates further than the size that was written', async () => {
    const bomb = deflate(Buffer.alloc(64 * 1024 * 1024))
    const before = process.memoryUsage().arrayBuffers
    for (const size of [0, 1, 100, 65_535, 65_536, 1_000_000]) {
      await assert.rejects(async () => unpack('d1', bomb, size), isCorrupt)
    }
    assert(process.memoryUsage().arrayBuffers - before < 32 * 1024 * 1024)
  })

  it.each([100, 100_000])('a body of %i bytes that is shorter or longer than its size is corrupt', async (size) => {
    const raw = Buffer.alloc(size, 'abc')
    assert.deepStrictEqual(Buffer.from(await unpack('d1', deflate(raw), size)), raw)
    for (const wrong of [0, size - 1, size + 1, size * 2]) {
      await assert.rejects(async () => unpack('d1', deflate(raw), wrong), isCorrupt)
    }
  })

  it('bytes that no compressor wrote are corrupt, in one piece or off the event loop', async () => {
    // The first bits of a block of the kind that does not exist.
    for (const size of [5, 1000, 70_000]) {
      await assert.rejects(async () => unpack('d1', Buffer.from([0x07, 1, 2, 3]), size), isCorrupt)
    }
    const good = deflate(Buffer.from(randomBytes(500).toString('hex').repeat(3)))
    for (let cut = 0; cut < good.length; cut += 7) {
      for (const size of [3000, 70_000]) {
        await assert.rejects(async () => unpack('d1', good.subarray(0, cut), size), isCorrupt)
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(5, 1000), async (bytes, size) => {
        try {
          assert.equal((await unpack('d1', bytes, size)).length, size)
        } catch (error) {
          assert(isCorrupt(error))
        }
      }),
      randomly(rounds(200)),
    )
  })
})

describe('the chain', () => {
  it('tells every part of its input apart', () => {
    const part = fc.constantFrom('a', 'b', 'ab', '', '","', '\n', 'a\n')
    const identity = fc.tuple(part, part, part, part)
    fc.assert(
      fc.property(identity, identity, (one, other) => {
        const same = one.every((name, i) => name === other[i])
        assert.equal(chainIdentity(...one) === chainIdentity(...other), same)
      }),
      randomly(rounds(300)),
    )
  })

  it('gives the same hash in one piece and in parts', () => {
    const header = Buffer.from('{"v":1}')
    const body = Buffer.alloc(70_000, 'x')
    const hashes = [0, 65_535, 65_536, 70_000].map((size) =>
      chainHash('i\n', NO_PARENT, header, body.subarray(0, size)),
    )
    assert.equal(new Set(hashes).size, 4)
    for (const hash of hashes) assert.match(hash, /^[0-9a-f]{64}$/)
    assert.notEqual(blobHash(body), blobHash(body.subarray(1)))
  })

  it('compares hashes of any length and any characters without an error', () => {
    const hash = 'a'.repeat(64)
    assert(sameHash(hash, 'a'.repeat(64)))
    for (const other of [
      '',
      'a',
      'a'.repeat(63),
      `${'a'.repeat(63)}b`,
      `${'a'.repeat(63)}é`,
      '\ud800'.repeat(64),
      'é'.repeat(32),
    ]) {
      assert(!sameHash(hash, other))
      assert(!sameHash(other, hash))
    }
  })
})
