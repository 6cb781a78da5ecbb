import assert from 'node:assert/strict'
import { decodeHeader, encodeHeader, type EntryHeader, FORMAT_VERSION } from '#src/codec/header.js'
import { type ErrorCode, isHoldfastError } from '#src/core/errors.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { anyText, assertPristine, bytesOf } from './values.js'

const hash = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 })
const count = fc.maxSafeNat()
const wellFormed = anyText.map((text) => text.toWellFormed())
const word = fc.constantFrom('step', 'DocdimQqXE62qI-_', 'a b', '', '"')

const header: fc.Arbitrary<EntryHeader> = fc
  .record(
    {
      seq: count,
      epoch: count,
      kind: fc.oneof(word, wellFormed),
      appendId: fc.oneof(word, wellFormed),
      at: fc.oneof(
        fc.constantFrom(1_795_097_277_675, 0, -1),
        fc.integer(),
        fc.double({ noDefaultInfinity: true, noNaN: true }).filter((at) => !Object.is(at, -0)),
      ),
      distance: fc.oneof(fc.constant(0), count),
      packing: fc.constantFrom('plain' as const, 'br' as const, 'd1' as const, 'd2' as const),
      size: count,
      parent: hash,
      base: fc.option(
        fc.record({ branch: wellFormed, incarnation: wellFormed, seq: count, hash }, { noNullPrototype: true }),
      ),
      key: fc.option(fc.constantFrom('k1', 'key-2')),
      encrypted: fc.boolean(),
      blobs: fc.array(hash, { maxLength: 3 }),
    },
    { noNullPrototype: true },
  )
  .map(({ distance, ...fields }) => {
    const seq = fields.base === null ? fields.seq : 0
    const keyframe = Math.max(0, seq - distance)
    return {
      ...fields,
      seq,
      keyframe,
      parent: keyframe === seq ? fields.parent : null,
      encrypted: fields.encrypted && fields.key !== null,
    }
  })

const HASH = 'a'.repeat(64)
const GOOD = { v: 1, seq: 3, epoch: 0, kind: 'step', append: 'id', at: 5, keyframe: 0, size: 9 }
const KEYFRAME = { ...GOOD, keyframe: 3, parent: HASH }
const FORK = { ...GOOD, seq: 0, parent: HASH, base: { branch: 'main', incarnation: 'i', seq: 4, hash: HASH } }

/** The same in the form of version 3. */
function listed(fields: typeof GOOD & { packing?: string; stands?: object }) {
  const { seq, epoch, kind, append, at, keyframe, size, packing, ...others } = fields
  return { ...others, v: 3, e: [seq, epoch, kind, append, at, keyframe, size, ...(packing ? [packing] : [])] }
}

/** The same in that of version 4. */
function asWords(fields: typeof GOOD & { packing?: string; stands?: object }) {
  const { e, ...rest } = listed(fields)
  return { ...rest, v: 4, e: e.map((word) => (typeof word === 'number' ? word.toString(36) : word)).join(' ') }
}

function refused(fields: unknown, code: ErrorCode = 'corrupt'): void {
  assert.throws(
    () => decodeHeader(bytesOf(fields)),
    (error) => isHoldfastError(error, code) && error.remedy.length > 0,
    `accepted: ${JSON.stringify(fields)}`,
  )
}

