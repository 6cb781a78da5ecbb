import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { decodeBlob, encodeBlob } from '#src/codec/blob.js'
import { sameHash } from '#src/codec/chain.js'
import { pack } from '#src/codec/pack/compress.js'
import { type DataKey, decrypt, deriveDataKey, encrypt } from '#src/codec/secret/data-key.js'
import { decodeHeader, type EntryHeader, encodeHeader } from '#src/codec/header.js'
import {
  deriveMasterKey,
  type MasterKey,
  unwrapSecret,
  type WrapPlace,
  wrapSecret,
} from '#src/codec/secret/master-key.js'

const key = deriveDataKey('d1', randomBytes(32))
const other = deriveDataKey('d2', randomBytes(32))
const find = async (id: string): Promise<DataKey> => (id === 'd2' ? other : key)
const ROOM = { maxBytes: 1024 * 1024, left: 1024 * 1024 }
const NONCE = 12

const header: EntryHeader = {
  seq: 0,
  epoch: 0,
  kind: 'step',
  appendId: 'a',
  at: 1,
  keyframe: 0,
  packing: 'plain',
  size: 3,
  parent: '0'.repeat(64),
  base: null,
  key: null,
  encrypted: false,
  blobs: [],
}

describe('encryption of bytes', () => {
  it('opens under the same key and context only', () => {
    const sealed = encrypt(key.encryptionKey, Buffer.from('secret'), Buffer.from('here'))
    expect(decrypt(key.encryptionKey, sealed, Buffer.from('here')).toString()).toBe('secret')
    expect(() => decrypt(key.encryptionKey, sealed, Buffer.from('there'))).toThrow(/does not decrypt/)
    expect(() => decrypt(other.encryptionKey, sealed, Buffer.from('here'))).toThrow(/does not decrypt/)
  })

  it('never gives the same bytes twice for an entry', () => {
    const seal = () => encrypt(key.encryptionKey, Buffer.from('secret'), Buffer.from('here')).toString('hex')
    expect(new Set(Array.from({ length: 100 }, seal)).size).toBe(100)
  })

  it('does not show secrets when a key is printed', () => {
    const secret = randomBytes(32)
    const shown =
      inspect(deriveDataKey('d', secret), { depth: 9, showHidden: true }) + JSON.stringify(deriveDataKey('d', secret))
    expect(shown).not.toMatch(/Uint8Array|Buffer|\[\s*\d+,/)
  })
})

describe('a wrapped data key', () => {
  it('opens under its master, for its tenant and under its id only', () => {
    const [secret, bytes] = [randomBytes(32), randomBytes(32)]
    const master = deriveMasterKey('k1', bytes)
    const place = { tenant: 'a', id: 'd1' }
    const wrapped = wrapSecret(master, secret, place)
    expect(Buffer.from(unwrapSecret(master, wrapped, place)).equals(secret)).toBe(true)
    const wrong: [MasterKey, WrapPlace][] = [
      [deriveMasterKey('k1', randomBytes(32)), place],
      [deriveMasterKey('k2', bytes), place],
      [master, { tenant: 'b', id: 'd1' }],
      [master, { tenant: 'a', id: 'd2' }],
    ]
    for (const [other, elsewhere] of wrong)
      expect(() => unwrapSecret(other, wrapped, elsewhere)).toThrow(/does not decrypt/)
    expect(Buffer.from(wrapped).includes(secret)).toBe(false)
  })
})

describe('encrypted blobs', () => {
  it('are stored once: the same content gives the same bytes under the same key, and others under another', async () => {
    const content = randomBytes(5000)
    const [a, b, c] = await Promise.all([key, key, other].map((one) => encodeBlob(content, one, true)))
    expect(a?.hash).toBe(b?.hash)
    expect(a?.bytes).toEqual(b?.bytes)
    expect(c?.hash).not.toBe(a?.hash)
  })

  it('never use a nonce twice, also when one content is what another packs to', async () => {
    const content = Buffer.from('all work and no play '.repeat(2000))
    const packed = await pack(content)
    expect(packed.packing).toBe('br')
    const first = await encodeBlob(content, key, true)
    const second = await encodeBlob(packed.bytes, key, true)
    const nonce = (bytes: Uint8Array) =>
      Buffer.from(bytes.subarray(bytes.indexOf(0x0a) + 1))
        .subarray(0, NONCE)
        .toString('hex')
    expect(nonce(first.bytes)).not.toBe(nonce(second.bytes))
  })

  it('use another key than entries, whose nonces are random', async () => {
    const blob = await encodeBlob(Buffer.from('x'), key, true)
    const end = blob.bytes.indexOf(0x0a)
    const line = Buffer.from(blob.bytes.subarray(0, end))
    expect(() => decrypt(key.encryptionKey, blob.bytes.subarray(end + 1), line)).toThrow(/does not decrypt/)
  })

  it.each([true, false])('are refused when any byte is changed (encrypted: %s)', async (encrypted) => {
    const { hash, bytes } = await encodeBlob(Buffer.from('attack at dawn '.repeat(100)), key, encrypted)
    expect(await decodeBlob(hash, bytes, ROOM, find)).toHaveLength(1500)
    for (let i = 0; i < bytes.length; i++) {
      const altered = Buffer.from(bytes)
      altered[i] = (altered[i] as number) ^ 1
      await expect(decodeBlob(hash, altered, ROOM, find), `byte ${i}`).rejects.toMatchObject({ code: 'corrupt' })
    }
  })

  it('are refused under the name of another, under another key id, and without their key', async () => {
    const [a, b] = await Promise.all([
      encodeBlob(Buffer.from('one'), key, true),
      encodeBlob(Buffer.from('two'), key, true),
    ])
    await expect(decodeBlob(a.hash, b.bytes, ROOM, find)).rejects.toMatchObject({ code: 'corrupt' })
    const claimed = Buffer.from(Buffer.from(a.bytes).toString('latin1').replace('"d1"', '"d2"'), 'latin1')
    await expect(decodeBlob(a.hash, claimed, ROOM, find)).rejects.toMatchObject({ code: 'corrupt' })
    const plain = await encodeBlob(Buffer.from('one'), null, false)
    await expect(decodeBlob(a.hash, plain.bytes, ROOM, find)).rejects.toMatchObject({ code: 'corrupt' })
  })
})

describe('a header', () => {
  it('is one line: a line break could move the border between header and body without changing the hash', () => {
    expect(decodeHeader(encodeHeader(header))).toEqual(header)
    for (const bytes of [
      Buffer.concat([encodeHeader(header), Buffer.from('\n')]),
      Buffer.from(JSON.stringify(JSON.parse(encodeHeader(header).toString()), null, 1)),
    ]) {
      expect(() => decodeHeader(bytes)).toThrow(/line break/)
    }
  })

  it('that says encrypted names a key', () => {
    expect(() => decodeHeader(encodeHeader({ ...header, encrypted: true }))).toThrow(/encrypted without a key/)
    expect(decodeHeader(encodeHeader({ ...header, encrypted: true, key: 'd1' })).encrypted).toBe(true)
  })

  it.each(['', 'a'.repeat(200), 'a b', 'ü', 'a\u0000'])('with the key id %j is refused', (id) => {
    expect(() => decodeHeader(encodeHeader({ ...header, key: id }))).toThrow(/malformed key id/)
  })
})

describe('comparing hashes', () => {
  it('answers no, and does not throw, for what is no hash', () => {
    expect(sameHash('a'.repeat(64), 'ü'.repeat(64))).toBe(false)
    expect(sameHash('a'.repeat(64), '')).toBe(false)
    expect(sameHash('a'.repeat(64), 'a'.repeat(64))).toBe(true)
  })
})
