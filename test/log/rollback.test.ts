import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync, appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Holdfast } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { type Anchor, type Anchors, fileAnchors, LogStore, type LogStoreOptions, ops } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, findLog, type MemoryLog, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import { BlobShelf } from '#src/log/read/blob-shelf.js'
import type { LogKey } from '#src/log/contract.js'
import { EntryCodec } from '#src/log/entry/entry-codec.js'
import { GroupCommit } from '#src/log/write/group-commit.js'
import { parseKeyOptions } from '#src/log/keys/key-options.js'
import { KeyRing } from '#src/log/keys/key-ring.js'
import { KEY_THREAD } from '#src/log/keys/keys.js'
import { NO_OBSERVER } from '#src/telemetry/observer.js'
import { keys, logKey, read, write } from '../support/keyed-store.js'

const { set } = ops

// Somebody who can write to the store puts an older copy of something back. It is genuine, so that no key tells.

const LOG = logKey('talk')
const KEY_LOG = { ...LOG, thread: KEY_THREAD }
const LOST = { code: 'data-loss' }

let store: MemoryStore
beforeEach(() => {
  store = createMemoryStore()
})

async function open(options: LogStoreOptions = { keys }): Promise<LogStore> {
  return new LogStore(await openMemory({ store }), options)
}

/** A copy of a log as it is now, and how to put it back. */
function copyLog(key: LogKey): () => void {
  const log = findLog(store, key) as MemoryLog
  const copy = { ...log, entries: [...log.entries] }
  return () => {
    const { entries, ...rest } = copy
    Object.assign(log, rest)
    log.entries.splice(0, log.entries.length, ...entries)
  }
}

function itemOf(space: string, key: string) {
  const slot = store.items.get(LOG.tenant)?.get(space)?.items.get(key)
  if (slot === undefined) throw new Error('no such item')
  return slot
}

const notes = (hf: Holdfast) => hf.store.scope({ user: 'u' }).collection<unknown>('notes')
const SPACE = '{user=u}notes'

/** Anchors in memory, as a bucket would keep them. */
function bucket(everyMs = 0): Anchors & { readonly kept: Anchor[] } {
  const kept: Anchor[] = []
  return {
    kept,
    everyMs,
    read: async () => [...kept],
    write: async (anchors) => {
      kept.push(...anchors)
    },
  }
}

describe('an older key log', () => {
  it('is noticed by a process that knew the newer one, and no retired key is used again', async () => {
    const clock = virtualClock()
    const writer = await open({ keys, clock })
    await write(writer, LOG, 'a', 1)
    const putBack = copyLog(KEY_LOG)
    await writer.keys(LOG.tenant).rotate()
    await write(writer, LOG, 'b', 2)
    putBack()
    await expect(writer.keys(LOG.tenant).status()).rejects.toMatchObject(LOST)
    // After five minutes a writer looks whether another process rotated.
    await clock.advance(5 * 60_000 + 1)
    await expect(write(writer, logKey('new'), 'c', 3)).rejects.toMatchObject(LOST)
  })

  it('is noticed by any process that reads an entry under the newer key', async () => {
    const writer = await open()
    await write(writer, LOG, 'a', 1)
    const putBack = copyLog(KEY_LOG)
    await writer.keys(LOG.tenant).rotate()
    await write(writer, LOG, 'b', 2)
    putBack()
    await expect((await open()).open(LOG)).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringMatching(/key log/),
    })
  })

  it('that is gone is noticed by a process that knew it', async () => {
    const writer = await open()
    await write(writer, LOG, 'a', 1)
    store.threads.get(LOG.tenant)?.delete(KEY_THREAD)
    await expect(writer.keys(LOG.tenant).status()).rejects.toMatchObject(LOST)
  })
})