describe('an entry header', () => {
  it('comes back exactly', () => {
    fc.assert(
      fc.property(header, (fields) => {
        const bytes = encodeHeader(fields)
        assert.deepStrictEqual(decodeHeader(bytes), fields)
        assert.deepStrictEqual(encodeHeader(decodeHeader(bytes)), bytes)
        assert(!bytes.includes(0x0a))
      }),
      randomly(rounds(500)),
    )
  })

  it('starts with its version, and leaves out what is absent or usual', () => {
    assert.equal(FORMAT_VERSION, 4)
    const written = (fields: object) => encodeHeader(decodeHeader(bytesOf(fields))).toString()
    assert.equal(written(GOOD), '{"v":4,"e":"3 0 step id 5 0 9"}')
    assert.equal(written({ ...GOOD, seq: 36, packing: 'd2' }), '{"v":4,"e":"10 0 step id 5 0 9 d2"}')
    assert.equal(written(KEYFRAME), `{"v":4,"e":"3 0 step id 5 3 9","parent":"${HASH}"}`)
    // What would need quotes is listed as before.
    assert.equal(written({ ...GOOD, append: 'a b' }), '{"v":4,"e":[3,0,"step","a b",5,0,9]}')
    assert.equal(written({ ...GOOD, at: 0.5 }), '{"v":4,"e":[3,0,"step","id",0.5,0,9]}')
  })

  it('means the same in every version', () => {
    const all = { ...FORK, packing: 'br', key: 'k1', encrypted: true, blobs: [HASH] }
    for (const fields of [GOOD, KEYFRAME, FORK, all]) {
      assert.deepStrictEqual(decodeHeader(bytesOf(listed(fields))), decodeHeader(bytesOf(fields)))
      assert.deepStrictEqual(decodeHeader(bytesOf(asWords(fields))), decodeHeader(bytesOf(fields)))
    }
    const stands = { hash: HASH, key: 'k1' }
    assert.deepStrictEqual(
      decodeHeader(bytesOf(listed({ ...KEYFRAME, stands }))),
      decodeHeader(bytesOf({ ...KEYFRAME, v: 2, stands })),
    )
  })

  it('is refused when its list of fields is short, long, missing or repeated by name', () => {
    const { e, ...rest } = listed(GOOD)
    for (const wrong of [undefined, null, {}, 'list', [], e.slice(1), e.slice(0, -1), [...e, 'br', 1], [...e, 'zip']]) {
      refused({ ...rest, e: wrong })
    }
    for (const name of ['seq', 'epoch', 'kind', 'append', 'at', 'keyframe', 'size', 'packing'] as const) {
      refused({ ...rest, e, [name]: { ...GOOD, packing: 'br' }[name] })
    }
    refused({ ...GOOD, e })
    refused({ ...rest, e, extra: 1 })
    refused(`{"v":3,"e":${JSON.stringify(e)},"__proto__":{"base":null}}`)
    e.forEach((_, i) => refused({ ...rest, e: (e as unknown[]).with(i, null) }))
    assertPristine()
  })

  it('is refused when its words are few, many, malformed or not those that are written', () => {
    const { e } = asWords(GOOD)
    assert.equal(decodeHeader(bytesOf({ v: 4, e })).seq, 3)
    for (const wrong of ['', ' ', `${e} `, ` ${e}`, `${e} br 1`, `${e} zip`, e.slice(0, -2), e.replace(' ', '  ')]) {
      refused({ v: 4, e: wrong })
      refused({ v: 4, e: wrong, parent: null })
    }
    const words = e.split(' ')
    for (const i of [0, 1, 4, 5, 6]) {
      for (const wrong of ['', '-1', '1.5', 'A', '03', '+1', '1e!', 'zzzzzzzzzzzz', 'NaN', '\u00e9', '1\u0000']) {
        refused({ v: 4, e: words.with(i, wrong).join(' ') })
      }
    }
    for (const i of [2, 3])
      for (const wrong of ['', 'a"b', 'a\\b', 'é']) refused({ v: 4, e: words.with(i, wrong).join(' ') })
    refused({ v: 3, e })
    refused(`{"v":4,"e":"${e}"]`)
  })

  it.each(Object.keys(GOOD))('is refused without its %s', (field) => {
    const { [field as keyof typeof GOOD]: _, ...rest } = GOOD
    refused(rest)
  })

  it('is refused when it comes from a newer version, with the advice to upgrade and not to restore', () => {
    refused({ ...GOOD, v: 5 }, 'schema-too-new')
    refused({ ...GOOD, v: 5, something: 'new' }, 'schema-too-new')
    refused({ ...asWords(GOOD), v: 5 }, 'schema-too-new')
  })

  it('of a keyframe in the place of an entry names that entry, and is refused where it does not', () => {
    const decode = (fields: object) => decodeHeader(bytesOf(fields))
    const standing = { ...KEYFRAME, v: 2, stands: { hash: HASH, key: 'k1' } }
    assert.deepEqual(decode(standing).stands, { hash: HASH, key: 'k1' })
    assert.deepEqual(decodeHeader(encodeHeader(decode(standing))), decode(standing))
    assert.deepEqual(decode({ ...standing, stands: { hash: HASH } }).stands, { hash: HASH, key: null })
    for (const stands of [undefined, null, {}, { hash: 'a' }, { hash: HASH, key: 7 }, { hash: HASH, more: 1 }]) {
      refused({ ...standing, stands })
    }
    refused({ ...standing, v: 1 })
    refused({ ...GOOD, v: 2, stands: { hash: HASH } })
    for (const v of [0, -1, 1.5, '1', null, [], Number.MAX_VALUE]) refused({ ...GOOD, v })
  })

  it('is refused with an unknown field, however it is named', () => {
    for (const field of ['extra', 'Seq', '', 'toString', 'constructor', 'branch', 'hash'])
      refused({ ...GOOD, [field]: 1 })
    refused(`${JSON.stringify(GOOD).slice(0, -1)},"__proto__":{"base":null}}`)
    refused({ ...FORK, base: { ...FORK.base, extra: 1 } })
    assertPristine()
  })

  it.each([
    ['seq', [-1, 0.5, '3', null, 2 ** 53, [], {}]],
    ['epoch', [-1, 0.5, '0', null]],
    ['kind', [1, null, ['step'], {}]],
    ['append', [1, null, []]],
    ['at', ['5', null, [], true]],
    ['keyframe', [-1, 4, '0', null]],
    ['size', [-1, 0.5, '9', null, 1e300]],
    ['packing', ['gzip', '', 1, ['br']]],
    ['parent', ['', 'A'.repeat(64), 'a'.repeat(63), 'a'.repeat(65), `${'a'.repeat(63)}\n`, 1, [HASH]]],
    ['key', [1, [], {}, true]],
    ['encrypted', [1, 'true', [], true]],
    ['blobs', ['', HASH, [1], [HASH, 'x'], [[HASH]], { 0: HASH, length: 1 }]],
    ['base', ['main', [], {}, 1, FORK.base]],
  ] as const)('is refused with a malformed %s', (field, values) => {
    for (const value of values) refused({ ...GOOD, [field]: value })
  })

  it('is refused when its base is malformed', () => {
    assert.equal(decodeHeader(bytesOf(FORK)).base?.branch, 'main')
    for (const field of ['branch', 'incarnation', 'seq', 'hash']) {
      const { [field as 'seq']: _, ...rest } = FORK.base
      refused({ ...FORK, base: rest })
      refused({ ...FORK, base: { ...FORK.base, [field]: {} } })
    }
  })

  it('is refused when it contradicts itself', () => {
    assert.equal(decodeHeader(bytesOf(KEYFRAME)).keyframe, 3)
    refused({ ...GOOD, keyframe: 3 })
    refused({ ...GOOD, parent: HASH })
    refused({ ...KEYFRAME, base: FORK.base })
    refused({ ...GOOD, encrypted: true })
  })

  it('is refused when it is no single line of JSON', () => {
    const text = JSON.stringify(GOOD)
    for (const bad of [
      '',
      '[]',
      'null',
      '1',
      text.slice(0, -1),
      `${text} x`,
      `${text}\n`,
      `\n${text}`,
      `\ufeff${text}`,
    ])
      refused(bad)
    assert.throws(
      () => decodeHeader(Buffer.concat([bytesOf(text), Buffer.from([0xff])])),
      (error) => isHoldfastError(error, 'corrupt'),
    )
  })

  it('is refused when it is huge, and never written so', () => {
    const list = (length: number) => Array.from({ length }, () => HASH)
    const fits = decodeHeader(bytesOf({ ...GOOD, blobs: list(200_000) }))
    assert.equal(decodeHeader(encodeHeader(fits)).blobs.length, 200_000)
    assert.throws(
      () => encodeHeader({ ...fits, blobs: list(260_000) }),
      (error) => isHoldfastError(error, 'too-large'),
    )
    refused(`${JSON.stringify(GOOD).slice(0, -1)},"blobs":[${`"${HASH}",`.repeat(260_000)}"${HASH}"]}`)
    refused('['.repeat(1_000_000))
  })

  it('random bytes and random changes are refused or read, never anything else', () => {
    const attempt = (bytes: Uint8Array) => {
      try {
        decodeHeader(bytes)
      } catch (error) {
        assert(isHoldfastError(error, 'corrupt') || isHoldfastError(error, 'schema-too-new'), error as Error)
      }
      assertPristine()
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), header, fc.nat(), fc.nat(255), (random, fields, at, byte) => {
        attempt(random)
        const bytes = encodeHeader(fields)
        bytes[at % bytes.length] = byte
        attempt(bytes)
      }),
      randomly(rounds(1000)),
    )
  })
})
