import type { KeyOptions } from 'holdfast'
import { ops } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KEY_THREAD } from '#src/log/keys/keys.js'
import { adopting, diskPlace, K1, keys, logKey, memoryPlace, type Place, read, write } from '../support/keyed-store.js'

const { set } = ops

// Somebody who can write to the store but has no key can always make plain data. With keys it counts only where the
// configuration, which they can't reach, says so.

const LOG = logKey('talk')
const REFUSED = { code: 'corrupt', data: { plain: true }, remedy: expect.stringMatching(/adoptPlain/) }

describe.each([
  ['memory', memoryPlace],
  ['sqlite', () => diskPlace('sqlite')],
  ['file', () => diskPlace('file')],
])('plain data where keys are configured, on %s', (_name, makePlace) => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => place.end())

  it('is refused in a tenant that was never used with keys', async () => {
    await write(await place.open(keys), LOG, 'real', 1)
    const planted = logKey('payout', 'unused')
    await write(await place.open(), planted, 'approved', true)
    const store = await place.open(keys)
    await expect(store.open(planted)).rejects.toMatchObject(REFUSED)
    expect(await store.verify(planted)).toMatchObject({ ok: false, entries: 0 })
  })

  it('is refused after the key log and the threads of a tenant were removed and plain ones put in their place', async () => {
    await write(await place.open(keys), LOG, 'real', 1)
    const driver = await place.driver()
    for (const thread of [KEY_THREAD, LOG.thread]) await driver.erase({ tenant: LOG.tenant, thread, tombstone: null })
    await write(await place.open(), LOG, 'approved', true)
    await expect((await place.open(keys)).open(LOG)).rejects.toMatchObject(REFUSED)
    expect(await (await place.open(keys)).verify(LOG)).toMatchObject({ ok: false })
  })

  it('is accepted from the tenants, up to the date and until the time that the configuration names', async () => {
    const clock = virtualClock()
    const plain = await place.open(undefined, clock)
    await write(plain, LOG, 'a', 1)
    await write(plain, logKey('talk', 'other'), 'a', 1)
    await clock.advance(1000)
    const writtenBefore = new Date(clock.now())
    await write(plain, logKey('late'), 'a', 1)
    const acceptUntil = new Date(clock.now() + 60_000).toISOString()
    const decided: KeyOptions = { ...keys, adoptPlain: { tenants: ['default'], writtenBefore, acceptUntil } }
    const store = await place.open(decided, clock)
    expect(await read(store, LOG)).toEqual({ a: 1 })
    expect(await store.verify(LOG)).toMatchObject({ ok: true, entries: 1, plain: 1 })
    await expect(store.open(logKey('late'))).rejects.toMatchObject(REFUSED)
    await expect(store.open(logKey('talk', 'other'))).rejects.toMatchObject(REFUSED)
    await clock.advance(60_000)
    await expect(store.open(LOG)).rejects.toMatchObject(REFUSED)
  })

  it('is authentic below an entry with a key, and can be read at every checkpoint without the option', async () => {
    const plain = await (await place.open()).open(LOG)
    for (let i = 0; i < 600; i++) await plain.update(() => [{ kind: 'step', ops: [set(`k${i % 7}`, i)] }])
    await write(await place.open(adopting), LOG, 'sealed', true)

    const store = await place.open(keys)
    const log = await store.open(LOG)
    expect(log.fold.state).toMatchObject({ sealed: true, k0: 595 })
    for (const seq of [0, 3, 255, 256, 599]) expect((await log.at(seq)).state).toMatchObject({ [`k${seq % 7}`]: seq })
    expect(await store.verify(LOG)).toMatchObject({ ok: true, entries: 601, plain: 0 })
    expect(await (await store.fork(LOG, { branch: 'back', at: 40 })).fold.state).toMatchObject({ k5: 40 })
  })

  it('is put under a key by adopt, items included, so that the option can go', async () => {
    const plain = await place.open()
    await write(plain, LOG, 'a', 'text '.repeat(1000))
    await write(plain, LOG, 'b', 2)
    await write(plain, logKey('talk', 'default', 'side'), 'c', 3)
    const content = { json: '"[1]"', value: 'plain' } as const
    await plain.items.write(LOG.tenant, [
      { space: 's', key: 'k', item: { content: { ...content, json: '["kept"]' }, expiresAt: null } },
    ])
    const store = await place.open(adopting)
    expect(await store.keys(LOG.tenant).adopt()).toEqual({ branches: 2, items: 1, refused: [] })
    expect(await store.keys(LOG.tenant).adopt()).toEqual({ branches: 0, items: 0, refused: [] })

    const strict = await place.open(keys)
    expect(await read(strict, LOG)).toEqual({ a: 'text '.repeat(1000), b: 2 })
    expect((await (await strict.open(LOG)).at(0)).state).toEqual({ a: 'text '.repeat(1000) })
    expect(await strict.verify(LOG)).toMatchObject({ ok: true, entries: 3, plain: 0 })
    const [item] = await strict.items.read(LOG.tenant, 's', ['k'])
    expect(await item?.read()).toBe('kept')
  })

  it('that was planted is not adopted with the rest, if it is dated after the decision', async () => {
    const clock = virtualClock()
    const plain = await place.open(undefined, clock)
    await write(plain, LOG, 'a', 1)
    const writtenBefore = new Date(clock.now() + 1)
    await clock.advance(10)
    await write(plain, logKey('planted'), 'approved', true)
    const adoptPlain = { tenants: ['default'], writtenBefore, acceptUntil: '2999-01-01' }
    const store = await place.open({ ...keys, adoptPlain }, clock)
    expect(await store.keys(LOG.tenant).adopt()).toEqual({ branches: 1, items: 0, refused: ['thread "planted"'] })
    const strict = await place.open(keys, clock)
    expect(await read(strict, LOG)).toEqual({ a: 1 })
    await expect(strict.open(logKey('planted'))).rejects.toMatchObject(REFUSED)
  })
})

describe('the plain past of an adopted log', () => {
  it('can not be changed, at any checkpoint', async () => {
    const place = await memoryPlace()
    const plain = await (await place.open()).open(LOG)
    for (let i = 0; i < 3; i++) await plain.update(() => [{ kind: 'step', ops: [set('i', i)] }])
    const other = await memoryPlace()
    await (await other.open(adopting)).keys(LOG.tenant).adopt()
    await (await place.open(adopting)).keys(LOG.tenant).adopt()

    const rows = place.store.threads.get(LOG.tenant)?.get(LOG.thread)?.branches.get(LOG.branch)?.entries ?? []
    expect(rows).toHaveLength(4)
    const store = await place.open({ current: 'k1', masters: { k1: K1 } })
    expect((await (await store.open(LOG)).at(1)).state).toEqual({ i: 1 })
    // The rows of another log of the same shape verify by themselves, but not below the entry that has a key.
    const forged = await memoryPlace()
    const forger = await (await forged.open()).open(LOG)
    for (let i = 0; i < 3; i++) await forger.update(() => [{ kind: 'step', ops: [set('i', 100 + i)] }])
    const lies = forged.store.threads.get(LOG.tenant)?.get(LOG.thread)?.branches.get(LOG.branch)?.entries ?? []
    rows.splice(0, 3, ...lies)
    const fresh = await place.open(keys)
    await expect((await fresh.open(LOG)).at(1)).rejects.toMatchObject({ code: 'corrupt' })
    expect(await fresh.verify(LOG)).toMatchObject({ ok: false })
  })
})
