import { randomBytes } from 'node:crypto'
import type { KeyOptions } from 'holdfast'
import { ops } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseBranchId, parseThreadId } from '#src/core/ids.js'
import { KEY_THREAD } from '#src/log/keys/keys.js'
import {
  adopting,
  diskPlace,
  hmacOnly,
  K1,
  K2,
  keyIds,
  keys,
  logKey,
  memoryPlace,
  type Place,
  read,
  write,
} from '../support/keyed-store.js'

const { set } = ops

const LOG = logKey('talk')
const TENANT = LOG.tenant
const SECRET = 'The vault opens at midnight'
const LARGE = `${SECRET} `.repeat(300)
const both: KeyOptions = { current: 'k2', masters: { k1: K1, k2: K2 } }
const onlyK2: KeyOptions = { current: 'k2', masters: { k2: K2 } }

describe.each([
  ['memory', memoryPlace],
  ['sqlite', () => diskPlace('sqlite')],
  ['file', () => diskPlace('file')],
])('keys on %s', (_name, makePlace) => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => place.end())

  describe.each([
    ['encrypted', keys],
    ['HMAC only', hmacOnly],
  ])('%s', (mode, options) => {
    it('reads back what was written, with blobs, keyframes, tags and forks, and verifies', async () => {
      const log = await (await place.open(options)).open(LOG)
      for (let i = 0; i < 60; i++) {
        await log.update(() => [
          { kind: 'step', ops: [set(`turn${i}`, { text: SECRET, i }), set('doc', { LARGE, i })] },
        ])
      }
      await log.tag('good', 30)
      const fork = await log.fork({ at: 30, branch: parseBranchId('other') })
      await fork.update(() => [{ kind: 'step', ops: [set('forked', SECRET)] }])

      const store = await place.open(options)
      const again = await store.open(LOG)
      expect(again.fold.state).toEqual(log.fold.state)
      expect(again.fold.state.doc).toEqual({ LARGE, i: 59 })
      expect((await again.at(30)).state).not.toHaveProperty('turn31')
      expect(await read(store, logKey('talk', 'default', 'other'))).toMatchObject({ forked: SECRET, turn30: { i: 30 } })
      for (const branch of ['main', 'other']) {
        expect(await store.verify(logKey('talk', 'default', branch))).toMatchObject({ ok: true, problems: [] })
      }
      const history = await again.history({ limit: 100 })
      expect(history.every(({ header }) => header.key !== null && header.encrypted === (mode === 'encrypted'))).toBe(
        true,
      )
    })

    it(`stores ${mode === 'encrypted' ? 'nothing' : 'everything'} that can be read`, async () => {
      const log = await (await place.open(options)).open(LOG)
      // Small, or random bytes: neither is packed, so what can be read can be read as it stands.
      const large = new Uint8Array(Buffer.concat([Buffer.from('A large SECRET'), randomBytes(3000)]))
      await log.update(() => [
        { kind: 'step', ops: [set('small', SECRET), set('large', large)], data: { note: SECRET } },
      ])
      const stored = await place.bytes()
      const secrets = [SECRET, 'A large SECRET', '"small"', '"note"']
      expect(secrets.filter((text) => stored.includes(text))).toEqual(mode === 'encrypted' ? [] : secrets)
      // What the index and headers hold is no secret.
      expect(['talk', 'step'].filter((text) => stored.includes(text))).toEqual(['talk', 'step'])
      for (const secret of [K1, Buffer.from(K1.toString('base64')), Buffer.from(K1.toString('hex'))]) {
        expect(stored.includes(secret)).toBe(false)
      }
    })
  })

  it('accepts authenticated entries of both kinds when encryption is switched on or off', async () => {
    await write(await place.open(hmacOnly), LOG, 'a', 1)
    await write(await place.open(keys), LOG, 'b', 2)
    await write(await place.open(hmacOnly), LOG, 'c', 3)
    for (const options of [keys, hmacOnly])
      expect(await read(await place.open(options), LOG)).toEqual({ a: 1, b: 2, c: 3 })
    const history = await (await (await place.open(keys)).open(LOG)).history({ limit: 9 })
    expect(history.map(({ header }) => header.encrypted)).toEqual([false, true, false])
  })

  it('makes exactly one data key when 20 stores begin at once', async () => {
    const stores = await Promise.all(Array.from({ length: 20 }, () => place.open(keys)))
    await Promise.all(stores.map((store, i) => write(store, logKey(`talk${i}`), 'i', i)))
    const status = await stores[0]?.keys(TENANT).status()
    expect(status?.dataKeys).toHaveLength(1)
    const reader = await place.open(keys)
    for (let i = 0; i < 20; i++) {
      expect(await read(reader, logKey(`talk${i}`))).toEqual({ i })
      expect(await keyIds(reader, logKey(`talk${i}`))).toEqual([status?.current])
    }
    // None of them began after a plain past.
    expect(status?.plainUntil).toBeNull()
  })

  it('writes with a new data key after rotate, keeps the old readable, and other stores learn of it', async () => {
    const [a, b] = [await place.open(keys), await place.open(keys)]
    await write(a, LOG, 'before', 1)
    await read(b, LOG)
    const first = (await a.keys(TENANT).status()).current
    const { current, dataKeys } = await a.keys(TENANT).rotate()
    expect(dataKeys.map(({ id }) => id)).toEqual([first, current])
    expect(current).not.toBe(first)
    await write(a, LOG, 'after', 2)
    expect(await read(b, LOG)).toEqual({ before: 1, after: 2 })
    await write(b, LOG, 'last', 3)
    expect(await keyIds(await place.open(keys), LOG)).toEqual([first, current, current])
    expect(await read(await place.open(keys), LOG)).toEqual({ before: 1, after: 2, last: 3 })
  })

  it('looks for a rotation by others after five minutes of writing', async () => {
    const clock = virtualClock()
    const [a, b] = [await place.open(keys, clock), await place.open(keys, clock)]
    const log = await a.open(LOG)
    await log.update(() => [{ kind: 'step' }])
    const { current } = await b.keys(TENANT).rotate()
    const keyOf = async () => (await log.update(() => [{ kind: 'step' }])).fold.key
    expect(await keyOf()).not.toBe(current)
    await clock.advance(5 * 60_000 + 1)
    expect(await keyOf()).toBe(current)
  })

  it('drops an old master after rewrap: entries stay as they are', async () => {
    const first = await place.open(keys)
    await write(first, LOG, 'a', LARGE)
    await first.keys(TENANT).rotate()
    await write(first, LOG, 'b', SECRET)
    const before = await (await first.open(LOG)).history({ limit: 9 })

    await expect(read(await place.open(onlyK2), LOG)).rejects.toMatchObject({
      code: 'missing-key',
      data: { key: 'k1' },
    })
    const status = await (await place.open(both)).keys(TENANT).rewrap()
    expect(status.dataKeys.map(({ master }) => master)).toEqual(['k2', 'k2'])

    const store = await place.open(onlyK2)
    expect(await read(store, LOG)).toEqual({ a: LARGE, b: SECRET })
    expect(await (await store.open(LOG)).history({ limit: 9 })).toEqual(before)
    await write(store, LOG, 'c', 3)
    await store.keys(TENANT).rotate()
    expect(await read(await place.open(both), LOG)).toMatchObject({ c: 3 })
    await expect(read(await place.open(keys), LOG)).rejects.toMatchObject({ code: 'missing-key', data: { key: 'k2' } })
    // Nothing that the old master opens is left.
    const headers = await (await place.driver()).headers({ ...LOG, thread: KEY_THREAD }, { limit: 9 })
    expect(headers.every(({ header }) => !Buffer.from(header).includes('master:k1'))).toBe(true)
  })

  it('rewraps while others write and rotate', async () => {
    const stores = await Promise.all(Array.from({ length: 6 }, () => place.open(both)))
    await write(await place.open(keys), LOG, 'x', 0)
    await Promise.all(
      stores.map(async (store, i) => {
        if (i % 3 === 0) await store.keys(TENANT).rewrap()
        else if (i % 3 === 1) await store.keys(TENANT).rotate()
        await write(store, logKey(`talk${i}`), 'i', i)
      }),
    )
    await stores[0]?.keys(TENANT).rewrap()
    const reader = await place.open(onlyK2)
    expect((await reader.keys(TENANT).status()).dataKeys).toHaveLength(3)
    for (let i = 0; i < 6; i++) expect(await read(reader, logKey(`talk${i}`))).toEqual({ i })
  })

  it('names a wrong master as the likely cause', async () => {
    await write(await place.open(keys), LOG, 'a', 1)
    const store = await place.open({ current: 'k1', masters: { k1: K2 } })
    const wrong = { code: 'corrupt', remedy: expect.stringMatching(/master key/), data: { tenant: 'default' } }
    await expect(store.open(LOG)).rejects.toMatchObject(wrong)
    await expect(write(store, logKey('new'), 'a', 1)).rejects.toMatchObject(wrong)
    await expect(store.keys(TENANT).rotate()).rejects.toMatchObject(wrong)
  })

  it('refuses a store without keys where keys are in use, for old threads and new ones', async () => {
    await write(await place.open(keys), LOG, 'a', 1)
    const store = await place.open()
    for (const log of [LOG, logKey('new')]) {
      await expect(write(store, log, 'b', 2)).rejects.toMatchObject({
        code: 'missing-key',
        remedy: expect.stringContaining(`masters: { '${keys.current}': <its 32 bytes> }`),
      })
    }
    await expect(store.verify(LOG)).rejects.toMatchObject({ code: 'missing-key' })
    await write(store, logKey('talk', 'another tenant'), 'b', 2)
    await expect(store.keys(TENANT).rotate()).rejects.toMatchObject({ code: 'invalid-option', data: { field: 'keys' } })
    expect(await read(await place.open(keys), LOG)).toEqual({ a: 1 })
  })

  it('gives each tenant its own data keys', async () => {
    const store = await place.open(keys)
    const [a, b] = [logKey('talk', 'a'), logKey('talk', 'b')]
    await write(store, a, 'v', LARGE)
    await write(store, b, 'v', LARGE)
    const status = await Promise.all([a, b].map(({ tenant }) => store.keys(tenant).status()))
    expect(status[0]?.current).not.toBe(status[1]?.current)
    await store.keys(a.tenant).rotate()
    expect(await store.keys(b.tenant).status()).toEqual(status[1])
  })

  it('keeps its own logs out of lists, pages and reach', async () => {
    const store = await place.open(keys)
    for (let i = 0; i < 5; i++) await write(store, logKey(`talk${i}`), 'i', i)
    for (const scope of [{ tenant: TENANT }, {}]) {
      const seen: string[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await store.list({
          ...scope,
          order: 'created',
          direction: 'asc',
          limit: 2,
          ...(cursor ? { cursor } : {}),
        })
        seen.push(...page.heads.map(({ log }) => log.thread))
        cursor = page.cursor
        if (cursor === undefined) break
      }
      expect(seen.sort()).toEqual(['talk0', 'talk1', 'talk2', 'talk3', 'talk4'])
    }
    expect((await store.list({ tenant: TENANT, thread: KEY_THREAD, limit: 9 })).heads).toEqual([])
    const own = { ...LOG, thread: KEY_THREAD }
    const refused = { code: 'invalid-id' }
    await expect(store.open(own)).rejects.toMatchObject(refused)
    await expect(store.prune(own, 0)).rejects.toMatchObject(refused)
    await expect(store.erase({ ...own, tombstone: null })).rejects.toMatchObject(refused)
    // What a user writes never leads there.
    for (const input of ['{}keys', '{}', { '{}keys': 'x' }, { keys: '{}' }])
      expect(parseThreadId(input)).not.toMatch(/^\{\}/)
    await write(store, logKey('{}keys'), 'mine', true)
    expect(await read(store, logKey('{}keys'))).toEqual({ mine: true })
  })

  describe('cut-over from plain', () => {
    it('reads the plain past, and writes with keys from then on', async () => {
      const plain = await place.open()
      await write(plain, LOG, 'a', LARGE)
      await write(plain, LOG, 'b', 2)
      const store = await place.open(adopting)
      expect(await read(store, LOG)).toEqual({ a: LARGE, b: 2 })
      expect(await store.keys(TENANT).status()).toEqual({ current: undefined, dataKeys: [], plainUntil: undefined })
      await write(store, LOG, 'c', 3)
      const { current, plainUntil } = await store.keys(TENANT).status()
      expect(plainUntil).toBeInstanceOf(Date)
      expect(await keyIds(store, LOG)).toEqual([null, null, current])
      expect(await read(await place.open(keys), LOG)).toEqual({ a: LARGE, b: 2, c: 3 })
      expect(await store.verify(LOG)).toMatchObject({ ok: true, entries: 3 })
    })

    it('points to plain blobs from later keyframes', async () => {
      await write(await place.open(), LOG, 'doc', { LARGE })
      const store = await place.open(adopting)
      const log = await store.open(LOG)
      for (let i = 0; i < 40; i++) await log.update(() => [{ kind: 'step', ops: [set('fill', 'x'.repeat(2000))] }])
      expect(log.fold.weight.keyframe).toBeGreaterThan(0)
      expect(await read(await place.open(keys), LOG)).toMatchObject({ doc: { LARGE } })
    })

    it('refuses plain entries that are dated later', async () => {
      const clock = virtualClock()
      const plain = await place.open(undefined, clock)
      const [old, late] = [await plain.open(LOG), await plain.open(logKey('late'))]
      await old.update(() => [{ kind: 'step' }])
      await clock.advance(1000)
      await write(await place.open(keys, clock), logKey('new'), 'a', 1)
      await clock.advance(1)
      // Handles that were open before the cut-over.
      await old.update(() => [{ kind: 'step' }])
      await late.update(() => [{ kind: 'step' }])
      const store = await place.open(adopting, clock)
      await expect(store.open(LOG)).rejects.toMatchObject({
        code: 'corrupt',
        data: { lastGood: expect.stringMatching(/^main~0~/) },
      })
      await expect(store.open(late.key)).rejects.toMatchObject({ code: 'corrupt' })
      expect((await (await place.open(undefined, clock)).verify(LOG))?.ok).toBe(true)
      expect((await store.verify(LOG))?.problems.join()).toMatch(/not authenticated/)
    })

    it('counts what a clock that ran ahead wrote before as past', async () => {
      const clock = virtualClock()
      clock.setNow(clock.now() + 60_000)
      await write(await place.open(undefined, clock), LOG, 'a', 1)
      clock.setNow(clock.now() - 60_000)
      const store = await place.open(adopting, clock)
      await write(store, logKey('new'), 'a', 1)
      expect(await read(await place.open(adopting, clock), LOG)).toEqual({ a: 1 })
    })

    it('reads nothing plain unless the configuration says so, and writes all the same', async () => {
      await write(await place.open(), LOG, 'a', 1)
      const strict = await place.open(keys)
      await expect(strict.open(LOG)).rejects.toMatchObject({ code: 'corrupt', data: { plain: true } })
      await write(strict, logKey('new'), 'a', 1)
      expect(await read(strict, logKey('new'))).toEqual({ a: 1 })
      expect(await read(await place.open(adopting), LOG)).toEqual({ a: 1 })
    })
  })

  it('makes no new keys when the key log is gone but entries under it are there', async () => {
    await write(await place.open(keys), LOG, 'a', 1)
    await (await place.driver()).erase({ tenant: TENANT, thread: KEY_THREAD, tombstone: null })
    const store = await place.open(keys)
    await expect(store.open(LOG)).rejects.toMatchObject({ code: 'corrupt' })
    await expect(write(store, logKey('new'), 'a', 1)).rejects.toMatchObject({
      code: 'corrupt',
      message: expect.stringMatching(/key log is gone/),
    })
    await expect(store.keys(TENANT).rotate()).rejects.toMatchObject({ code: 'corrupt' })
  })
})
