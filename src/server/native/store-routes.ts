import type { SearchQuery } from '../../store/index.js'
import { readName, readScope } from '../http/ids.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, nullable, object, oneOf, ref, type Route } from '../http/route.js'
import { CURSOR, given, LIMIT, TEXT } from './common.js'

const COLLECTION = '/v1/store/:scope/:collection'

/** Memory that outlives threads, always inside a scope of the tenant. */
export const storeRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/store',
    name: 'listCollections',
    summary: 'Scopes and their collections',
    role: 'read',
    query: { limit: LIMIT, cursor: CURSOR },
    answer: {
      schema: object({
        collections: listOf(object({ scope: { type: 'object' }, collection: TEXT })),
        'cursor?': CURSOR,
      }),
    },
    handle: ({ hf, query }) => hf.store.collections(given(query) as never),
  },
  {
    method: 'GET',
    path: COLLECTION,
    name: 'listItems',
    summary: 'Items of a collection, by key',
    role: 'read',
    query: { prefix: TEXT, limit: LIMIT, cursor: CURSOR },
    answer: { schema: ref('ItemPage') },
    handle: (call) => collectionOf(call).list(given(call.query) as never),
  },
  {
    method: 'POST',
    path: `${COLLECTION}/search`,
    name: 'searchItems',
    summary: 'Items that a filter lets through',
    role: 'read',
    body: object({
      'filter?': { type: 'object' },
      'prefix?': TEXT,
      'orderBy?': { anyOf: [TEXT, listOf(TEXT)] },
      'direction?': oneOf('asc', 'desc'),
      'limit?': LIMIT,
      'cursor?': CURSOR,
    }),
    answer: { schema: ref('ItemPage') },
    handle: (call) => collectionOf(call).search(call.body as SearchQuery),
  },
  {
    method: 'GET',
    path: `${COLLECTION}/items/:key`,
    name: 'readItem',
    summary: 'One item',
    role: 'read',
    answer: { schema: ref('Item') },
    async handle(call) {
      const found = await collectionOf(call).get(keyOf(call))
      if (found !== undefined) return found
      throw new HttpProblem(404, 'not-found', 'There is no such item.')
    },
  },
  {
    method: 'PUT',
    path: `${COLLECTION}/items/:key`,
    name: 'writeItem',
    summary: 'Writes one item',
    role: 'run',
    body: object({
      value: {},
      'ttlMs?': { ...nullable({ type: 'integer', minimum: 1 }), description: 'How long it lives; null: forever.' },
      'expect?': { ...nullable(TEXT), description: 'The version that must be there; null: there must be none.' },
    }),
    answer: { schema: ref('Written') },
    handle(call) {
      const { value, ...options } = call.body as { readonly value: unknown }
      return collectionOf(call).put(keyOf(call), value, options)
    },
  },
  {
    method: 'DELETE',
    path: `${COLLECTION}/items/:key`,
    name: 'deleteItem',
    summary: 'Removes one item',
    role: 'run',
    query: { expect: { type: 'string', description: 'The version that must be there.' } },
    answer: { status: 204 },
    async handle(call) {
      await collectionOf(call).delete(keyOf(call), given(call.query))
    },
  },
]

function collectionOf({ hf, params }: Call) {
  const collection = readName(params['collection'] ?? '', 'collection')
  return hf.store.scope(readScope(readName(params['scope'] ?? '', 'scope'))).collection<unknown>(collection)
}

function keyOf({ params }: Call): string {
  return readName(params['key'] ?? '', 'key')
}
