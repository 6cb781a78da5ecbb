import assert from 'node:assert/strict'
import { isHoldfastError, type StandardSchema } from '../../index.js'
import type { SpaceName } from '../../store/index.js'
import { contents, notes, refuses, type StoreTest } from './store-context.js'

/** A number that a schema makes of text. */
const countSchema: StandardSchema<{ readonly count: string }, { readonly count: number }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) => {
      const count = Number((value as { readonly count?: unknown } | null)?.count)
      return Number.isNaN(count) ? { issues: [{ message: 'is no number', path: ['count'] }] } : { value: { count } }
    },
  },
}

export const itemTests: readonly StoreTest[] = [
  {
    name: 'puts, gets, overwrites and deletes an item, with its times and versions',
    async run({ hf, clock }) {
      const collection = notes(hf)
      assert.equal(await collection.get('k'), undefined)
      const began = new Date(clock.now())
      const first = await collection.put('k', { n: 1 })
      assert.deepEqual(first, { key: 'k', version: first.version, updatedAt: began, expiresAt: null })
      const read = {
        key: 'k',
        value: { n: 1 },
        version: first.version,
        createdAt: began,
        updatedAt: began,
        expiresAt: null,
      }
      assert.deepEqual(await collection.get('k'), read)
      await clock.advance(1000)
      const second = await collection.put('k', 'other')
      assert.notEqual(second.version, first.version)
      const after = { value: 'other', version: second.version, updatedAt: new Date(clock.now()) }
      assert.deepEqual(await collection.get('k'), { ...read, ...after })
      await collection.delete('k')
      await collection.delete('k')
      assert.equal(await collection.get('k'), undefined)
    },
  },
  {
    name: 'gives back exactly what was put, and nothing that is shared with it',
    async run({ hf }) {
      const collection = notes(hf)
      const value = {
        date: new Date(1234),
        big: 2n ** 80n,
        bytes: new Uint8Array([0, 255]),
        odd: [Number.NaN, -0, Number.POSITIVE_INFINITY, null, '', '\ud800', '\0'],
        ['__proto__x']: { constructor: 1 },
        deep: [[[{ a: [] }]]],
        long: 'x'.repeat(200_000),
      }
      const given = structuredClone(value)
      await collection.put('k', given)
      given.odd.push('changed')
      const read = (await collection.get('k'))?.value as typeof value
      assert.deepEqual(read, value)
      read.deep.length = 0
      assert.deepEqual((await collection.get('k'))?.value, value)
      for (const scalar of [null, true, 0, 'text', 5n, new Date(0), [], {}]) {
        await collection.put('scalar', scalar)
        assert.deepEqual((await collection.get('scalar'))?.value, scalar)
      }
    },
  },
  {
    name: 'writes over the expected version only, and tells which one is there',
    async run({ hf }) {
      const collection = notes(hf)
      const { version } = await collection.put('k', 1, { expect: null })
      for (const expect of [null, 'other']) {
        await assert.rejects(collection.put('k', 2, { expect }), (error) => {
          return isHoldfastError(error, 'conflict') && error.data.version === version && error.data.key === 'k'
        })
        await refuses(() => collection.delete('k', { expect }), 'conflict')
      }
      assert.equal((await collection.get('k'))?.value, 1)
      await collection.put('k', 2, { expect: version })
      await refuses(() => collection.put('k', 3, { expect: version }), 'conflict')
      const now = await collection.get('k')
      await collection.delete('k', { expect: now?.version ?? null })
      await assert.rejects(collection.put('k', 3, { expect: version }), (error) => {
        return isHoldfastError(error, 'conflict') && error.data.version === null
      })
      await collection.delete('k', { expect: null })
    },
  },
  {
    name: 'batches puts and deletes, each by itself, and reads many at once',
    async run({ hf }) {
      const collection = notes(hf)
      const { version } = await collection.put('there', 0)
      await collection.put('gone', 0)
      const results = await collection.batch([
        { put: 'a', value: 1 },
        { put: 'there', value: 2, expect: null },
        { delete: 'gone' },
        { put: 'b', value: 3, expect: null },
      ])
      assert.deepEqual(
        results.map(({ status }) => status),
        ['written', 'conflict', 'written', 'written'],
      )
      assert.deepEqual(results[1], { status: 'conflict', version })
      assert.deepEqual(results[2], { status: 'written', written: null })
      const first = results[0]
      assert.ok(first?.status === 'written' && first.written?.version === (await collection.get('a'))?.version)
      const found = await collection.getMany(['a', 'there', 'gone', 'b', 'a'])
      assert.deepEqual([...found].map(([key, { value }]) => [key, value]).sort(), [
        ['a', 1],
        ['b', 3],
        ['there', 0],
      ])
      assert.deepEqual(await collection.batch([]), [])
      const many = Array.from({ length: 1500 }, (_, i) => ({ put: `m${i}`, value: i }))
      assert.ok((await collection.batch(many)).every(({ status }) => status === 'written'))
      assert.equal((await contents(collection, 1000)).length, 1503)
    },
  },
  {
    name: 'writes nothing of a batch in which one operation is bad',
    async run({ hf }) {
      const collection = notes(hf)
      const good = { put: 'good', value: 1 }
      await refuses(() => collection.batch([good, { put: '', value: 1 }]), 'invalid-id')
      await refuses(() => collection.batch([good, { put: 'k', value: () => 1 }]), 'invalid-value')
      await refuses(() => collection.batch([good, { put: 'good', value: 2 }]), 'invalid-value')
      await refuses(() => collection.batch([good, { delete: 'k', expect: 5 as never }]), 'invalid-option')
      await refuses(() => collection.batch([good, null as never]), 'invalid-value')
      assert.deepEqual(await contents(collection), [])
    },
  },
  {
    name: 'checks values by a schema when they are written, and stores what it makes of them',
    async run({ hf }) {
      const collection = hf.store.scope({ user: 'u' }).collection('counts', { schema: countSchema })
      await collection.put('k', { count: '12' })
      const count: number | undefined = (await collection.get('k'))?.value.count
      assert.equal(count, 12)
      await assert.rejects(collection.put('k', { count: 'many' }), (error) => {
        return isHoldfastError(error, 'invalid-value') && error.data.path === '$.count'
      })
      await refuses(() => collection.write.put('k', { count: 'many' }), 'invalid-value')
      assert.equal((await collection.get('k'))?.value.count, 12)
      await refuses(() => hf.store.scope({ user: 'u' }).collection('x', { schema: {} as never }), 'invalid-option')
    },
  },
  {
    name: 'lists the collections that hold something, of a scope and of the tenant',
    async run({ hf }) {
      const scopes = [{ user: 'a' }, { user: 'a', team: '}x,{' }, { user: 'a}' }, { team: 'a' }]
      for (const scope of scopes) for (const name of ['notes', '{}', 'n/1']) await notes(hf, scope, name).put('k', 1)
      for (const scope of scopes) assert.deepEqual(await hf.store.scope(scope).collections(), ['n/1', 'notes', '{}'])
      assert.deepEqual(await hf.store.scope({ user: 'b' }).collections(), [])
      const found: SpaceName[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await hf.store.collections({ limit: 5, ...(cursor === undefined ? {} : { cursor }) })
        found.push(...page.collections)
        cursor = page.cursor
        if (cursor === undefined) break
      }
      assert.equal(found.length, 12)
      for (const scope of scopes) {
        const own = found.filter(
          (one) => JSON.stringify(Object.entries(one.scope).sort()) === JSON.stringify(Object.entries(scope).sort()),
        )
        assert.deepEqual(own.map(({ collection }) => collection).sort(), ['n/1', 'notes', '{}'].sort())
      }
    },
  },
]
