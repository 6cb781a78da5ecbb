import assert from 'node:assert/strict'
import type { Collection, Holdfast } from '../../index.js'
import { contents, newTenant, notes, type StoreTest } from './store-context.js'

const SCOPES: readonly Record<string, string>[] = [
  { user: 'a' },
  { user: 'b' },
  { user: 'a', team: 'b' },
  { 'user=a,team': 'b' },
  { user: '*' },
  { user: 'a}x' },
]
const COLLECTIONS = ['x', 'y', '{user=a}x', '%', '*']
const KEYS = ['k', '../k', '*', '%', 'user=a']

interface Place {
  readonly tenant: number
  readonly scope: Record<string, string>
  readonly collection: string
}

export const isolationTests: readonly StoreTest[] = [
  {
    name: 'shows nothing of one tenant, scope or collection in another, after random work by every method',
    timeoutMs: 300_000,
    async run({ hf, random, rounds }) {
      const tenants = [newTenant(), newTenant('}'), newTenant('%'), newTenant('/../x')].map((id) => hf.tenant(id))
      const model = new Map<string, Map<string, unknown>>()
      const places: Place[] = tenants.flatMap((_, tenant) =>
        SCOPES.flatMap((scope) => COLLECTIONS.map((collection) => ({ tenant, scope, collection }))),
      )
      const open = ({ tenant, scope, collection }: Place) => notes(tenants[tenant] as Holdfast, scope, collection)
      for (let step = 0; step < rounds * 3; step++) {
        const place = random.pick(places)
        const items = model.get(JSON.stringify(place)) ?? new Map<string, unknown>()
        model.set(JSON.stringify(place), items)
        await change(
          tenants[place.tenant] as Holdfast,
          open(place),
          items,
          random.pick(KEYS),
          { ...place, step },
          random.below(6),
        )
      }
      for (const place of places) {
        const items = model.get(JSON.stringify(place)) ?? new Map<string, unknown>()
        await assertHolds(open(place), items, place)
      }
      for (const [i, tenant] of tenants.entries()) {
        const used = places.filter((place) => place.tenant === i && (model.get(JSON.stringify(place))?.size ?? 0) > 0)
        const listed = (await tenant.store.collections({ limit: 1000 })).collections
        for (const { scope, collection } of used)
          assert.ok(listed.some((one) => one.collection === collection && sameScope(one.scope, scope)))
        for (const one of listed)
          assert.ok(
            places.some(({ scope, collection }) => one.collection === collection && sameScope(one.scope, scope)),
          )
        assert.ok(JSON.stringify((await tenant.threads()).threads).length > 0)
      }
      assert.deepEqual((await hf.store.collections()).collections, [], 'a tenant that did nothing has nothing')
      assert.deepEqual(await contents(notes(hf, SCOPES[0], COLLECTIONS[0])), [])
    },
  },
  {
    name: 'gives a tenant neither items nor versions of another of the same name',
    async run({ hf }) {
      const [mine, theirs] = [hf.tenant(newTenant()), hf.tenant(newTenant())]
      const { version } = await notes(mine).put('k', 'secret')
      const { cursor } = await (async () => {
        await notes(mine).put('l', 'secret')
        return notes(mine).list({ limit: 1 })
      })()
      const other = notes(theirs)
      assert.equal(await other.get('k'), undefined)
      assert.equal((await other.getMany(['k', 'l'])).size, 0)
      assert.deepEqual((await other.list(cursor === undefined ? {} : { cursor })).items, [])
      assert.deepEqual((await other.search({ filter: { length: { exists: false } }, orderBy: 'x' })).items, [])
      const [result] = await other.batch([{ delete: 'k', expect: version }])
      assert.deepEqual(result, { status: 'conflict', version: null })
      await other.delete('k')
      await other.put('k', 'theirs', { expect: null })
      const log = await theirs.log('thread')
      const write = await notes(mine).write.put('k', 'mine')
      await log.update(() => [{ kind: 'step', store: [write] }])
      assert.equal(
        (await notes(mine).get('k'))?.value,
        'secret',
        'a write goes to the tenant of the thread that carries it',
      )
      assert.equal((await other.get('k'))?.value, 'mine')
      await theirs.store.sweep()
      assert.deepEqual(
        (await notes(mine).list()).items.map(({ key }) => key),
        ['k', 'l'],
      )
    },
  },
]

async function change(
  hf: Holdfast,
  collection: Collection<unknown>,
  items: Map<string, unknown>,
  key: string,
  value: unknown,
  kind: number,
): Promise<void> {
  switch (kind) {
    case 0:
      await collection.delete(key)
      items.delete(key)
      return
    case 1:
      await collection.batch([{ put: key, value }, { delete: 'other' }])
      break
    case 2: {
      const log = await hf.log('thread')
      const store = [await collection.write.put(key, value), collection.write.delete('other')]
      await log.update(() => [{ kind: 'step', store }])
      break
    }
    case 3:
      await collection.put(key, value, { ttlMs: 1_000_000 })
      break
    default:
      await collection.put(key, value)
  }
  items.set(key, value)
}

async function assertHolds(
  collection: Collection<unknown>,
  items: ReadonlyMap<string, unknown>,
  place: Place,
): Promise<void> {
  const expected = [...items].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  const message = JSON.stringify(place)
  assert.deepEqual(await contents(collection, 2), expected, message)
  const searched = await collection.search({ filter: { step: { gte: 0 } }, orderBy: 'step' })
  assert.equal(searched.items.length, expected.length, message)
  const got = await collection.getMany([...KEYS, 'other'])
  assert.deepEqual(new Map([...got].map(([key, item]) => [key, item.value])), new Map(items), message)
  for (const key of KEYS) assert.deepEqual((await collection.get(key))?.value, items.get(key), message)
}

function sameScope(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort())
}
