import assert from 'node:assert/strict'
import type { SearchQuery } from '../../store/index.js'
import { contents, keysOf, notes, refuses, type StoreTest } from './store-context.js'

/** Text that does something elsewhere: in SQL, JSON paths, Lua, patterns, shells, URLs and JavaScript. */
const PAYLOADS: readonly string[] = [
  "' OR '1'='1",
  "x' OR 1=1 --",
  "'; DROP TABLE holdfast_items; --",
  '1); DELETE FROM items WHERE (1=1',
  '" OR ""="',
  '\\',
  "\\'",
  '$1',
  ':name',
  '?1',
  '%',
  '_',
  '%%',
  '*',
  '?',
  '[a-z]*',
  '$.secret',
  "$['secret']",
  '$..*',
  '$[*]',
  'secret.value',
  'secret[0]',
  '#>>{secret}',
  "')) UNION SELECT * FROM items --",
  "E'\\x27'",
  "redis.call('FLUSHALL')",
  'return redis.call("KEYS","*")',
  'KEYS[1]',
  '*1\r\n$8\r\nFLUSHALL\r\n'.replace(/[\r\n]/g, ' '),
  '../../etc/passwd',
  '{tag}',
  '${secret}',
  '{{secret}}',
  '`id`',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
]
const RESERVED = ['__proto__', 'constructor', 'prototype']

export const injectionTests: readonly StoreTest[] = [
  {
    name: 'takes field names in filters, orders and indexes for names and nothing else',
    async run({ hf }) {
      const scope = hf.store.scope({ user: 'u' })
      await scope.collection<unknown>('c').put('plain', { secret: 'x', n: 1 })
      await notes(hf, { user: 'v' }, 'c').put('foreign', { secret: 'x' })
      for (const payload of PAYLOADS) {
        const collection = scope.collection<unknown>('c', { index: [payload, [payload, payload]] })
        const clauses: NonNullable<SearchQuery['filter']>[] = [
          [{ field: payload, exists: true }],
          [{ field: payload, eq: 'x' }],
          [{ field: [payload, payload], in: ['x', 1] }],
          [{ field: ['secret', payload], exists: true }],
          [{ field: payload, gte: '' }],
        ]
        for (const filter of clauses) assert.deepEqual((await collection.search({ filter })).items, [], payload)
        assert.deepEqual(keysOf(await collection.search({ orderBy: payload })), ['plain'])
        await collection.put('mine', { [payload]: 'x' })
        assert.deepEqual(keysOf(await collection.search({ filter: [{ field: payload, eq: 'x' }] })), ['mine'])
        await collection.delete('mine')
      }
      assert.deepEqual(await contents(scope.collection<unknown>('c')), [['plain', { secret: 'x', n: 1 }]])
    },
  },
  {
    name: 'takes values in filters, keys, prefixes and scopes for values and nothing else',
    async run({ hf }) {
      const collection = hf.store.scope({ user: 'u' }).collection<unknown>('c', { index: ['name'] })
      await collection.put('plain', { name: 'x', n: 1 })
      for (const payload of PAYLOADS) {
        for (const filter of [
          { name: payload },
          { name: { in: [payload] } },
          { n: payload },
          { name: { gt: 'x', contains: payload } },
        ]) {
          assert.deepEqual((await collection.search({ filter })).items, [], payload)
        }
        assert.equal(await collection.get(payload), undefined)
        assert.deepEqual((await collection.list({ prefix: payload })).items, [])
        assert.deepEqual(await contents(notes(hf, { user: payload }, 'c')), [])
        assert.deepEqual(await contents(notes(hf, { [payload]: 'u' }, 'c')), [])
        assert.deepEqual(await contents(notes(hf, { user: 'u' }, payload)), [])
        await collection.delete(payload)
        await collection.put(payload, { name: payload, [payload]: payload })
        assert.deepEqual(keysOf(await collection.search({ filter: { name: payload } })), [payload])
        assert.deepEqual((await collection.get(payload))?.value, { name: payload, [payload]: payload })
        await collection.delete(payload)
      }
      assert.deepEqual(await contents(collection), [['plain', { name: 'x', n: 1 }]])
    },
  },
  {
    name: 'pollutes no prototype, whatever values, filters, scopes and keys are called',
    async run({ hf }) {
      const collection = notes(hf)
      const before = Object.getOwnPropertyNames(Object.prototype).sort()
      const value: unknown = JSON.parse(
        '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
      )
      await collection.put('k', value)
      const read = (await collection.get('k'))?.value as object
      assert.deepEqual(Object.keys(read), ['__proto__', 'constructor'])
      assert.equal(Object.getPrototypeOf(read), Object.prototype)
      for (const name of RESERVED) {
        await refuses(
          () => collection.search({ filter: JSON.parse(`{"${name}": {"exists": true}}`) }),
          'invalid-option',
        )
        await refuses(() => collection.search({ filter: [{ field: [name, 'polluted'], eq: true }] }), 'invalid-option')
        await refuses(() => collection.search({ orderBy: name }), 'invalid-option')
        const scope = JSON.parse(`{"${name}": "${name}"}`) as Record<string, string>
        await notes(hf, scope, name).put(name, name)
        assert.deepEqual(await contents(notes(hf, scope, name)), [[name, name]])
        assert.deepEqual(await hf.store.scope(scope).collections(), [name])
        assert.equal((await notes(hf, scope, name).getMany([name])).size, 1)
      }
      const listed = (await hf.store.collections()).collections
      assert.ok(listed.some(({ scope }) => Object.hasOwn(scope, '__proto__')))
      assert.equal(({} as { polluted?: unknown }).polluted, undefined)
      assert.deepEqual(Object.getOwnPropertyNames(Object.prototype).sort(), before)
      assert.deepEqual(keysOf(await collection.search({ filter: [{ field: 'polluted', eq: true }] })), [])
    },
  },
]