describe('a retired data key', () => {
  /** Entries by somebody who got hold of a data key and can write to the store. */
  async function forgeUnder(id: string, ...names: string[]): Promise<void> {
    const driver = await openMemory({ store })
    const environment = { driver, commit: new GroupCommit(driver), clock: systemClock(), limits: DEFAULT_LIMITS }
    const rest = { observer: NO_OBSERVER, randomId: () => 'forged' }
    const ring = new KeyRing({ ...environment, ...rest } as never, parseKeyOptions(keys))
    const key = await ring.find(LOG.tenant, id)
    const source = { encrypt: true, current: async () => key } as never
    const shelf = new BlobShelf(driver, LOG.tenant, { threshold: 1e6, maxBytes: 1e6 })
    const codec = new EntryCodec({ log: LOG, limits: DEFAULT_LIMITS, shelf, keys: source })
    let { fold } = await (await open()).open(LOG)
    for (const name of names) {
      const sealing = { appendId: 'forged', epoch: fold.epoch, at: fold.at }
      const sealed = await codec.seal(fold, { kind: 'step', ops: [set(name, true)] }, sealing)
      ;(findLog(store, LOG) as MemoryLog).entries.push(sealed.entry)
      fold = sealed.fold
    }
  }

  it('writes nothing on top of an entry under a newer one', async () => {
    const writer = await open()
    await write(writer, LOG, 'a', 1)
    const first = (await writer.keys(LOG.tenant).status()).current as string
    await forgeUnder(first, 'before')
    expect(await read(await open(), LOG)).toEqual({ a: 1, before: true })
    await writer.keys(LOG.tenant).rotate()
    await write(writer, LOG, 'b', 2)
    const reader = await (await open()).open(LOG)
    await forgeUnder(first, 'after', 'and more')
    const refused = { code: 'corrupt', message: expect.stringMatching(/retired/) }
    await expect((await open()).open(LOG)).rejects.toMatchObject(refused)
    await expect(reader.refresh()).rejects.toMatchObject(refused)
    expect(await (await open()).verify(LOG)).toMatchObject({ ok: false, entries: 3 })
  })
})

describe('an item', () => {
  it('that was put back to an older version is noticed by a process that saw the newer one', async () => {
    const hf = new Holdfast(await open())
    await notes(hf).put('k', 'old')
    const { item } = itemOf(SPACE, 'k')
    await notes(hf).put('k', 'new')
    const newer = itemOf(SPACE, 'k').item
    itemOf(SPACE, 'k').item = item
    await expect(notes(hf).get('k')).rejects.toMatchObject(LOST)
    await expect(notes(hf).list()).rejects.toMatchObject(LOST)
    itemOf(SPACE, 'k').item = newer
    expect((await notes(hf).get('k'))?.value).toBe('new')
    await notes(hf).delete('k')
    itemOf(SPACE, 'k').item = item
    await expect(notes(hf).get('k')).rejects.toMatchObject(LOST)
  })

  it('ends when it was sealed to end, whatever its row says', async () => {
    const clock = virtualClock()
    const hf = new Holdfast(await open({ keys, clock }))
    await notes(hf).put('k', 'ends', { ttlMs: 1000 })
    await notes(hf).put('stays', 'here')
    for (const lifted of [null, clock.now() + 1e9]) {
      const slot = itemOf(SPACE, 'k')
      Object.assign(slot, { expiresAt: lifted })
      if (slot.item) Object.assign(slot.item, { expiresAt: lifted })
      const reader = new Holdfast(await open({ keys, clock }))
      expect((await notes(reader).get('k'))?.expiresAt?.getTime()).toBe(clock.now() + 1000)
    }
    await clock.advance(1000)
    expect(await notes(hf).get('k')).toBeUndefined()
    expect((await notes(hf).list()).items.map(({ key }) => key)).toEqual(['stays'])
    expect((await notes(hf).list({ limit: 1 })).items.map(({ key }) => key)).toEqual(['stays'])
  })

  it('that reading keeps alive still is', async () => {
    const clock = virtualClock()
    const hf = new Holdfast(await open({ keys, clock }))
    const kept = hf.store.scope({ user: 'u' }).collection('kept', { ttlMs: 1000, refreshOnRead: true })
    await kept.put('k', 1)
    for (let i = 0; i < 3; i++) {
      await clock.advance(900)
      expect((await kept.get('k'))?.value).toBe(1)
    }
    await clock.advance(1000)
    expect(await kept.get('k')).toBeUndefined()
  })
})

