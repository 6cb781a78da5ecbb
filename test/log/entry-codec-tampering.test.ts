import assert from 'node:assert/strict'
import { chainHash, chainIdentity } from '#src/codec/chain.js'
import { decodeHeader, encodeHeader } from '#src/codec/header.js'
import { type HoldfastError, isHoldfastError } from '#src/core/errors.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { parseCheckpointId } from '#src/log/entry/checkpoint-id.js'
import type { Driver, LogKey, StoredEntry } from '#src/log/contract.js'
import { emptyFold, type Fold } from '#src/log/entry/fold.js'
import { set } from '#src/log/entry/ops.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { beforeAll, describe, it } from 'vitest'
import {
  codecFor,
  flip,
  flipText,
  logKey,
  openSample,
  openStore,
  replaceEntry,
  rows,
  SAMPLE,
  tampering,
  writeSample,
} from './entry-codec-setup.js'

let driver: Driver
let log: LogKey
let fork: LogKey
beforeAll(async () => {
  ;({ driver, log, fork } = await openSample())
})

/** A byte of the version that now names a newer one is no damage that can be told from an upgrade. */
function isNamed(error: unknown): error is HoldfastError {
  return isHoldfastError(error, 'corrupt') || isHoldfastError(error, 'schema-too-new')
}

/** Opens a run of rows from a keyframe and returns how many verified, and why the next did not. */
async function openRows(of: LogKey, incarnation: string, entries: readonly StoredEntry[], on = driver) {
  try {
    const run = await codecFor(on, of).open({ before: emptyFold(incarnation), fromKeyframe: true }, entries)
    return { good: run.entries.length, failure: run.failure as unknown }
  } catch (failure) {
    return { good: -1, failure }
  }
}

/** Ways to change one entry: each byte, each character of the hash, each number; thoroughly, each in several ways. */
function* changes(entry: StoredEntry, thorough: boolean): Generator<[what: string, changed: StoredEntry]> {
  for (const part of ['header', 'body'] as const) {
    const bytes = entry[part]
    for (let at = 0; at < bytes.length; at++) {
      for (const mask of thorough ? new Set([1 << (at % 8), 0x80, 0xff]) : [1 << (at % 8)]) {
        yield [`${part} byte ${at} ^ ${mask}`, { ...entry, [part]: flip(bytes, at, mask) }]
      }
    }
    yield [`${part} cut`, { ...entry, [part]: bytes.subarray(0, -1) }]
    yield [`${part} longer`, { ...entry, [part]: Buffer.concat([bytes, Buffer.from(' ')]) }]
    yield [`${part} empty`, { ...entry, [part]: new Uint8Array() }]
  }
  for (let at = 0; at < entry.hash.length; at++) {
    for (const bit of thorough ? Array(16).keys() : [at % 8]) {
      yield [`hash ${at} bit ${bit}`, { ...entry, hash: flipText(entry.hash, at, 1 << bit) }]
    }
  }
  yield ['hash cut', { ...entry, hash: entry.hash.slice(1) }]
  yield ['hash empty', { ...entry, hash: '' }]
  for (const field of ['seq', 'keyframe'] as const) {
    for (const value of [entry[field] + 1, entry[field] - 1, 1e9])
      yield [`${field} ${value}`, { ...entry, [field]: value }]
  }
}

