import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore, type MemoryStore } from '#src/drivers/memory/memory-store.js'
import { Holdfast, type KeyOptions } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { beforeEach, describe, expect, it } from 'vitest'

const keys: KeyOptions = { current: 'k1', masters: { k1: Buffer.alloc(32, 1) } }
const code = (expected: string) => expect.objectContaining({ code: expected })

let store: MemoryStore
beforeEach(() => {
  store = createMemoryStore()
})

async function open(options?: KeyOptions): Promise<Holdfast> {
  return new Holdfast(new LogStore(await openMemory({ store }), options ? { keys: options } : {}))
}

function notes(hf: Holdfast, user = 'u') {
  return hf.store.scope({ user }).collection<unknown>('notes', { index: ['city'] })
}

/** The item as the driver keeps it. */
function stored(user: string, key: string, tenant = 'default') {
  const found = store.items
    .get(tenant as never)
    ?.get(`{user=${user}}notes`)
    ?.items.get(key)
  if (!found?.item) throw new TypeError(`There is no item ${key}.`)
  return found as { item: NonNullable<(typeof found)['item']>; createdAt: number }
}

for (const options of [undefined, { ...keys, encrypt: false }, keys] as (KeyOptions | undefined)[]) {
  const name = options === undefined ? 'without keys' : options.encrypt === false ? 'authenticated' : 'encrypted'

  describe(`items ${name}`, () => {
    it('are found out when any byte of them changes', async () => {
      const hf = await open(options)
      await notes(hf).put('k', { city: 'Paris', text: 'hello '.repeat(300) })
      const { item } = stored('u', 'k')
      const step = Math.max(1, Math.floor(item.value.length / 200))
      for (let at = 0; at < item.value.length; at += step) {
        ;(item.value as Uint8Array)[at]! ^= 1
        await expect(notes(hf).get('k'), `byte ${at}`).rejects.toEqual(code('corrupt'))
        ;(item.value as Uint8Array)[at]! ^= 1
      }
      expect((await notes(hf).get('k'))?.value).toMatchObject({ city: 'Paris' })
    })

    it('are found out when they are cut, emptied or replaced, and named in the error', async () => {
      const hf = await open(options)
      await notes(hf).put('k', { n: 1 })
      const place = stored('u', 'k')
      const { item } = place
      for (const value of [
        new Uint8Array(0),
        item.value.slice(0, 20),
        item.value.slice(0, -1),
        Buffer.from('{}'),
        new Uint8Array(5000),
      ]) {
        place.item = { ...item, value }
        await expect(notes(hf).get('k')).rejects.toThrow(/item "k" of "\{user=u\}notes"/)
        await expect(notes(hf).list()).rejects.toEqual(code('corrupt'))
      }
      await notes(hf).put('k', 'whole again')
      expect((await notes(hf).get('k'))?.value).toBe('whole again')
    })

    it('verify in their own tenant, scope, collection and key only, and at their own version and time', async () => {
      const hf = await open(options)
      for (const [user, key] of [
        ['u', 'k'],
        ['u', 'l'],
        ['v', 'k'],
      ] as const)
        await notes(hf, user).put(key, `${user}${key}`)
      await notes(hf.tenant('other')).put('k', 'other')
      const { item } = stored('u', 'k')
      const foreign = [stored('u', 'l'), stored('v', 'k'), stored('u', 'k', 'other')]
      for (const place of foreign) {
        const own = place.item
        place.item = { ...item }
        const holder =
          place === foreign[0]
            ? notes(hf).get('l')
            : place === foreign[1]
              ? notes(hf, 'v').get('k')
              : notes(hf.tenant('other')).get('k')
        await expect(holder).rejects.toEqual(expect.objectContaining({ code: expect.stringMatching(/corrupt/) }))
        place.item = own
      }
      const place = stored('u', 'k')
      for (const change of [{ version: 'x' }, { at: item.at + 1 }]) {
        place.item = { ...item, ...change }
        await expect(notes(hf).get('k')).rejects.toEqual(code('corrupt'))
      }
    })
  })
}

