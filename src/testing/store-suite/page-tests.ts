import assert from 'node:assert/strict'
import { ODD_TEXTS } from '../driver-suite/items/item-fixtures.js'
import { byBytes, contents, keysOf, notes, refuses, type StoreTest } from './store-context.js'

const PRINTABLE = ODD_TEXTS.filter((text) => !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text))

export const pageTests: readonly StoreTest[] = [
  {
    name: 'keeps odd keys apart and lists them by code point, whatever the size of a page',
    async run({ hf }) {
      const collection = notes(hf)
      await collection.batch(PRINTABLE.map((key) => ({ put: key, value: { key } })))
      const sorted = [...PRINTABLE].sort(byBytes)
      for (const limit of [1, 7, 1000]) {
        assert.deepEqual(
          await contents(collection, limit),
          sorted.map((key) => [key, { key }]),
        )
      }
      for (const key of PRINTABLE) assert.deepEqual((await collection.get(key))?.value, { key })
      for (const prefix of ['a', '%', '_', '*', '[', '\\', '{', "'", 'é', '$', '.']) {
        const expected = sorted.filter((key) => key.startsWith(prefix))
        assert.deepEqual(keysOf(await collection.list({ prefix })), expected, `keys that begin with ${prefix}`)
      }
    },
  },
  {
    name: 'names the collections of a scope that begin alike',
    async run({ hf }) {
      const scope = hf.store.scope({ user: 'u' })
      const names = ['a', 'a!', 'a!b', 'a!b!', 'a!c', 'a"', 'aa', 'b', '日', '日本', '🎉']
      for (const name of names) await scope.collection(name).put('key', 1)
      for (const other of [{ user: 'u2' }, { user: 't' }]) await hf.store.scope(other).collection('a!x').put('key', 1)
      for (const prefix of ['', 'a', 'a!', 'a!b', 'a!b!', 'b', 'c', '日', '日本', '🎉', '%']) {
        const expected = names.filter((name) => name.startsWith(prefix))
        assert.deepEqual(await scope.collections({ prefix }), expected, prefix)
      }
      await refuses(() => scope.collections({ prefix: '\0' }), 'invalid-id')
    },
  },
  {
    name: 'keeps odd scopes and collections apart',
    async run({ hf }) {
      const short = PRINTABLE.filter((text) => Buffer.byteLength(text) < 300)
      for (const odd of short) {
        await notes(hf, { user: odd }).put('k', ['user', odd])
        await notes(hf, { [odd]: 'x' }).put('k', ['name', odd])
        await notes(hf, { user: 'x' }, odd).put('k', ['collection', odd])
      }
      for (const odd of short) {
        assert.deepEqual(await contents(notes(hf, { user: odd })), [['k', ['user', odd]]])
        assert.deepEqual(await contents(notes(hf, { [odd]: 'x' })), [['k', ['name', odd]]])
        assert.deepEqual(await contents(notes(hf, { user: 'x' }, odd)), [['k', ['collection', odd]]])
      }
    },
  },
  {
    name: 'never mixes up scopes and collections that look alike when they are joined',
    async run({ hf }) {
      const places: [Record<string, string>, string][] = [
        [{ a: 'b' }, 'c'],
        [{ a: 'b}c' }, 'c'],
        [{ a: 'b' }, '}c'],
        [{ a: 'b', c: 'd' }, 'e'],
        [{ a: 'b,c=d' }, 'e'],
        [{ 'a=b,c': 'd' }, 'e'],
        [{ a: 'b%2cc' }, 'e'],
        [{ a: 'b,c' }, 'e'],
        [{ a: '{b}' }, 'e'],
        [{ a: 'b' }, '{a=b}e'],
      ]
      for (const [i, [scope, name]] of places.entries()) await notes(hf, scope, name).put('k', i)
      for (const [i, [scope, name]] of places.entries())
        assert.deepEqual(await contents(notes(hf, scope, name)), [['k', i]])
      const turned = notes(hf, { c: 'd', a: 'b' }, 'e')
      assert.deepEqual(await contents(turned), [['k', 3]], 'the order of the parts does not matter')
    },
  },
  {
    name: 'returns what stays exactly once while others come and go between pages, in every order',
    async run({ hf, open, random }) {
      const other = notes(await open())
      const orders = [{}, { direction: 'desc' }, { orderBy: 'n' }, { orderBy: 'n', direction: 'desc' }] as const
      for (const order of orders) {
        const collection = notes(hf)
        for (let i = 0; i < 60; i++) await collection.put(`k${String(i).padStart(2, '0')}`, { n: i % 7 })
        const found: string[] = []
        for (let cursor: string | undefined; ; ) {
          const page = await collection.search({ ...order, limit: 7, ...(cursor === undefined ? {} : { cursor }) })
          found.push(...keysOf(page))
          cursor = page.cursor
          if (cursor === undefined) break
          // Multiples of three come and go; the others are only read.
          await other.delete(`k${String(random.below(20) * 3).padStart(2, '0')}`)
          await other.put(`new${random.below(50)}`, { n: random.below(7) })
        }
        for (let i = 0; i < 60; i++) {
          if (i % 3 === 0) continue
          const key = `k${String(i).padStart(2, '0')}`
          assert.equal(
            found.filter((each) => each === key).length,
            1,
            `${key} comes once, ordered by ${JSON.stringify(order)}`,
          )
        }
      }
    },
  },
  {
    name: 'ends with a page without a cursor, and refuses a cursor of another order',
    async run({ hf }) {
      const collection = notes(hf)
      for (let i = 0; i < 6; i++) await collection.put(`k${i}`, { n: i, s: 'x'.repeat(i * 1000) })
      assert.equal((await collection.list({ limit: 6 })).cursor, undefined)
      assert.equal((await collection.list({ limit: 7 })).cursor, undefined)
      const { cursor = '' } = await collection.list({ limit: 3 })
      assert.deepEqual(keysOf(await collection.list({ limit: 3, cursor })), ['k3', 'k4', 'k5'])
      assert.equal((await collection.list({ limit: 3, cursor })).cursor, undefined)
      for (const order of [{ direction: 'desc' }, { orderBy: 'n' }, { orderBy: ['n', 'm'] }] as const) {
        await refuses(() => collection.search({ ...order, cursor }), 'invalid-option')
      }
      const long = await collection.search({ orderBy: 's', direction: 'desc', limit: 1 })
      assert.deepEqual(
        keysOf(await collection.search({ orderBy: 's', direction: 'desc', limit: 1, cursor: long.cursor ?? '' })),
        ['k4'],
      )
    },
  },
]