describe('one byte of a stored entry changed', () => {
  it.each([
    ['the first entry', SAMPLE.first],
    ['a delta with typed values', SAMPLE.typed],
    ['a compressed delta', SAMPLE.compressed],
    ['an entry with blobs', SAMPLE.blobs],
    ['a keyframe', SAMPLE.keyframe],
    ['a delta after a keyframe', SAMPLE.after],
    ['the last entry', SAMPLE.last],
  ])('is a named error: %s', async (_, seq) => {
    const { head, entries } = await rows(driver, log)
    const start = seq >= SAMPLE.keyframe ? SAMPLE.keyframe : 0
    const run = entries.slice(start)
    assert.equal((await openRows(log, head.incarnation, run)).good, run.length)
    const entry = entries[seq] as StoredEntry
    let tried = 0
    for (const [what, changed] of changes(entry, true)) {
      const { good, failure } = await openRows(log, head.incarnation, run.with(seq - start, changed))
      assert(isNamed(failure), `${what}: ${String(failure)}`)
      if (isHoldfastError(failure, 'corrupt')) assert(good <= seq - start, what)
      tried++
    }
    assert(tried > 1000)
  })

  it('is a named error: the first entry of a fork', async () => {
    const { head, entries } = await rows(driver, fork)
    assert.equal(entries.length, 1)
    assert.equal((await openRows(fork, head.incarnation, entries)).good, 1)
    for (const [what, changed] of changes(entries[0] as StoredEntry, true)) {
      const { good, failure } = await openRows(fork, head.incarnation, [changed])
      assert(isNamed(failure) && good <= 0, `${what}: ${String(failure)}`)
    }
  })

  it('is a named error: each blob of an entry', async () => {
    const { head, entries } = await rows(driver, log)
    const blobs = decodeHeader((entries[SAMPLE.blobs] as StoredEntry).header).blobs
    assert.equal(blobs.length, 3)
    const changed = tampering(driver)
    for (const name of blobs) {
      const stored = (await driver.getBlobs(log.tenant, [name])).get(name) as Uint8Array
      const attempts = [...stored.keys()].map((at) => flip(stored, at, 1 << (at % 8)))
      attempts.push(
        stored.subarray(1),
        stored.subarray(0, -1),
        Buffer.concat([stored, Buffer.from([0])]),
        new Uint8Array(),
      )
      for (const bytes of [...attempts, undefined]) {
        changed.tamper = { blob: (hash, same) => (hash === name ? bytes : same) }
        const { good, failure } = await openRows(log, head.incarnation, entries, changed)
        assert.equal(good, SAMPLE.blobs)
        assert(isHoldfastError(failure, 'corrupt'), String(failure))
      }
    }
  })

  it('is a named error: two blobs exchanged', async () => {
    const { head, entries } = await rows(driver, log)
    const [one, other] = decodeHeader((entries[SAMPLE.blobs] as StoredEntry).header).blobs as [string, string]
    const stored = await driver.getBlobs(log.tenant, [one, other])
    const changed = tampering(driver)
    changed.tamper = {
      blob: (hash, same) => (hash === one ? stored.get(other) : hash === other ? stored.get(one) : same),
    }
    const { good, failure } = await openRows(log, head.incarnation, entries, changed)
    assert.equal(good, SAMPLE.blobs)
    assert(isHoldfastError(failure, 'corrupt'))
  })
})

