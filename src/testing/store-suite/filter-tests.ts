import assert from 'node:assert/strict'
import type { Collection } from '../../index.js'
import type { SearchQuery } from '../../store/index.js'
import { expectedKeys, type ModelItem, randomIndex, randomQuery, randomValue } from './filter-model.js'
import { keysOf, notes, type StoreTest } from './store-context.js'

export const filterTests: readonly StoreTest[] = [
  {
    name: 'finds what random filters ask for, in the order they ask for, as a simple model does',
    timeoutMs: 300_000,
    async run({ hf, random, rounds }) {
      for (let store = 0; store < 4; store++) {
        const scope = hf.store.scope({ user: `u${store}` })
        const index = randomIndex(random)
        const indexed = scope.collection<unknown>('items', { index })
        // Items that were written before a field was indexed, or by a process that indexes others, are found as well.
        const writers = [
          indexed,
          scope.collection<unknown>('items'),
          scope.collection<unknown>('items', { index: randomIndex(random) }),
        ]
        const items: ModelItem[] = []
        for (let i = 0; i < 60; i++) {
          const key = `k${i}`
          const value = randomValue(random)
          items.push({ key, value })
          await random.pick(writers).put(key, value)
        }
        for (let round = 0; round < rounds; round++) {
          const query = randomQuery(random)
          const found = await searchAll(random.pick(writers), query)
          assert.deepEqual(found, expectedKeys(items, query), JSON.stringify(query, showAll))
        }
      }
    },
  },
  {
    name: 'compares only within a kind, and takes a missing field for none of them',
    async run({ hf }) {
      const collection = notes(hf)
      const values = {
        number: 1,
        text: '1',
        big: 1n,
        date: new Date(1),
        yes: true,
        none: null,
        list: [1],
        record: { x: 1 },
      }
      for (const [key, value] of Object.entries(values)) await collection.put(key, { v: value })
      await collection.put('missing', {})
      const find = async (filter: SearchQuery['filter']) => keysOf(await collection.search(filter ? { filter } : {}))
      assert.deepEqual(await find({ v: 1 }), ['number'])
      assert.deepEqual(await find({ v: '1' }), ['text'])
      assert.deepEqual(await find({ v: 1n }), ['big'])
      assert.deepEqual(await find({ v: new Date(1) }), ['date'])
      assert.deepEqual(await find({ v: true }), ['yes'])
      assert.deepEqual(await find({ v: null }), ['none'])
      assert.deepEqual(await find({ v: { gte: 0 } }), ['number'])
      assert.deepEqual(await find({ v: { gt: '' } }), ['text'])
      assert.deepEqual(await find({ v: { contains: 1 } }), ['list'])
      assert.deepEqual(await find({ v: { exists: false } }), ['missing'])
      assert.deepEqual(await find({ v: { ne: 1, exists: true } }), [
        'big',
        'date',
        'list',
        'none',
        'record',
        'text',
        'yes',
      ])
      assert.ok((await find({ v: { ne: 1 } })).includes('missing'))
      assert.ok((await find({ v: { nin: [1] } })).includes('missing'))
      assert.deepEqual(await find({ v: { in: [] } }), [])
      const { items } = await collection.search({ orderBy: 'v' })
      const order = ['missing', 'none', 'yes', 'number', 'big', 'text', 'date', 'list', 'record']
      assert.deepEqual(keysOf({ items }), order)
      assert.deepEqual(keysOf(await collection.search({ orderBy: 'v', direction: 'desc' })), [...order].reverse())
    },
  },
  {
    name: 'reaches nested fields by path and fields with dots by name',
    async run({ hf }) {
      const collection = notes(hf)
      await collection.put('nested', { address: { city: 'Paris' } })
      await collection.put('dotted', { 'address.city': 'Paris' })
      await collection.put('dollar', { $x: 1 })
      assert.deepEqual(keysOf(await collection.search({ filter: [{ field: ['address', 'city'], eq: 'Paris' }] })), [
        'nested',
      ])
      assert.deepEqual(keysOf(await collection.search({ filter: { 'address.city': 'Paris' } })), ['dotted'])
      assert.deepEqual(keysOf(await collection.search({ filter: [{ field: '$x', gte: 1, lt: 2 }] })), ['dollar'])
      assert.deepEqual(keysOf(await collection.search({ filter: { 'address.city': 'Paris' }, prefix: 'n' })), [])
    },
  },
]

async function searchAll(collection: Collection<unknown>, query: SearchQuery): Promise<string[]> {
  const found: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await collection.search(cursor === undefined ? query : { ...query, cursor })
    assert.ok(page.items.length <= (query.limit ?? 100))
    found.push(...keysOf(page))
    cursor = page.cursor
    if (cursor === undefined) return found
  }
}

function showAll(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value
}