describe('anchors', () => {
  it('make a thread that was put back, or removed, known to a process that opens it fresh', async () => {
    const anchors = bucket()
    const writer = await open({ keys, anchors })
    await write(writer, LOG, 'a', 1)
    const putBack = copyLog(LOG)
    await write(writer, LOG, 'b', 2)
    await writer.close()
    expect(await read(await open({ keys, anchors }), LOG)).toEqual({ a: 1, b: 2 })
    putBack()
    expect(await read(await open(), LOG)).toEqual({ a: 1 })
    await expect((await open({ keys, anchors })).open(LOG)).rejects.toMatchObject({
      ...LOST,
      message: expect.stringMatching(/ended with entry 1, and now ends with 0/),
    })
    store.threads.get(LOG.tenant)?.delete(LOG.thread)
    await expect((await open({ keys, anchors })).open(LOG)).rejects.toMatchObject({
      ...LOST,
      message: expect.stringMatching(/is gone/),
    })
  })

  it('make an older key log known, also to a process that never saw the newer one', async () => {
    const anchors = bucket()
    const writer = await open({ keys, anchors })
    await write(writer, LOG, 'a', 1)
    const putBack = copyLog(KEY_LOG)
    await writer.keys(LOG.tenant).rotate()
    await writer.close()
    putBack()
    await expect(write(await open({ keys, anchors }), logKey('new'), 'b', 2)).rejects.toMatchObject(LOST)
  })

  it('make an older item known, and one that is gone to verifyAnchors', async () => {
    const anchors = bucket()
    const hf = new Holdfast(await open({ keys, anchors, clock: virtualClock() }))
    await notes(hf).put('k', 'old')
    const { item } = itemOf(SPACE, 'k')
    const later = virtualClock()
    later.setNow(later.now() + 1000)
    const writer = new Holdfast(await open({ keys, anchors, clock: later }))
    await notes(writer).put('k', 'new')
    await writer.close()
    itemOf(SPACE, 'k').item = item
    const reader = new Holdfast(await open({ keys, anchors, clock: later }))
    await expect(notes(reader).get('k')).rejects.toMatchObject(LOST)
    expect((await reader.verifyAnchors(anchors)).problems.join()).toMatch(/Item "k" .* older/)
    itemOf(SPACE, 'k').item = null
    expect((await reader.verifyAnchors(anchors)).problems.join()).toMatch(/Item "k" .* gone/)
  })

  it('know of what was erased, pruned, forked and made again', async () => {
    const anchors = bucket()
    const hf = new Holdfast(await open({ keys, anchors }))
    const log = await hf.log('talk')
    for (let i = 0; i < 5; i++) await log.update(() => [{ kind: 'step', ops: [set('i', i)], keyframe: true }])
    await log.fork({ branch: 'side', at: 2 })
    await hf.prune('talk', 3)
    await (await hf.log('gone')).update(() => [{ kind: 'step' }])
    await hf.erase('gone')
    await (await hf.log('again')).update(() => [{ kind: 'step' }])
    await hf.erase('again')
    await (await hf.log('again')).update(() => [{ kind: 'step' }])
    await hf.close()
    const other = new Holdfast(await open({ keys, anchors }))
    for (const thread of ['talk', 'gone', 'again']) await other.log(thread)
    expect(await other.verifyAnchors(anchors)).toMatchObject({ ok: true, problems: [] })
  })

  it('are read again before an erasure by another process counts as a loss', async () => {
    const anchors = bucket()
    const [a, b] = [new Holdfast(await open({ keys, anchors })), new Holdfast(await open({ keys, anchors }))]
    await (await a.log('talk')).update(() => [{ kind: 'step' }])
    await a.close()
    await b.log('talk')
    const c = new Holdfast(await open({ keys, anchors }))
    await c.erase('talk')
    await c.close()
    expect((await b.log('talk')).exists).toBe(false)
  })

  it('find a past that was put back and written to since, where verify compares them', async () => {
    const anchors = bucket()
    const writer = await open({ keys, anchors })
    await write(writer, LOG, 'a', 1)
    const putBack = copyLog(LOG)
    await write(writer, LOG, 'b', 2)
    await writer.close()
    putBack()
    // Somebody who does not look at anchors goes on from there.
    await write(await open(), LOG, 'b', 'other')
    await write(await open(), LOG, 'c', 3)
    const { ok, problems } = await new Holdfast(await open()).verifyAnchors(anchors)
    expect([ok, problems.join()]).toEqual([false, expect.stringMatching(/holds another entry 1/)])
  })

  it('that can not be written are tried again, and say so when the store closes', async () => {
    const kept: Anchor[] = []
    let broken = true
    const anchors: Anchors = {
      everyMs: 0,
      write: async (more) => {
        if (broken) throw new Error('the bucket does not answer')
        kept.push(...more)
      },
    }
    const first = await open({ anchors })
    await write(first, LOG, 'a', 1)
    await expect(first.close()).rejects.toThrow('the bucket does not answer')
    broken = false
    const second = await open({ anchors })
    await write(second, LOG, 'b', 2)
    await second.close()
    expect(kept).toMatchObject([{ log: ['default', 'talk', 'main'], seq: 1 }])
  })

  it.each([
    ['no place', {}],
    ['a function for a place', () => {}],
    ['a time that is none', { write: async () => {}, everyMs: -1 }],
  ])('refuse %s', async (_what, anchors) => {
    await expect(open({ anchors: anchors as never })).rejects.toMatchObject({ data: { field: 'anchors' } })
  })
})