describe('an entry in another place than its own', () => {
  it('does not verify in another tenant, thread, branch or incarnation with the same entries', async () => {
    const { head, entries } = await rows(driver, log)
    for (const other of [logKey('bf-847', 'main', 'other'), logKey('bf-848'), logKey('bf-847', 'fork2')]) {
      const twin = await openMemory({ clock: virtualClock() })
      await writeSample(twin, other)
      const theirs = await rows(twin, other)
      // The same ids, times and contents: only the name of the log differs.
      assert.deepStrictEqual(theirs.entries[1]?.header, entries[1]?.header)
      assert.equal(theirs.head.incarnation, head.incarnation)
      const { good, failure } = await openRows(log, head.incarnation, theirs.entries)
      assert.equal(good, 0)
      assert(isHoldfastError(failure, 'corrupt'))
      const mixed = await openRows(log, head.incarnation, entries.with(2, theirs.entries[2] as StoredEntry))
      assert.equal(mixed.good, 2)
      assert(isHoldfastError(mixed.failure, 'corrupt'))
    }
    const elsewhere = await openRows(log, 'another', entries)
    assert.equal(elsewhere.good, 0)
    assert(isHoldfastError(elsewhere.failure, 'corrupt'))
  })

  it('does not verify under another seq, in another order, twice, or after a gap', async () => {
    const { head, entries } = await rows(driver, log)
    const renumbered = entries.with(2, { ...(entries[3] as StoredEntry), seq: 2 })
    const exchanged = entries.with(2, entries[3] as StoredEntry).with(3, entries[2] as StoredEntry)
    const twice = entries.toSpliced(2, 0, entries[1] as StoredEntry)
    const gap = entries.toSpliced(2, 1)
    for (const run of [renumbered, exchanged, twice, gap]) {
      const { good, failure } = await openRows(log, head.incarnation, run)
      assert.equal(good, 2)
      assert(isHoldfastError(failure, 'corrupt'))
      assert.equal(failure.data['seq'], 2)
    }
  })

  it('does not begin a run when it is no keyframe', async () => {
    const { head, entries } = await rows(driver, log)
    const { good, failure } = await openRows(log, head.incarnation, entries.slice(1))
    assert.equal(good, 0)
    assert(isHoldfastError(failure, 'corrupt'))
  })

  it('does not follow an entry that is not its parent', async () => {
    const { head, entries } = await rows(driver, log)
    const codec = codecFor(driver, log)
    const { entries: opened } = await codec.open({ before: emptyFold(head.incarnation), fromKeyframe: true }, entries)
    const before = opened[1]?.fold as Fold
    const fine = await codec.open({ before, fromKeyframe: false }, entries.slice(2))
    assert.equal(fine.failure, undefined)
    const other = await codec.open(
      { before: { ...before, hash: 'f'.repeat(64) }, fromKeyframe: false },
      entries.slice(2),
    )
    assert(isHoldfastError(other.failure, 'corrupt'))
    // A keyframe names its parent, so a chain that was cut before it is noticed too.
    const keyframe = await codec.open(
      { before: { ...(opened[3]?.fold as Fold), hash: 'f'.repeat(64) }, fromKeyframe: false },
      entries.slice(4),
    )
    assert(isHoldfastError(keyframe.failure, 'corrupt'))
  })
})

/** Seals bytes into a valid chain, as a writer with other rules or an intruder without a key to beat would. */
function forge(
  of: LogKey,
  incarnation: string,
  parent: string,
  entry: StoredEntry,
  body: unknown,
  header: object = {},
): StoredEntry {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const headerBytes = encodeHeader({ ...decodeHeader(entry.header), packing: 'plain', size: bytes.length, ...header })
  const hash = chainHash(chainIdentity(of.tenant, of.thread, of.branch, incarnation), parent, headerBytes, bytes)
  return { ...entry, header: headerBytes, body: bytes, hash }
}

