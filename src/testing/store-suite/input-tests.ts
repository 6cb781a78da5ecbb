import assert from 'node:assert/strict'
import { contents, notes, refuses, type StoreTest } from './store-context.js'

const BAD_NAMES: readonly unknown[] = [
  '',
  'a\0b',
  'line\nbreak',
  '\u2028',
  '\ud800',
  'x'.repeat(1025),
  'é'.repeat(513),
  1,
  null,
  undefined,
  {},
  ['k'],
]

export const inputTests: readonly StoreTest[] = [
  {
    name: 'refuses bad keys, scopes and collections, and writes nothing',
    async run({ hf }) {
      const collection = notes(hf)
      for (const key of BAD_NAMES) {
        await refuses(() => collection.put(key as never, 1), 'invalid-id')
        await refuses(() => collection.get(key as never), 'invalid-id')
        await refuses(() => collection.delete(key as never), 'invalid-id')
        await refuses(() => collection.write.put(key as never, 1), 'invalid-id')
        await refuses(() => collection.write.delete(key as never), 'invalid-id')
        await refuses(() => hf.store.scope({ user: 'u' }).collection(key as never), 'invalid-id')
        await refuses(() => hf.store.scope({ user: key as never }), 'invalid-id')
        await refuses(() => hf.store.scope(key as never), 'invalid-id')
      }
      for (const scope of [{}, [], new Map(), { '': 'x' }, { user: 1 }, { user: 'u'.repeat(1020) }]) {
        await refuses(() => hf.store.scope(scope as never), 'invalid-id')
      }
      await refuses(() => hf.store.scope({ user: 'u'.repeat(1000) }).collection('c'.repeat(20)), 'invalid-id')
      assert.deepEqual(await hf.store.collections(), { collections: [] })
    },
  },
  {
    name: 'refuses values that are too large or can not be stored, and writes nothing',
    async run({ hf }) {
      const collection = notes(hf)
      await refuses(() => collection.put('k', 'x'.repeat(1024 * 1024 + 1)), 'too-large')
      await refuses(() => collection.write.put('k', 'x'.repeat(1024 * 1024 + 1)), 'too-large')
      const cyclic: { self?: unknown } = {}
      cyclic.self = cyclic
      for (const value of [undefined, () => 1, Symbol('s'), new Map(), cyclic, [undefined], new Date(Number.NaN)]) {
        await refuses(() => collection.put('k', value), 'invalid-value')
      }
      const small = hf.store.scope({ user: 'u' }).collection('small', { maxBytes: 10 })
      await refuses(() => small.put('k', 'twelve chars'), 'too-large')
      await small.put('k', 'short')
      assert.deepEqual(await contents(collection), [])
    },
  },
  {
    name: 'refuses bad options, each with its name, and writes nothing',
    async run({ hf }) {
      const collection = notes(hf)
      const scope = hf.store.scope({ user: 'u' })
      for (const ttlMs of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', 1e300]) {
        await refuses(() => collection.put('k', 1, { ttlMs: ttlMs as never }), 'invalid-option')
        await refuses(() => scope.collection('c', { ttlMs: ttlMs as never }), 'invalid-option')
      }
      for (const expect of [1, true, {}, []])
        await refuses(() => collection.put('k', 1, { expect: expect as never }), 'invalid-option')
      await refuses(() => scope.collection('c', { refreshOnRead: true }), 'invalid-option')
      await refuses(
        () => scope.collection('c', { index: Array.from({ length: 17 }, (_, i) => `f${i}`) }),
        'invalid-option',
      )
      await refuses(() => scope.collection('c', { index: [['a', 5]] as never }), 'invalid-option')
      await refuses(() => scope.collection('c', { index: ['__proto__'] }), 'invalid-option')
      await refuses(() => scope.collection('c', { maxBytes: 1e12 }), 'invalid-option')
      await refuses(() => scope.collection('c', { embed: { dims: 0, embed: async () => [] } }), 'invalid-option')
      await refuses(() => scope.collection('c', { embed: { dims: 2 } as never }), 'invalid-option')
      for (const limit of [0, -1, 1.5, 10_001, '5']) {
        await refuses(() => collection.list({ limit: limit as never }), 'invalid-option')
        await refuses(() => hf.store.collections({ limit: limit as never }), 'invalid-option')
      }
      for (const cursor of ['', 'x', '!!', 'W10', 5, Buffer.from('["[null,false]",5]').toString('base64url')]) {
        await refuses(() => collection.list({ cursor: cursor as never }), 'invalid-option')
        await refuses(() => hf.store.collections({ cursor: cursor as never }), 'invalid-option')
      }
      await refuses(() => collection.search({ direction: 'up' as never }), 'invalid-option')
      await refuses(() => collection.search({ orderBy: [] }), 'invalid-option')
      await refuses(() => collection.search({ query: 'text' }), 'invalid-option')
      assert.deepEqual(await contents(collection), [])
    },
  },
  {
    name: 'refuses filters with unknown operators, reserved names and bad operands',
    async run({ hf }) {
      const collection = notes(hf)
      await collection.put('k', { a: 1 })
      const bad: unknown[] = [
        { a: { like: 'x' } },
        { a: { $gt: 1 } },
        { a: { eq: 1, sql: 'x' } },
        { a: {} },
        { a: [1] },
        { a: undefined },
        { a: { eq: [1] } },
        { a: { eq: {} } },
        { a: { gt: null } },
        { a: { gt: true } },
        { a: { gt: Number.NaN } },
        { a: { lt: new Date(Number.NaN) } },
        { a: { in: 1 } },
        { a: { in: [[1]] } },
        { a: { in: Array.from({ length: 1001 }, () => 1) } },
        { a: { exists: 1 } },
        { a: new Uint8Array(1) },
        { $or: [] },
        { $where: 'true' },
        JSON.parse('{"__proto__": 1}'),
        JSON.parse('{"a": {"__proto__": 1}}'),
        { constructor: 1 },
        { prototype: 1 },
        Object.create({ a: 1 }),
        new Map(),
        'a = 1',
        5,
        null,
        [1],
        [{ eq: 1 }],
        [{ field: 'a' }],
        [{ field: [], eq: 1 }],
        [{ field: ['a', '__proto__'], eq: 1 }],
        [{ field: ['a', 1], eq: 1 }],
        [{ field: 'x'.repeat(2000), eq: 1 }],
        Array.from({ length: 101 }, () => ({ field: 'a', eq: 1 })),
      ]
      for (const filter of bad) await refuses(() => collection.search({ filter: filter as never }), 'invalid-option')
      await refuses(() => collection.search({ orderBy: '__proto__' }), 'invalid-option')
    },
  },
]
