import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { brotliCompressSync, constants } from 'node:zlib'
import { blobHash, chainHash, chainIdentity, NO_PARENT, sameHash } from '#src/codec/chain.js'
import { pack, unpack } from '#src/codec/compress.js'
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