describe('an entry whose hash is right but whose body makes no sense', () => {
  it.each([
    ['no JSON', 'hello'],
    ['no object', '[1]'],
    ['an unknown field', [{ other: 1 }]],
    ['an unknown operation', [{ ops: [['merge', ['a'], 1]] }]],
    ['an operation without a path', [{ ops: [['set', [], 1]] }]],
    [
      'an operation on a path of a million parts',
      [{ ops: [['set', ['a', ...Array.from({ length: 100_000 }, () => 'a')], 1]] }],
    ],
    ['an operation with too few parts', [{ ops: [['set', ['a']]] }]],
    ['operations that are no list', [{ ops: {} }]],
    ['an operation that does not fit the state', [{ ops: [['push', ['greeting'], [1]]] }]],
    ['an item that is not there', [{ ops: [['set', ['list', 99], 1]] }]],
    ['an index that is no object', [{ index: 5 }]],
    ['an index with an unknown field', [{ index: { owner: 'x' } }]],
    ['a status that is no text', [{ index: { status: 5 } }]],
    ['metadata that is no object', [{ index: { metadata: 'x' } }]],
    ['metadata of the wrong kind', [{ index: { metadata: { a: [] } } }]],
    ['tags that mark no entry', [{ index: { tags: { a: 'x' } } }]],
    ['a time that is none', [{ index: { wakeAt: 'soon' } }]],
    ['a fold where none can be', [{ fold: { state: {}, index: {} } }]],
    ['a pointer to a blob that it does not list', ['x', [['json-blob']]]],
    ['a pointer to another blob', [{ data: '0' }, [['text-blob', 'data']]]],
  ])('%s', async (_, body) => {
    const { head, entries } = await rows(driver, log)
    const forged = forge(log, head.incarnation, entries[0]?.hash as string, entries[1] as StoredEntry, body)
    const { good, failure } = await openRows(log, head.incarnation, [entries[0] as StoredEntry, forged])
    assert.equal(good, 1)
    assert(isHoldfastError(failure, 'corrupt'), String(failure))
  })

  it.each([
    ['no fold', {}],
    ['a fold that is none', { fold: 1 }],
    ['a state that is no object', { fold: { state: [], index: {} } }],
    ['an index without its fields', { fold: { state: {}, index: {} } }],
    [
      'an index with a field too many',
      {
        fold: {
          state: {},
          index: { status: '', createdAt: 0, expiresAt: null, wakeAt: null, metadata: {}, tags: {}, x: 1 },
        },
      },
    ],
    [
      'an index of the wrong kinds',
      {
        fold: {
          state: {},
          index: { status: '', createdAt: '0', expiresAt: null, wakeAt: null, metadata: {}, tags: {} },
        },
      },
    ],
    [
      'an unknown part',
      {
        fold: {
          state: {},
          index: { status: '', createdAt: 0, expiresAt: null, wakeAt: null, metadata: {}, tags: {} },
          x: 1,
        },
      },
    ],
    [
      'an origin that is none',
      {
        fold: {
          state: {},
          index: { status: '', createdAt: 0, expiresAt: null, wakeAt: null, metadata: {}, tags: {} },
          origin: {},
        },
      },
    ],
  ])('a keyframe with %s', async (_, body) => {
    const { head, entries } = await rows(driver, log)
    const parent = entries[SAMPLE.keyframe - 1]?.hash as string
    const forged = forge(log, head.incarnation, parent, entries[SAMPLE.keyframe] as StoredEntry, [body], { blobs: [] })
    const { good, failure } = await openRows(log, head.incarnation, [forged])
    assert.equal(good, 0)
    assert(isHoldfastError(failure, 'corrupt'), String(failure))
  })

  it('a size that is over the limit, before anything is unpacked', async () => {
    const { head, entries } = await rows(driver, log)
    for (const packing of ['plain', 'br', 'd1'] as const) {
      const forged = forge(log, head.incarnation, entries[0]?.hash as string, entries[1] as StoredEntry, [{}], {
        size: 2 ** 40,
        packing,
      })
      const { good, failure } = await openRows(log, head.incarnation, [entries[0] as StoredEntry, forged])
      assert.equal(good, 1)
      assert(isHoldfastError(failure, 'corrupt'))
      assert.match(failure.message, /limit/)
    }
  })
})

