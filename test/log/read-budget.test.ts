import { Holdfast } from 'holdfast'
import { LogStore, type LogStoreOptions, ops } from 'holdfast/log'
import { beforeEach, describe, expect, it } from 'vitest'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import type { LogKey } from '#src/log/contract.js'
import { logKey } from '../support/keyed-store.js'

const { push, set } = ops

// What is stored small may unpack to very much. How much one read may unpack is bounded for all its entries together.

const LOG = logKey('talk')
const KB = 1024
const SMALL: LogStoreOptions = { limits: { maxBytes: 300 * KB, maxReadBytes: 1100 * KB } }
const TOO_MUCH = { code: 'corrupt', data: { overBudget: true }, remedy: expect.stringMatching(/limits\.maxReadBytes/) }

let place: MemoryStore
beforeEach(() => {
  place = createMemoryStore()
})

async function open(options: LogStoreOptions = {}): Promise<LogStore> {
  return new LogStore(await openMemory({ store: place }), { blobThreshold: 1000 * KB, ...options })
}

function lines(bytes: number, of: string): string[] {
  return Array.from({ length: Math.ceil(bytes / 1000) }, () => of.repeat(1000))
}

/** Entries whose bodies shrink to next to nothing, and which all belong to one tail. */
async function writeTail(count: number, log: LogKey = LOG): Promise<void> {
  const writer = await (await open()).open(log)
  // Of entries that replace each other the state stays small, so they are made one by one after a large keyframe.
  await writer.update(() => [{ kind: 'step', ops: [set('state', lines(250 * KB, 'a'))] }])
  for (let i = 0; i < count; i++) {
    await writer.update(() => [{ kind: 'step', data: lines(240 * KB, 'b'), ops: [set('i', i)] }])
  }
}

/** What the headers of the newest tail claim. */
async function claimed(): Promise<number> {
  const history = await (await open()).unread(LOG).history({ limit: 100 })
  const newest = history[0]?.header.keyframe
  return history.reduce((sum, { header }) => sum + (header.keyframe === newest ? header.size : 0), 0)
}

describe('a read', () => {
  it('of many entries that are each within the limit is refused when all together are not', async () => {
    await writeTail(1)
    const rows = place.threads.get(LOG.tenant)?.get(LOG.thread)?.branches.get(LOG.branch)
    const stored = rows?.entries.reduce((sum, { body }) => sum + body.length, 0) ?? 0
    expect(stored).toBeLessThan(10 * KB)
    const all = await claimed()
    expect(all).toBeGreaterThan(450 * KB)
    const limits = { maxBytes: 300 * KB, maxReadBytes: all }
    expect((await (await open({ limits })).open(LOG)).fold.state).toMatchObject({ i: 0 })

    const tight = { limits: { ...limits, maxReadBytes: all - 1 } }
    await expect((await open(tight)).open(LOG)).rejects.toMatchObject(TOO_MUCH)
    // What fits is named as the newest that can be read.
    const error = await (await open(tight)).open(LOG).catch((cause: { data: object }) => cause.data)
    expect(error).toMatchObject({ lastGood: expect.stringMatching(/^main~0~/) })
    expect((await (await open(tight)).unread(LOG).at(0)).state).not.toHaveProperty('i')
  })

  it('counts blobs as well', async () => {
    const writer = await (await open({ blobThreshold: 64 * KB })).open(LOG)
    for (let i = 0; i < 6; i++)
      await writer.update(() => [{ kind: 'step', ops: [push('docs', `${i}${'x'.repeat(250 * KB)}`)] }])
    const large = { limits: { maxBytes: 300 * KB, maxReadBytes: 2000 * KB } }
    expect((await (await open(large)).open(LOG)).fold.state.docs).toHaveLength(6)
    await expect((await open(SMALL)).open(LOG)).rejects.toMatchObject(TOO_MUCH)
  })

  it('that goes part by part reads any number of entries', async () => {
    await writeTail(12)
    const store = await open({ limits: { maxBytes: 600 * KB, maxReadBytes: 1200 * KB } })
    const seqs: number[] = []
    for await (const { header } of store.unread(LOG).entries(0, 12)) seqs.push(header.seq)
    expect(seqs).toEqual(Array.from({ length: 13 }, (_, i) => i))
    expect(await store.verify(LOG)).toMatchObject({ ok: true, entries: 13 })
  })

  it('that catches up with more than fits begins again at the newest keyframe', async () => {
    const limits = { maxBytes: 600 * KB, maxReadBytes: 2000 * KB }
    const behind = await (await open({ limits })).open(LOG)
    await behind.update(() => [{ kind: 'step', ops: [set('first', true)] }])
    await writeTail(20)
    expect((await behind.refresh()).state).toMatchObject({ first: true, i: 19 })
  })
})

describe('a write', () => {
  it('that would make a thread unreadable is refused, and the thread goes on', async () => {
    const store = await open({ limits: { maxBytes: 200 * KB, maxReadBytes: 400 * KB } })
    const log = await store.open(LOG)
    let refused: unknown
    // The state grows beyond what one keyframe may hold, so that only deltas can be written.
    for (let i = 0; i < 8 && refused === undefined; i++) {
      const ops = [set(`part${i}`, lines(90 * KB, 'c'))]
      refused = await log
        .update(() => [{ kind: 'step', ops }])
        .then(
          () => undefined,
          (error: unknown) => error,
        )
    }
    expect(refused).toMatchObject({ code: 'too-large', data: { limit: 400 * KB } })
    const again = await (await open({ limits: { maxBytes: 200 * KB, maxReadBytes: 400 * KB } })).open(LOG)
    expect(again.fold.seq).toBe(log.fold.seq)
    await again.update(() => [{ kind: 'step', ops: [set('part0', 0)] }])
  })
})

describe('a page of items', () => {
  it('is refused when its values together are over the limit, and smaller pages are read', async () => {
    const writing = new Holdfast(await open())
    const notes = writing.store.scope({ user: 'u' }).collection<readonly string[]>('notes')
    for (let i = 0; i < 6; i++) await notes.put(`k${i}`, lines(250 * KB, 'd'))
    const read = new Holdfast(await open(SMALL)).store.scope({ user: 'u' }).collection('notes', { maxBytes: 300 * KB })
    const keys = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5']
    const tooLarge = { code: 'too-large', data: { limit: 1100 * KB } }
    await expect(read.list()).rejects.toMatchObject(tooLarge)
    await expect(read.search({ orderBy: '0', direction: 'desc' })).rejects.toMatchObject(tooLarge)
    await expect(read.getMany(keys)).rejects.toMatchObject(tooLarge)
    expect((await read.list({ limit: 2 })).items).toHaveLength(2)
    expect((await read.search({ orderBy: '0', limit: 2 })).items).toHaveLength(2)
    expect(await read.getMany(keys.slice(0, 3))).toHaveProperty('size', 3)
  })
})

describe('limits.maxReadBytes', () => {
  it('is at least limits.maxBytes', async () => {
    await expect(open({ limits: { maxBytes: 10, maxReadBytes: 9 } })).rejects.toMatchObject({
      code: 'invalid-option',
      data: { field: 'limits.maxReadBytes' },
    })
    await expect(open({ limits: { maxBytes: 2 ** 40 } })).resolves.toBeInstanceOf(LogStore)
  })
})
