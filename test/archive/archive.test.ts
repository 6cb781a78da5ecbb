import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, type Holdfast, isHoldfastError, openHoldfast, type OpenOptions } from 'holdfast'
import { folderPlace } from 'holdfast/data'
import { openDriver } from 'holdfast/driver'
import { afterAll, describe, expect, it } from 'vitest'
import { dumpStore } from '../support/dump-store.js'
import { everyBackend } from '../support/every-backend.js'
import { fillStore, order, over } from '../support/filled-store.js'
import { s3Url } from '../support/servers.js'
import { seeded } from '../support/seeded.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-'))
const opened: Holdfast[] = []
const backends = (await everyBackend()).filter(({ missing }) => !missing)
const bucket = await s3Url()
const s3 = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }
let count = 0

afterAll(async () => {
  await Promise.all(opened.map((hf) => hf.close()))
  await Promise.all(backends.map((backend) => backend.cleanup()))
  rmSync(folder, { recursive: true, force: true })
})

const places = {
  folder: (): OpenOptions => ({ archive: `file:${join(folder, `archive-${count++}`)}` }),
  bucket: (): OpenOptions => ({ archive: bucket.replace('?', `/t${process.pid}-${count++}?`), s3 }),
}

async function open(url: string, options: OpenOptions): Promise<Holdfast> {
  const hf = await openHoldfast(url, { blobThreshold: 1024, telemetry: false, ...options })
  opened.push(hf)
  return hf
}

/** Large, and still large when it is compressed. */
const noise = Array.from({ length: 200 }, (_, i) => createHash('sha256').update(String(i)).digest('hex')).join('')

const talk = flow({ name: 'talk', version: '1.0.0' }, async (ctx, input: { turns: number }) => {
  for (let i = 0; i < input.turns; i++) {
    await ctx.step('turn', { key: String(i) }, async () => ({ i, text: i === 2 ? noise : `turn ${i}` }))
  }
  return input.turns
})