describe('a damaged log opened through a store', () => {
  async function damaged() {
    const changed = tampering(driver)
    const store = openStore(changed)
    const handle = await store.open(log)
    const folds: Fold[] = []
    for await (const { fold } of handle.entries()) folds.push(fold)
    return { changed, store, handle, folds }
  }

  it.each([
    ['a delta', SAMPLE.after],
    ['the last entry', SAMPLE.last],
    ['a keyframe', SAMPLE.keyframe],
  ])('names the last checkpoint before %s, and that one can be read', async (_, seq) => {
    const { changed, store, handle, folds } = await damaged()
    const entry = (await rows(driver, log)).entries[seq] as StoredEntry
    for (const [what, row] of changes(entry, false)) {
      changed.tamper = { entries: replaceEntry(seq, () => row) }
      await assert.rejects(store.open(log), (error) => {
        assert(isNamed(error), what)
        if (error.code === 'schema-too-new') return true
        const lastGood = parseCheckpointId(error.data['lastGood'])
        // A keyframe that claims another seq hides where the damage begins; older checkpoints still verify.
        if (what.startsWith('seq')) assert(lastGood.seq < seq, what)
        else assert.equal(lastGood.seq, seq - 1, what)
        assert(error.remedy.includes(String(error.data['lastGood'])))
        return true
      })
    }
    changed.tamper = { entries: replaceEntry(seq, (row) => ({ ...row, body: flip(row.body, 0, 1) })) }
    const error = await store.open(log).then(
      () => undefined,
      (failure: unknown) => failure as HoldfastError,
    )
    const lastGood = String(error?.data['lastGood'])
    assert.deepStrictEqual((await handle.at(lastGood)).state, folds[seq - 1]?.state)
    const verification = await store.verify(log)
    assert.equal(verification?.ok, false)
    assert.equal(verification?.lastGood, lastGood)
    const rescued = await handle.fork({ at: lastGood, branch: logKey('x', `rescue-${seq}`).branch })
    assert.deepStrictEqual(rescued.fold.state, folds[seq - 1]?.state)
  })

  it('notices a row that is missing in the middle or at the end', async () => {
    const { changed, store, handle, folds } = await damaged()
    for (const seq of [SAMPLE.after, SAMPLE.last]) {
      changed.tamper = { entries: (entries) => entries.filter((entry) => entry.seq !== seq) }
      const error = await store.open(log).then(
        () => undefined,
        (failure: unknown) => failure as HoldfastError,
      )
      assert(isHoldfastError(error, 'corrupt'))
      assert.equal(parseCheckpointId(error.data['lastGood']).seq, seq - 1)
      assert.deepStrictEqual((await handle.at(String(error.data['lastGood']))).state, folds[seq - 1]?.state)
    }
  })

  it('says so when nothing verifies at all', async () => {
    const { changed, store } = await damaged()
    changed.tamper = { entries: (entries) => entries.map((entry) => ({ ...entry, body: flip(entry.body, 0, 1) })) }
    await assert.rejects(
      store.open(log),
      (error) => isHoldfastError(error, 'corrupt') && error.data['lastGood'] === undefined,
    )
  })

  it('notices a head that does not belong to the last entry', async () => {
    const { changed, store } = await damaged()
    for (const change of [
      { hash: 'f'.repeat(64) },
      { epoch: 3 },
      { incarnation: 'another' },
      { seq: SAMPLE.last + 1 },
    ]) {
      changed.tamper = { head: (head) => ({ ...head, ...change }) }
      await assert.rejects(store.open(log), (error) => isHoldfastError(error, 'corrupt'))
    }
  })

  it('finds a keyframe that says something else than the entries before it', async () => {
    const other = await openMemory({ clock: virtualClock() })
    await writeSample(other, log)
    const store = openStore(other)
    const { fold } = await store.open(log)
    assert.equal((await store.verify(log))?.ok, true)
    const lying: Fold = { ...fold, state: { ...fold.state, planted: true } }
    const { entry } = await codecFor(other, log).seal(
      lying,
      { kind: 'step', keyframe: true, ops: [set('a', 1)] },
      { appendId: 'x', epoch: 0, at: fold.at },
    )
    const { head } = await rows(other, log)
    const { incarnation, seq, hash, epoch } = head
    const append = {
      log,
      expect: { incarnation, seq, hash, epoch },
      entries: [entry],
      incarnation,
      epoch,
      lease: { kind: 'keep' },
      index: head.index,
      labelsChanged: false,
    } as const
    assert.deepEqual(await other.append([append]), [{ status: 'appended' }])
    const verification = await store.verify(log)
    assert.equal(verification?.ok, false)
    assert.match(verification?.problems.join() ?? '', /Keyframe 7 differs/)
  })
})
