import type { KeyOptions } from 'holdfast'
import { ops } from 'holdfast/log'
import { beforeEach, describe, expect, it } from 'vitest'
import { chainHash, chainIdentity } from '#src/codec/chain.js'
import { decodeHeader, type EntryHeader, encodeHeader } from '#src/codec/header.js'
import { parseBranchId } from '#src/core/ids.js'
import { findLog, type MemoryLog, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import type { LogKey, StoredEntry } from '#src/log/contract.js'
import { KEY_THREAD } from '#src/log/keys/keys.js'
import {
  adopting,
  hmacOnly,
  K1,
  K2,
  keys,
  logKey,
  memoryPlace,
  type Place,
  read,
  write,
} from '../support/keyed-store.js'

const { set } = ops

// An attacker here can read and write everything that the backend holds, but has no key.

const LOG = logKey('talk')
const TENANT = LOG.tenant
const LARGE = 'large '.repeat(1000)

let place: Place
let store: MemoryStore

beforeEach(async () => {
  const made = await memoryPlace()
  place = made
  store = made.store
})

function rows(log: LogKey): StoredEntry[] {
  return (findLog(store, log) as MemoryLog).entries
}

/** Puts a whole log, head row and all, under another name. */
function plant(from: LogKey, to: LogKey): void {
  const source = findLog(store, from) as MemoryLog
  const tenant = store.threads.get(to.tenant) ?? new Map()
  store.threads.set(to.tenant, tenant)
  const thread = tenant.get(to.thread) ?? { branches: new Map(), tombstone: undefined }
  tenant.set(to.thread, thread)
  thread.branches.set(to.branch, { ...source, key: to, entries: [...source.entries] })
}

/** A well-formed entry without a key, which anybody can make. */
function forge(log: LogKey, seq: number, parent: string, fields: Partial<EntryHeader>, body: string): StoredEntry {
  const { incarnation } = findLog(store, log) as MemoryLog
  const bytes = Buffer.from(body)
  const header: EntryHeader = {
    seq,
    epoch: 0,
    kind: 'step',
    appendId: 'forged',
    at: 0,
    keyframe: seq,
    packing: 'plain',
    size: bytes.length,
    parent,
    base: null,
    key: null,
    encrypted: false,
    blobs: [],
    ...fields,
  }
  const text = encodeHeader(header)
  const identity = chainIdentity(log.tenant, log.thread, log.branch, incarnation)
  return { seq, keyframe: header.keyframe, header: text, body: bytes, hash: chainHash(identity, parent, text, bytes) }
}

const FORGED_OPS = JSON.stringify([{ ops: [['set', ['forged'], true]] }])
const FORGED_FOLD = JSON.stringify([
  {
    fold: {
      state: { forged: true },
      index: { status: '', createdAt: 0, expiresAt: null, wakeAt: null, metadata: {}, tags: {} },
    },
  },
])

async function expectRefused(log: LogKey = LOG, options: KeyOptions = keys, problem = /./): Promise<void> {
  const opening = (await place.open(options)).open(log)
  await expect(opening).rejects.toMatchObject({ name: 'CorruptError', message: expect.stringMatching(problem) })
}

describe.each([
  ['encrypted', keys],
  ['HMAC only', hmacOnly],
])('a changed byte, %s', (_mode, options) => {
  // A changed version may be one that is too new.
  const NAMED = { code: expect.stringMatching(/^(corrupt|missing-key|schema-too-new)$/) }
  const REFUSED = { code: expect.stringMatching(/^(corrupt|schema-too-new)$/) }

  it('of an entry is found, wherever it is', async () => {
    await write(await place.open(options), LOG, 'first', 1)
    await write(await place.open(options), LOG, 'text', LARGE)
    const entries = rows(LOG)
    const fresh = await place.open(options)
    for (const [i, entry] of [...entries].entries()) {
      for (const part of ['header', 'body'] as const) {
        for (let at = 0; at < entry[part].length; at++) {
          for (const bit of [1, 0x80]) {
            const altered = Buffer.from(entry[part])
            altered[at] = (altered[at] as number) ^ bit
            entries[i] = { ...entry, [part]: altered }
            await expect(fresh.open(LOG), `entry ${i} ${part} ${at}`).rejects.toMatchObject(REFUSED)
          }
        }
      }
      entries[i] = { ...entry, hash: 'é'.repeat(64) }
      await expect(fresh.open(LOG)).rejects.toMatchObject({ name: 'CorruptError' })
      entries[i] = entry
    }
    expect(await read(fresh, LOG)).toEqual({ first: 1, text: LARGE })
  })

  it('of a blob is found, wherever it is', async () => {
    await write(await place.open(options), LOG, 'text', LARGE)
    const blobs = store.blobs.get(TENANT) as Map<string, { bytes: Uint8Array; touchedAt: number }>
    const fresh = await place.open(options)
    for (const [name, blob] of [...blobs]) {
      for (let at = 0; at < blob.bytes.length; at++) {
        const altered = Buffer.from(blob.bytes)
        altered[at] = (altered[at] as number) ^ 1
        blobs.set(name, { ...blob, bytes: altered })
        await expect(fresh.open(LOG), `byte ${at}`).rejects.toMatchObject({ name: 'CorruptError' })
      }
      blobs.set(name, blob)
    }
    expect(blobs.size).toBe(1)
    expect(await read(fresh, LOG)).toEqual({ text: LARGE })
  })

  it('of the key log is found, wherever it is', async () => {
    const writer = await place.open(options)
    await write(writer, LOG, 'first', 1)
    await writer.keys(TENANT).rotate()
    const entries = rows({ ...LOG, thread: KEY_THREAD })
    for (const [i, entry] of [...entries].entries()) {
      for (const part of ['header', 'body'] as const) {
        for (let at = 0; at < entry[part].length; at++) {
          const altered = Buffer.from(entry[part])
          altered[at] = (altered[at] as number) ^ 1
          entries[i] = { ...entry, [part]: altered }
          await expect((await place.open(options)).open(LOG), `entry ${i} ${part} ${at}`).rejects.toMatchObject(NAMED)
        }
      }
      entries[i] = entry
    }
    expect(await read(await place.open(options), LOG)).toEqual({ first: 1 })
  })
})

describe('an entry in another place is refused', () => {
  const elsewhere: [string, LogKey][] = [
    ['thread', logKey('other')],
    ['tenant', logKey('talk', 'other')],
    ['branch', logKey('talk', 'default', 'other')],
  ]

  it.each(elsewhere)('as a whole log in another %s', async (_what, to) => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'secret', 1)
    await write(writer, logKey('warm up', to.tenant), 'x', 1)
    plant(LOG, to)
    await expectRefused(to)
  })

  it.each(elsewhere)('as one entry in another %s', async (_what, to) => {
    const writer = await place.open(keys)
    for (const log of [LOG, to]) {
      await write(writer, log, 'a', 1)
      await write(writer, log, 'b', 2)
    }
    rows(to)[1] = rows(LOG)[1] as StoredEntry
    await expectRefused(to)
  })

  it('in another incarnation of the same log', async () => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'a', 1)
    const [old] = rows(LOG) as [StoredEntry]
    await writer.erase({ ...LOG, tombstone: null })
    await write(await place.open(keys), LOG, 'a', 2)
    rows(LOG)[0] = old
    await expectRefused()
  })

  it('in another order, or with one left out', async () => {
    const writer = await place.open(keys)
    for (const name of ['a', 'b', 'c']) await write(writer, LOG, name, 1)
    const [a, b, c] = [...rows(LOG)] as [StoredEntry, StoredEntry, StoredEntry]
    rows(LOG).splice(0, 3, a, { ...c, seq: 1 }, { ...b, seq: 2 })
    await expectRefused()
    rows(LOG).splice(0, 3, a, c)
    await expectRefused()
    rows(LOG).splice(0, 3, b, c)
    await expectRefused()
  })
})

