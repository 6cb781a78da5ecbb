import assert from 'node:assert/strict'
import { contents, notes, refuses, type StoreTest } from './store-context.js'

const HOUR_MS = 3_600_000

export const expiryTests: readonly StoreTest[] = [
  {
    name: 'has an item until its time is over, for every method',
    async run({ hf, clock }) {
      const collection = notes(hf)
      const { expiresAt, version } = await collection.put('k', { n: 1 }, { ttlMs: HOUR_MS })
      assert.equal(expiresAt?.getTime(), clock.now() + HOUR_MS)
      await clock.advance(HOUR_MS - 1)
      assert.equal((await collection.get('k'))?.expiresAt?.getTime(), clock.now() + 1)
      assert.equal((await collection.search({ filter: { n: 1 } })).items.length, 1)
      await clock.advance(1)
      assert.equal(await collection.get('k'), undefined)
      assert.equal((await collection.getMany(['k'])).size, 0)
      assert.deepEqual(await contents(collection), [])
      assert.deepEqual((await collection.search({ filter: { n: 1 }, orderBy: 'n' })).items, [])
      await refuses(() => collection.put('k', 2, { expect: version }), 'conflict')
      await refuses(() => collection.delete('k', { expect: version }), 'conflict')
      const again = await collection.put('k', 3, { expect: null })
      assert.deepEqual((await collection.get('k'))?.createdAt, again.updatedAt)
    },
  },
  {
    name: 'takes the time of the collection where a put names none, and none where it says so',
    async run({ hf, clock }) {
      const collection = hf.store.scope({ user: 'u' }).collection('c', { ttlMs: HOUR_MS })
      assert.equal((await collection.put('default', 1)).expiresAt?.getTime(), clock.now() + HOUR_MS)
      assert.equal((await collection.put('own', 1, { ttlMs: 5 })).expiresAt?.getTime(), clock.now() + 5)
      assert.equal((await collection.put('never', 1, { ttlMs: null })).expiresAt, null)
      await clock.advance(2 * HOUR_MS)
      assert.deepEqual((await collection.getMany(['default', 'own', 'never'])).size, 1)
    },
  },
  {
    name: 'lets an item live on when it is read, if asked, and only then',
    async run({ hf, clock }) {
      const scope = hf.store.scope({ user: 'u' })
      const fresh = scope.collection('c', { ttlMs: HOUR_MS, refreshOnRead: true })
      const plain = scope.collection('c', { ttlMs: HOUR_MS })
      const { version } = await fresh.put('k', 1)
      await fresh.put('never', 1, { ttlMs: null })
      for (let i = 0; i < 5; i++) {
        await clock.advance(HOUR_MS - 1)
        const item = await fresh.get('k')
        assert.equal(item?.expiresAt?.getTime(), clock.now() + HOUR_MS)
        assert.equal(item.version, version)
      }
      assert.equal((await fresh.get('never'))?.expiresAt, null)
      await clock.advance(HOUR_MS - 1)
      await plain.get('k')
      await fresh.list()
      await clock.advance(1)
      assert.equal(await fresh.get('k'), undefined, 'neither another reader nor a list prolongs it')
    },
  },
  {
    name: 'shows the same with and without a sweep',
    async run({ hf, clock }) {
      const collection = notes(hf)
      for (let i = 0; i < 20; i++) await collection.put(`k${i}`, i, { ttlMs: i % 2 === 0 ? 10 : null })
      await clock.advance(10)
      const before = await contents(collection)
      assert.equal(before.length, 10)
      await hf.store.sweep()
      await hf.store.sweep()
      assert.deepEqual(await contents(collection), before)
    },
  },
  {
    name: "counts the time of a step's write from when it was made",
    async run({ hf, clock }) {
      const collection = notes(hf)
      const write = await collection.write.put('k', 1, { ttlMs: HOUR_MS })
      const log = await hf.log('thread')
      await log.update(() => [{ kind: 'step', store: [write] }])
      await clock.advance(HOUR_MS - 1)
      assert.equal((await collection.get('k'))?.value, 1)
      await clock.advance(1)
      assert.equal(await collection.get('k'), undefined)
    },
  },
]
