import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileVault, flow, type Holdfast, type KeyOptions, type KeyVault, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { K1, K2, keys, logKey, memoryPlace, read, write } from '../support/keyed-store.js'

const TENANT = logKey('x').tenant
const SECRET = 'The vault opens at midnight'
const GONE = { code: 'missing-key', data: { tenant: 'default' } }

const note = flow({ name: 'note', version: '1.0.0' }, (ctx, text: string) =>
  ctx.step('keep', async ({ store }) => {
    await store.scope({ user: 'u' }).collection('notes').put('k', text)
    return { text, large: `${text} `.repeat(5000) }
  }),
)

let folder: string
let vault: KeyVault
let vaulted: KeyOptions
const opened: Holdfast[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-vault-'))
  vault = fileVault(join(folder, 'vault'))
  vaulted = { ...keys, vault }
})

afterEach(async () => {
  for (const hf of opened.splice(0)) await hf.close()
  rmSync(folder, { recursive: true, force: true })
})

async function open(url: string, options: KeyOptions = vaulted): Promise<Holdfast> {
  const hf = await openHoldfast(url, { keys: options, telemetry: false })
  opened.push(hf)
  return hf
}

/** Everything that can be read of a tenant: the states of its threads, and an item. */
async function readAll(hf: Holdfast): Promise<unknown[]> {
  const state = (await hf.log('n-1')).fold.state
  const item = await hf.store.scope({ user: 'u' }).collection('notes').get('k')
  return [JSON.stringify(state), item?.value]
}

describe.each(['sqlite', 'file'])('a tenant whose secret is destroyed, on %s', (scheme) => {
  it('can not be read any more, in the store or in a copy that was made before; others can', async () => {
    const store = join(folder, 'live')
    const hf = await open(`${scheme}:${store}`)
    const other = hf.tenant('other')
    await hf.thread(note, 'n-1').run({ input: SECRET })
    await other.thread(note, 'n-1').run({ input: SECRET })
    await hf.close()
    // A backup, as an operator makes one: the whole store, key log included. The vault is not in it.
    for (const name of readdirSync(folder).filter((one) => one.startsWith('live'))) {
      cpSync(join(folder, name), join(folder, name.replace('live', 'backup')), { recursive: true })
    }
    const backup = `${scheme}:${join(folder, 'backup')}`
    expect(await readAll(await open(backup))).toEqual([expect.stringContaining(SECRET), SECRET])

    const live = await open(`${scheme}:${store}`)
    await live.keys.destroy()
    for (const copy of [live, await open(`${scheme}:${store}`), await open(backup)]) {
      await expect(copy.log('n-1')).rejects.toMatchObject(GONE)
      await expect(copy.store.scope({ user: 'u' }).collection('notes').get('k')).rejects.toMatchObject(GONE)
      await expect(copy.thread(note, 'n-2').run({ input: 'new' })).rejects.toMatchObject(GONE)
      expect(await readAll(copy.tenant('other'))).toEqual([expect.stringContaining(SECRET), SECRET])
    }
    // With the master keys, and without the vault, neither.
    await expect((await open(backup, keys)).log('n-1')).rejects.toMatchObject(GONE)
    const another = { ...keys, vault: fileVault(join(folder, 'another')) }
    await expect((await open(backup, another)).log('n-1')).rejects.toMatchObject(GONE)
  })
})

describe('the secrets of tenants', () => {
  it('are one per tenant, for their owner alone, the same for all that begin at once, and not in the store', async () => {
    const place = await memoryPlace()
    const stores = await Promise.all(Array.from({ length: 10 }, () => place.open(vaulted)))
    await Promise.all(
      stores.flatMap((store, i) => ['a', 'b'].map((tenant) => write(store, logKey(`t${i}`, tenant), 'i', i))),
    )
    const files = readdirSync(join(folder, 'vault'))
    expect(files).toHaveLength(2)
    if (process.platform !== 'win32') {
      expect(files.map((file) => statSync(join(folder, 'vault', file)).mode & 0o777)).toEqual([0o600, 0o600])
      expect(statSync(join(folder, 'vault')).mode & 0o777).toBe(0o700)
    }
    const stored = await place.bytes()
    for (const tenant of ['a', 'b']) expect(stored.includes(Buffer.from((await vault.read(tenant)) ?? []))).toBe(false)
    for (let i = 0; i < 10; i++) expect(await read(await place.open(vaulted), logKey(`t${i}`, 'a'))).toEqual({ i })
  })

  it('are needed by data keys that were made before there was a vault, after rewrap', async () => {
    const place = await memoryPlace()
    await write(await place.open(keys), logKey('t'), 'a', 1)
    const store = await place.open(vaulted)
    expect(await read(store, logKey('t'))).toEqual({ a: 1 })
    await store.keys(TENANT).rewrap()
    expect(await read(await place.open(vaulted), logKey('t'))).toEqual({ a: 1 })
    await expect(read(await place.open(keys), logKey('t'))).rejects.toMatchObject(GONE)
    const both: KeyOptions = { current: 'k2', masters: { k1: K1, k2: K2 }, vault }
    await (await place.open(both)).keys(TENANT).rewrap()
    expect(await read(await place.open({ current: 'k2', masters: { k2: K2 }, vault }), logKey('t'))).toEqual({ a: 1 })
    await store
      .keys(TENANT)
      .rotate()
      .catch(() => undefined)
  })

  it('are forgotten by other processes within five minutes', async () => {
    const clock = virtualClock()
    const place = await memoryPlace()
    const [a, b] = [await place.open(vaulted, clock), await place.open(vaulted, clock)]
    await write(a, logKey('t'), 'a', 1)
    expect(await read(b, logKey('t'))).toEqual({ a: 1 })
    await a.keys(TENANT).destroy()
    await expect(a.open(logKey('t'))).rejects.toMatchObject(GONE)
    await clock.advance(5 * 60_000 + 1)
    await expect(b.open(logKey('t'))).rejects.toMatchObject(GONE)
  })

  it('are not made anew once destroyed', async () => {
    const place = await memoryPlace()
    await vault.create('default', randomBytes(32))
    await vault.destroy('default')
    await expect(write(await place.open(vaulted), logKey('t'), 'a', 1)).rejects.toMatchObject({
      code: 'missing-key',
      message: expect.stringMatching(/was destroyed on \d{4}-\d\d-\d\d/),
    })
    await vault.destroy('default')
  })

  it('that are damaged are named, and a vault that is none is refused', async () => {
    const place = await memoryPlace()
    await write(await place.open(vaulted), logKey('t'), 'a', 1)
    const [file] = readdirSync(join(folder, 'vault'))
    writeFileSync(join(folder, 'vault', file as string), 'short')
    await expect((await place.open(vaulted)).open(logKey('t'))).rejects.toMatchObject({ code: 'corrupt' })
    await expect(openHoldfast('memory:', { keys: { ...keys, vault: {} as KeyVault } })).rejects.toMatchObject({
      data: { field: 'keys.vault' },
    })
    await expect((await place.open(keys)).keys(TENANT).destroy()).rejects.toMatchObject({
      data: { field: 'keys.vault' },
    })
  })
})