describe('an older past', () => {
  it('is noticed by a handle that saw the newer one', async () => {
    const handle = await (await place.open(keys)).open(LOG)
    for (let i = 0; i < 3; i++) await handle.update(() => [{ kind: 'step', ops: [set('i', i)] }])
    rows(LOG).pop()
    await expect(handle.refresh()).rejects.toMatchObject({ code: 'data-loss' })
    await expect(handle.update(() => [{ kind: 'step' }])).rejects.toMatchObject({ code: 'data-loss' })
  })

  it('is not noticed by one that did not: the documented limit', async () => {
    const writer = await place.open(keys)
    for (let i = 0; i < 3; i++) await write(writer, LOG, 'i', i)
    rows(LOG).pop()
    expect(await read(await place.open(keys), LOG)).toEqual({ i: 1 })
  })
})

describe('a false key id is refused', () => {
  it('of another data key, of another tenant, of a master, and of none', async () => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'a', 1)
    await write(writer, logKey('talk', 'other'), 'a', 1)
    const first = (await writer.keys(TENANT).status()).current as string
    const second = (await writer.keys(TENANT).rotate()).current as string
    const foreign = (await writer.keys(logKey('x', 'other').tenant).status()).current as string
    const [entry] = rows(LOG) as [StoredEntry]
    const header = decodeHeader(entry.header)
    expect(header.key).toBe(first)
    for (const key of [second, foreign, 'master:k1', 'k1', 'unheard-of', null]) {
      rows(LOG)[0] = { ...entry, header: encodeHeader({ ...header, key, encrypted: key !== null }) }
      await expectRefused()
    }
    rows(LOG)[0] = { ...entry, header: encodeHeader({ ...header, encrypted: false }) }
    await expectRefused(LOG, keys, /hash/)
  })
})