describe.each(Object.entries(places))('an archive in a %s', (kind, place) => {
  const some = kind === 'folder' ? backends : backends.filter(({ name }) => name === 'memory' || name === 'SQLite')
  it('brings back the life of an id that was archived last, without forks of the one before', async () => {
    const hf = await open('memory:', place())
    await hf.thread(talk, 'c-1').run({ input: { turns: 3 } })
    await hf.log('c-1').then((log) => log.fork({ branch: 'what-if', at: 1 }))
    await hf.archive.store('c-1')
    await hf.thread(talk, 'c-1').run({ input: { turns: 1 } })
    await hf.archive.store('c-1')
    const look = await hf.archive.look('c-1')
    expect((await look.threads({ thread: 'c-1' })).threads.map(({ branch }) => branch)).toEqual(['main'])
    await look.close()
    expect(await hf.archive.restore('c-1')).toMatchObject({ branches: ['main'] })
    expect(await hf.thread(talk, 'c-1').run()).toMatchObject({ status: 'completed', output: 1 })
  })

  for (const backend of some) {
    it(`takes a thread out of ${backend.name} and brings it back with every hash`, { timeout: 600_000 }, async () => {
      const url = await backend.fresh()
      const hf = await open(url, place())
      const id = { user: 'ada', session: 'Ü/1' }
      await hf.thread(order, id).run({ input: { id: 'ada', ask: true } })
      await hf.log(id).then((log) => log.fork({ branch: 'what-if', at: 1 }))
      const before = await show(hf, id)
      const parts = await hf.archive.store(id)
      expect(parts.map(({ branch }) => branch).sort()).toEqual(['main', 'what-if'])
      expect((await hf.threads({ thread: id })).threads).toEqual([])
      expect(await hf.tombstone(id)).toMatchObject({ reason: 'archived' })
      expect(await hf.archive.list()).toEqual(parts.toSorted((a, b) => (a.file < b.file ? -1 : 1)))
      expect(await hf.archive.verify()).toMatchObject({ ok: true, files: 2, problems: [] })

      const look = await hf.archive.look(id)
      expect(await show(look, id)).toEqual(before)
      expect((await look.pauses()).pauses).toHaveLength(1)
      await look.close()

      expect(await hf.archive.restore(id)).toMatchObject({ branches: ['main', 'what-if'] })
      expect(await show(hf, id)).toEqual(before)
      await hf.archive.restore(id)
      const [asked] = (await hf.pauses()).pauses
      await hf.inspect(id).answer(asked?.id as string, 'yes')
      expect(await hf.thread(order, id).run()).toMatchObject({ status: 'completed' })
      await expect(hf.archive.restore(id)).rejects.toSatisfy((error) => isHoldfastError(error, 'conflict'))
      expect(await hf.archive.remove(id)).toEqual({ removed: 2 })
      expect(await hf.archive.list()).toEqual([])
    })

    it(`keeps the past of a thread on ${backend.name} within reach of at() and history()`, {
      timeout: 600_000,
    }, async () => {
      const hf = await open(await backend.fresh(), place())
      const thread = hf.thread(talk, 'long')
      await thread.run({ input: { turns: 30 } })
      const log = await hf.log('long')
      await log.update(() => [{ kind: 'tag', keyframe: true }])
      const all = await thread.history({ limit: 1000 })
      const states = new Map<string, unknown>()
      for (const { id } of all) states.set(id, await thread.at(id).state())
      const full = (await log.history({ limit: 1000 })).map(({ id }) => id)

      // Between two keyframes first: a keyframe then stands there for the entry, which is in the archive.
      const early = await hf.archive.prune('long', 10)
      expect(early).toMatchObject({ removed: 10, archived: [{ first: 0, last: 10, entries: 11 }] })
      const { removed, archived } = await hf.archive.prune('long', log.fold.seq)
      expect(removed).toBeGreaterThan(15)
      expect(archived.reduce((sum, { entries }) => sum + entries, 0)).toBe(removed)
      expect(archived.every(({ kind: what }) => what === 'past')).toBe(true)
      expect((await hf.verify('long'))?.ok).toBe(true)

      const cold = hf.thread(talk, 'long')
      for (const [id, state] of states) expect(await cold.at(id).state(), id).toEqual(state)
      const reopened = await hf.log('long')
      const kept = await reopened.history({ limit: 1000 })
      const oldest = kept.at(-1)?.header.seq as number
      const past = await reopened.history({ limit: 1000, before: oldest })
      expect([...kept, ...past].map(({ id }) => id)).toEqual(full)
      // Forked from a past that the store itself no longer has.
      const first = [...states.keys()].at(-3) as string
      const fork = await cold.at(first).fork({ name: 'again' })
      expect((await fork.run()).status).toBe('completed')

      // Archived as a whole, and brought back with the past that was archived before.
      const seqs = (await hf.archive.store('long')).length
      expect(seqs).toBe(2)
      await hf.archive.restore('long')
      expect((await (await hf.log('long')).history({ limit: 1000 })).map(({ id }) => id)).toEqual(full)
    })
  }

  it('finds damage, and never returns it', { timeout: 600_000 }, async () => {
    const options = place()
    const hf = await open('memory:', options)
    await hf.thread(talk, 'a').run({ input: { turns: 3 } })
    const [part] = await hf.archive.store('a')
    const again = await open('memory:', options)
    const store = kind === 'folder' ? folderPlace((options.archive as string).slice('file:'.length)) : undefined
    if (store === undefined) return
    const whole = Buffer.from((await store.get(part?.file as string)) as Uint8Array)
    for (const at of [whole.length - 1, whole.indexOf(10) + 30]) {
      const bad = Buffer.from(whole)
      bad[at] = (bad[at] as number) ^ 1
      await store.put(part?.file as string, bad)
      const fresh = await open('memory:', options)
      expect((await fresh.archive.verify()).problems).toHaveLength(1)
      await expect(fresh.archive.restore('a')).rejects.toSatisfy((error) => isHoldfastError(error, 'corrupt'))
    }
    await store.put(part?.file as string, whole)
    expect(await again.archive.restore('a')).toMatchObject({ branches: ['main'] })
  })

  it('is reached by erase', async () => {
    const options = place()
    const hf = await open('memory:', options)
    await hf.thread(talk, 'a').run({ input: { turns: 3 } })
    await hf.thread(talk, 'b').run({ input: { turns: 3 } })
    await hf.archive.store('a', { keep: true })
    await hf.archive.store('b')
    await hf.erase('a')
    expect((await hf.archive.list()).map(({ thread }) => thread)).toEqual(['b'])
    await hf.eraseTenant()
    expect(await hf.archive.list()).toEqual([])
  })

  it('holds large values by a threshold, collected when nothing names them', { timeout: 600_000 }, async () => {
    const { archive, ...rest } = place()
    const url = `sqlite:${join(folder, `blobs-${count++}.db`)}`
    const options = { ...rest, blobs: { place: archive as string, threshold: 2048 } }
    const hf = await open(url, options)
    await hf.thread(talk, 'a').run({ input: { turns: 4 } })
    const raw = await openDriver(url)
    const tenant = (await raw.heads({ limit: 1 })).heads[0]?.log.tenant as never
    const notes = await raw.listBlobs(tenant, { limit: 10 })
    const values = await raw.getBlobs(
      tenant,
      notes.map(({ hash }) => hash),
    )
    expect(
      [...values.values()].some((bytes) => Buffer.from(bytes).toString().startsWith('{"holdfast":"blob-at"')),
    ).toBe(true)
    const other = await open(url, options)
    expect((await other.thread(talk, 'a').replay()).status).toBe('identical')
    expect((await other.verify('a'))?.problems).toEqual([])
    const copy = await openDriver('memory:')
    const { copyStore } = await import('holdfast/data')
    expect((await copyStore(url, copy, { from: options })).refused).toEqual([])
    expect((await over(copy).verify('a'))?.problems).toEqual([])
    await hf.erase('a')
    const { removed } = await hf.collectBlobs({ graceMs: -60_000 })
    expect(removed).toBe(notes.length)
    expect(await raw.listBlobs(tenant, { limit: 10 })).toEqual([])
    await raw.close()
    if (kind === 'folder') expect(filesUnder((archive as string).slice('file:'.length))).toEqual([])
  })
})