describe('anchors in a file', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-anchors-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('are for their owner alone, hold no content, and outlive the process', async () => {
    const path = join(folder, 'anchors.jsonl')
    const hf = new Holdfast(await open({ anchors: fileAnchors(path) }))
    await (await hf.log('talk')).update(() => [{ kind: 'step', ops: [set('secret', 'hunter2')] }])
    await notes(hf).put('k', 'hunter2')
    await hf.close()
    expect(readFileSync(path, 'utf8')).not.toContain('hunter2')
    if (process.platform !== 'win32') expect(statSync(path).mode & 0o777).toBe(0o600)
    expect([...((await fileAnchors(path).read?.()) ?? [])]).toHaveLength(2)
    store.threads.clear()
    await expect(new Holdfast(await open({ anchors: fileAnchors(path) })).log('talk')).rejects.toMatchObject(LOST)
  })

  it('survive half a line at the end, and are refused when a line is damaged', async () => {
    const path = join(folder, 'anchors.jsonl')
    const anchor: Anchor = { log: ['t', 'a', 'main'], incarnation: 'i', seq: 1, hash: 'a'.repeat(64) }
    await fileAnchors(path).write([anchor])
    appendFileSync(path, '{"log":["t","b"')
    expect([...((await fileAnchors(path).read?.()) ?? [])]).toEqual([anchor])
    await fileAnchors(path).write([{ ...anchor, seq: 2 }])
    expect([...((await fileAnchors(path).read?.()) ?? [])]).toEqual([{ ...anchor, seq: 2 }])
    writeFileSync(path, `{"log":["t"]}\n${readFileSync(path, 'utf8')}`)
    await expect(fileAnchors(path).read?.()).rejects.toMatchObject({ code: 'corrupt', data: { line: 1 } })
  })

  it('are written anew when most of them are out of date', async () => {
    const path = join(folder, 'anchors.jsonl')
    const anchor = (seq: number): Anchor => ({ log: ['t', 'a', 'main'], incarnation: 'i', seq, hash: 'a'.repeat(64) })
    await fileAnchors(path).write(Array.from({ length: 10_001 }, (_, i) => anchor(i)))
    const again = fileAnchors(path)
    expect([...((await again.read?.()) ?? [])]).toEqual([anchor(10_000)])
    await again.write([anchor(10_001)])
    expect(readFileSync(path, 'utf8').trim().split('\n')).toHaveLength(2)
  })
})