describe('without a key, nothing can be written into a tenant that always had keys', () => {
  beforeEach(async () => write(await place.open(keys), LOG, 'a', 1))

  it('no entry on top, however it is dated', async () => {
    const [entry] = rows(LOG) as [StoredEntry]
    for (const at of [0, Date.now() + 1e9]) {
      rows(LOG)[1] = forge(LOG, 1, entry.hash, { at, keyframe: 0, parent: null }, FORGED_OPS)
      await expectRefused(LOG, keys, /not authenticated/)
      rows(LOG)[1] = forge(LOG, 1, entry.hash, { at }, FORGED_FOLD)
      await expectRefused(LOG, keys, /not authenticated/)
    }
  })

  it('no log of its own', async () => {
    rows(LOG)[0] = forge(LOG, 0, '0'.repeat(64), {}, FORGED_OPS)
    await expectRefused(LOG, keys, /not authenticated/)
    const plain = await memoryPlace()
    await write(await plain.open(), LOG, 'a', 'forged')
    store.threads.get(TENANT)?.set(LOG.thread, plain.store.threads.get(TENANT)?.get(LOG.thread) as never)
    await expectRefused(LOG, keys, /not authenticated/)
  })
})

describe('after a cut-over, without a key', () => {
  const OLD = logKey('old')
  beforeEach(async () => {
    await write(await place.open(), OLD, 'a', 1)
    await write(await place.open(keys), LOG, 'a', 1)
  })

  it('no entry can follow one with a key, however it is dated', async () => {
    const [entry] = rows(LOG) as [StoredEntry]
    const reader = await (await place.open(keys)).open(LOG)
    rows(LOG)[1] = forge(LOG, 1, entry.hash, { keyframe: 0, parent: null }, FORGED_OPS)
    await expectRefused(LOG, keys, /not authenticated/)
    await expect(reader.refresh()).rejects.toMatchObject({ name: 'CorruptError' })
    expect(await (await place.open(keys)).verify(LOG)).toMatchObject({ ok: false, entries: 1 })
  })

  it('a keyframe can, if it is dated back: the documented limit of adoptPlain, which verify does not have', async () => {
    const [entry] = rows(LOG) as [StoredEntry]
    const reader = await (await place.open(keys)).open(LOG)
    rows(LOG)[1] = forge(LOG, 1, entry.hash, {}, FORGED_FOLD)
    expect(await read(await place.open(adopting), LOG)).toEqual({ forged: true })
    await expectRefused(LOG, keys, /not authenticated/)
    expect(await (await place.open(keys)).verify(LOG)).toMatchObject({ ok: false, entries: 1 })
    await expect(reader.refresh()).rejects.toMatchObject({ name: 'CorruptError' })
  })

  it('a whole log can be dated back: the documented limit of adoptPlain', async () => {
    rows(OLD)[0] = forge(OLD, 0, '0'.repeat(64), {}, FORGED_OPS)
    expect(await read(await place.open(adopting), OLD)).toEqual({ forged: true })
    await expectRefused(OLD, keys, /not authenticated/)
    rows(OLD)[0] = forge(OLD, 0, '0'.repeat(64), { at: Date.now() + 60_000 }, FORGED_OPS)
    await expectRefused(OLD, adopting, /not authenticated/)
  })

  it('the plain past under an entry with a key can not be changed', async () => {
    await write(await place.open(adopting), OLD, 'b', 2)
    expect(await read(await place.open(keys), OLD)).toEqual({ a: 1, b: 2 })
    rows(OLD)[0] = forge(OLD, 0, '0'.repeat(64), {}, FORGED_OPS)
    await expectRefused(OLD, keys, /not authenticated/)
    await expectRefused(OLD, adopting, /hash/)
  })
})