describe('an archive', () => {
  it('of an encrypted store holds ciphertext, and opens with the same keys', async () => {
    const keys = { current: 'k', masters: { k: Buffer.alloc(32, 7) } }
    const options = { ...places.folder(), keys }
    const hf = await open('memory:', options)
    await hf.thread(order, 'a').run({ input: { id: 'secret-canary', ask: false } })
    const [part] = await hf.archive.store('a')
    const root = (options.archive as string).slice('file:'.length)
    expect(readFileSync(join(root, part?.file as string)).includes('secret-canary')).toBe(false)
    const look = await hf.archive.look('a')
    expect((await look.verify('a'))?.problems).toEqual([])
    await look.close()
    await hf.archive.restore('a')
    expect((await hf.verify('a'))?.problems).toEqual([])
  })

  it('leaves a thread alone that is run, or used meanwhile, and says which option is missing', async () => {
    const options = places.folder()
    const hf = await open('memory:', options)
    const thread = hf.thread(talk, 'a')
    await thread.run({ input: { turns: 2 } })
    const log = await hf.log('a')
    const claim = await log.claim({ owner: 'me', ms: 60_000 })
    await expect(hf.archive.store('a')).rejects.toThrow('is being run')
    await claim.release()
    await expect(hf.archive.store('nobody')).rejects.toSatisfy((error) => isHoldfastError(error, 'not-found'))
    await expect(hf.archive.restore('nobody')).rejects.toSatisfy((error) => isHoldfastError(error, 'not-found'))
    const without = await open('memory:', {})
    expect(() => without.archive).toThrow('Open the store with { archive')
    await expect(open('memory:', { archive: 'ftp://x' })).rejects.toThrow('file:folder or s3://')
    await expect(open('memory:', { archive: 's3://b?endpoint=http://x' })).rejects.toThrow('s3.accessKeyId')
  })

  it('holds a store of everything, and gives it back as it was', { timeout: 600_000 }, async () => {
    const driver = await openDriver('memory:')
    await fillStore(driver, seeded(41))
    const url = `sqlite:${join(folder, `all-${count++}.db`)}`
    const { copyStore } = await import('holdfast/data')
    await copyStore(driver, url)
    const hf = (await open(url, places.folder())).tenant('one')
    const raw = await openDriver(url)
    const before = await dumpStore(raw)
    for (const thread of new Set((await hf.threads({ limit: 100 })).threads.map((one) => JSON.stringify(one.thread)))) {
      await hf.archive.store(JSON.parse(thread))
      await hf.archive.restore(JSON.parse(thread))
    }
    expect(await dumpStore(raw)).toEqual(before)
    await raw.close()
    await driver.close()
  })
})

async function show(hf: Holdfast, thread: Parameters<Holdfast['log']>[0]): Promise<unknown> {
  const branches = []
  for (const { branch, checkpoint, status, entries, createdAt, updatedAt } of (await hf.threads({ thread })).threads) {
    const log = await hf.log(thread, { branch })
    const ids = (await log.history({ limit: 1000 })).map(({ id }) => id)
    expect((await hf.verify(thread, { branch }))?.problems).toEqual([])
    branches.push({ branch, checkpoint, status, entries, createdAt, updatedAt, ids, state: log.fold.state })
  }
  return branches.sort((a, b) => (a.branch < b.branch ? -1 : 1))
}

function filesUnder(path: string): string[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
}
