import assert from 'node:assert/strict'
import type { EmbedOptions } from '../../store/index.js'
import { contents, keysOf, refuses, type StoreTest } from './store-context.js'

/** A vector by how often the letters a, b and c occur. */
const letters = (calls: (readonly string[])[] = []): EmbedOptions => ({
  dims: 3,
  fields: ['text'],
  embed: async (texts) => {
    calls.push(texts)
    return texts.map((text) => ['a', 'b', 'c'].map((letter) => text.split(letter).length - 1))
  },
})

export const semanticTests: readonly StoreTest[] = [
  {
    name: 'finds what is nearest in meaning, nearest first and equal ones by key',
    async run({ hf }) {
      const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { embed: letters() })
      const texts = { far: 'ccc', near: 'aab', nearest: 'aaa', same2: 'ab', same1: 'aabb', nothing: 'xyz' }
      for (const [key, text] of Object.entries(texts)) await collection.put(key, { text })
      await collection.put('textless', { other: 1 })
      const { items } = await collection.search({ query: 'a', limit: 4 })
      assert.deepEqual(keysOf({ items }), ['nearest', 'near', 'same1', 'same2'])
      assert.ok(Math.abs((items[0]?.score ?? 0) - 1) < 1e-6)
      assert.deepEqual(
        items.map(({ score = 0 }) => score),
        items.map(({ score = 0 }) => score).sort((a, b) => b - a),
      )
      assert.deepEqual(keysOf(await collection.search({ query: 'a', minScore: 0.9 })), ['nearest'])
      assert.deepEqual(keysOf(await collection.search({ query: 'c', limit: 1 })), ['far'])
    },
  },
  {
    name: 'narrows the search by filter, prefix and scope',
    async run({ hf }) {
      const make = (user: string) =>
        hf.store.scope({ user }).collection<unknown>('c', { embed: letters(), index: ['kind'] })
      const collection = make('u')
      for (let i = 0; i < 250; i++) await collection.put(`k${i}`, { text: 'a'.repeat(i + 1) + 'b', kind: i % 5, n: i })
      await make('other').put('best', { text: 'a' })
      const found = await collection.search({ query: 'a', filter: { kind: 3, n: { lt: 100 } }, prefix: 'k', limit: 3 })
      assert.deepEqual(keysOf(found), ['k98', 'k93', 'k88'])
    },
  },
  {
    name: 'keeps the vector up to date, also through steps and batches, in as few calls as it can',
    async run({ hf }) {
      const calls: (readonly string[])[] = []
      const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { embed: letters(calls) })
      await collection.batch([{ put: 'x', value: { text: 'a' } }, { put: 'y', value: { text: 'b' } }, { delete: 'z' }])
      assert.deepEqual(calls, [['a', 'b']])
      const log = await hf.log('thread')
      const write = await collection.write.put('x', { text: 'c' })
      await log.update(() => [{ kind: 'step', store: [write] }])
      assert.deepEqual(keysOf(await collection.search({ query: 'c', limit: 1 })), ['x'])
      assert.deepEqual((await collection.get('x'))?.value, { text: 'c' })
    },
  },
  {
    name: 'leaves out what was written without a vector or with one of another length',
    async run({ hf }) {
      const scope = hf.store.scope({ user: 'u' })
      await scope.collection<unknown>('c').put('plain', { text: 'a' })
      const wide: EmbedOptions = { dims: 4, embed: async (texts) => texts.map(() => [1, 0, 0, 0]) }
      await scope.collection<unknown>('c', { embed: wide }).put('wide', { text: 'a' })
      const collection = scope.collection<unknown>('c', { embed: letters() })
      await collection.put('mine', { text: 'a' })
      assert.deepEqual(keysOf(await collection.search({ query: 'a' })), ['mine'])
      assert.equal((await contents(collection)).length, 3)
    },
  },
  {
    name: 'refuses vectors that are no vectors, and writes nothing',
    async run({ hf }) {
      const results: unknown[] = [
        [],
        [[1, 2]],
        [[1, 2, Number.NaN]],
        [null],
        'x',
        [
          [1, 2, 3],
          [1, 2, 3],
        ],
        [['a', 'b', 'c']],
      ]
      for (const result of results) {
        const embed = { dims: 3, embed: async () => result as never }
        const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { embed })
        await refuses(() => collection.put('k', { text: 'a' }), 'invalid-value')
        await refuses(() => collection.search({ query: 'a' }), 'invalid-value')
      }
      const failing = { dims: 3, embed: () => Promise.reject(new TypeError('offline')) }
      await assert.rejects(
        hf.store.scope({ user: 'u' }).collection<unknown>('c', { embed: failing }).put('k', 1),
        TypeError,
      )
      const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { embed: letters() })
      await refuses(() => collection.search({ query: '' }), 'invalid-option')
      await refuses(() => collection.search({ query: 'a', orderBy: 'n' }), 'invalid-option')
      await refuses(() => collection.search({ query: 'a', minScore: Number.NaN }), 'invalid-option')
      assert.deepEqual(await contents(collection), [])
    },
  },
]