describe('blobs', () => {
  it('can not be swapped, replaced by plain ones, or taken from another tenant', async () => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'text', LARGE)
    await write(writer, logKey('two'), 'text', `${LARGE}!`)
    await write(writer, logKey('talk', 'other'), 'text', LARGE)
    const mine = store.blobs.get(TENANT) as Map<string, { bytes: Uint8Array; touchedAt: number }>
    const [name, other] = [...mine.keys()] as [string, string]
    const [foreign] = [...(store.blobs.get(logKey('x', 'other').tenant)?.values() ?? [])]
    const line = JSON.stringify({ v: 1, size: LARGE.length, packing: 'plain' })
    const fakes = [mine.get(other)?.bytes, foreign?.bytes, Buffer.from(`${line}\n${LARGE}`), Buffer.alloc(0)]
    for (const bytes of fakes) {
      mine.set(name, { bytes: bytes as Uint8Array, touchedAt: 0 })
      await expectRefused()
    }
    mine.delete(name)
    await expectRefused(LOG, keys, /missing/)
  })
})

describe('the key log', () => {
  const KEY_LOG = { ...LOG, thread: KEY_THREAD }
  const OTHER_KEY_LOG = { ...logKey('talk', 'other'), thread: KEY_THREAD }
  const unverified = { code: 'corrupt', message: expect.stringMatching(/key log/) }

  it('of another tenant is refused', async () => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'a', 1)
    await write(writer, logKey('talk', 'other'), 'a', 1)
    plant(OTHER_KEY_LOG, KEY_LOG)
    await expect((await place.open(keys)).open(LOG)).rejects.toMatchObject(unverified)
  })

  it('of another store under the same master verifies, but holds none of the keys that entries name here', async () => {
    const other = await memoryPlace()
    await write(await other.open(keys), LOG, 'a', 1)
    await write(await place.open(keys), LOG, 'a', 1)
    store.threads.get(TENANT)?.set(KEY_THREAD, other.store.threads.get(TENANT)?.get(KEY_THREAD) as never)
    await expectRefused(LOG, keys, /is not in the key log/)
  })

  it('without a key, or under a key that is not configured, is refused', async () => {
    const writer = await place.open(keys)
    await write(writer, LOG, 'a', 1)
    const [entry] = rows(KEY_LOG) as [StoredEntry]
    rows(KEY_LOG)[0] = forge(KEY_LOG, 0, '0'.repeat(64), {}, Buffer.from(entry.body).toString())
    await expect((await place.open(keys)).open(LOG)).rejects.toMatchObject(unverified)
    const mallory = await memoryPlace()
    await write(await mallory.open({ current: 'm', masters: { m: K2 } }), LOG, 'a', 1)
    store.threads.get(TENANT)?.set(KEY_THREAD, mallory.store.threads.get(TENANT)?.get(KEY_THREAD) as never)
    await expect((await place.open(keys)).open(LOG)).rejects.toMatchObject({ code: 'missing-key', data: { key: 'm' } })
  })

  it('from before a rewrap does not bring the dropped master back', async () => {
    await write(await place.open(keys), LOG, 'a', 1)
    plant(KEY_LOG, logKey('copy'))
    await (await place.open({ current: 'k2', masters: { k1: K1, k2: K2 } })).keys(TENANT).rewrap()
    plant(logKey('copy'), KEY_LOG)
    const reader = await place.open({ current: 'k2', masters: { k2: K2 } })
    await expect(reader.open(LOG)).rejects.toMatchObject({ code: 'missing-key', data: { key: 'k1' } })
  })

  it('that lost its newest key is named, and what older keys wrote stays readable', async () => {
    const writer = await place.open(keys)
    const log = await writer.open(LOG)
    await log.update(() => [{ kind: 'step' }])
    await writer.keys(TENANT).rotate()
    await log.fork({ branch: parseBranchId('fork') })
    rows(KEY_LOG).pop()
    await expectRefused({ ...LOG, branch: parseBranchId('fork') }, keys, /key log is older/)
    expect((await (await place.open(keys)).open(LOG)).fold.seq).toBe(0)
  })
})