describe('with keys', () => {
  it('nothing of a value, a vector, a field name or a field value is readable at rest', async () => {
    const hf = await open(keys)
    const embed = { dims: 2, embed: async (texts: readonly string[]) => texts.map(() => [1.5, 2.5]) }
    const collection = hf.store.scope({ user: 'u' }).collection<unknown>('notes', { index: ['plainname'], embed })
    await collection.put('k', { plainname: 'plainvalue', secret: 'secretword'.repeat(300) })
    const { item } = stored('u', 'k')
    const everything = Buffer.concat([Buffer.from(item.value), Buffer.from(JSON.stringify(item.fields))]).toString(
      'latin1',
    )
    const vector = Buffer.from(new Float32Array([1.5, 2.5]).buffer).toString('latin1')
    for (const secret of ['plainname', 'plainvalue', 'secretword', vector])
      expect(everything.includes(secret)).toBe(false)
    const log = await hf.log('t')
    const write = await collection.write.put('k2', { secret: 'secretword' })
    await log.update(() => [{ kind: 'step', store: [write] }])
    expect(Buffer.from(stored('u', 'k2').item.value).includes('secretword')).toBe(false)
    expect((await collection.get('k2'))?.value).toEqual({ secret: 'secretword' })
  })

  it('items are found by their fields and read after the data key was rotated, and from before there were keys', async () => {
    const plain = await open()
    await notes(plain).put('plain', { city: 'Paris' })
    const adoptPlain = {
      tenants: 'all' as const,
      writtenBefore: new Date(Date.now() + 60_000),
      acceptUntil: '2999-01-01',
    }
    const hf = await open({ ...keys, adoptPlain })
    await notes(hf).put('first', { city: 'Paris' })
    await hf.keys.rotate()
    await notes(hf).put('second', { city: 'Paris' })
    await notes(hf).put('other', { city: 'Rome' })
    const another = await open({ ...keys, adoptPlain })
    for (const one of [hf, another]) {
      const { items } = await notes(one).search({ filter: { city: 'Paris' } })
      expect(items.map(({ key }) => key)).toEqual(['first', 'plain', 'second'])
    }
    const names = new Set([stored('u', 'first'), stored('u', 'second')].map(({ item }) => JSON.stringify(item.fields)))
    expect(names.size).toBe(1)
    expect(stored('u', 'other').item.fields).not.toEqual(stored('u', 'first').item.fields)
    await expect(notes(await open(keys)).get('plain')).rejects.toEqual(code('corrupt'))
  })

  it('an item without a key that appears after the cut-over is refused', async () => {
    const forger = createMemoryStore()
    const plain = new Holdfast(new LogStore(await openMemory({ store: forger })))
    const hf = await open(keys)
    await notes(hf).put('k', 'true')
    await new Promise((resolve) => setTimeout(resolve, 5))
    await notes(plain).put('k', 'forged')
    stored('u', 'k').item = forger.items
      .get('default' as never)!
      .get('{user=u}notes')!
      .items.get('k')!.item!
    await expect(notes(hf).get('k')).rejects.toEqual(code('corrupt'))
  })

  it('a process without them is refused, and one with other masters reads nothing', async () => {
    await notes(await open(keys)).put('k', 1)
    const plain = await open()
    await expect(notes(plain).get('k')).rejects.toEqual(code('missing-key'))
    await expect(notes(plain).put('k', 2)).rejects.toEqual(code('missing-key'))
    await expect(notes(plain).list()).rejects.toEqual(code('missing-key'))
    const other = await open({ current: 'k2', masters: { k2: Buffer.alloc(32, 2) } })
    await expect(notes(other).get('k')).rejects.toEqual(code('missing-key'))
  })
})

describe('a driver without items', () => {
  it('is told apart, with nothing written', async () => {
    const { writeItems: _, ...driver } = await openMemory({ store })
    const hf = new Holdfast(new LogStore(driver))
    await expect(notes(hf).put('k', 1)).rejects.toEqual(code('invalid-option'))
    const log = await hf.log('t')
    await expect(log.update(() => [{ kind: 'step', store: [['put', 's', 'k', 1, null]] }])).rejects.toEqual(
      code('invalid-option'),
    )
    expect(log.exists).toBe(false)
  })
})
