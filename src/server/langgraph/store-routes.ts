import { isHoldfastError } from '../../index.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, nullable, type Route, type Schema } from '../http/route.js'
import { type GraphStore, hostedOf, type StoreItem } from './graphs/hosted-graph.js'
import { notOffered } from './not-offered.js'

const LABELS: Schema = { ...listOf({ type: 'string', minLength: 1, maxLength: 512 }), maxItems: 64 }
const KEY: Schema = { type: 'string', minLength: 1, maxLength: 512 }
const LIMIT: Schema = nullable({ type: 'integer', minimum: 1, maximum: 1000 })
const OFFSET: Schema = nullable({ type: 'integer', minimum: 0, maximum: 100_000 })
const answer = { schema: { type: 'object' } }

/** The long-term memory of graphs, which is the tenant's: what a node puts, a client gets. */
export const storeRoutes: readonly Route[] = [
  {
    method: 'PUT',
    path: '/store/items',
    name: 'lgPutItem',
    summary: 'Puts an item',
    role: 'run',
    body: {
      type: 'object',
      properties: {
        namespace: LABELS,
        key: KEY,
        value: { type: 'object' },
        index: nullable({ anyOf: [{ enum: [false] }, listOf({ type: 'string' })] }),
        ttl: nullable({ type: 'number', exclusiveMinimum: 0 }),
      },
      required: ['namespace', 'key', 'value'],
    },
    answer: { status: 204 },
    async handle(call) {
      const { namespace, key, value, index, ttl } = call.body as {
        readonly namespace: string[]
        readonly key: string
        readonly value: Record<string, unknown>
        readonly index?: false | string[] | null
        readonly ttl?: number | null
      }
      const options = ttl === undefined || ttl === null ? {} : { ttl }
      await checked((await storeOf(call)).put(namespace, key, value, index ?? undefined, options))
    },
  },
  {
    method: 'GET',
    path: '/store/items',
    name: 'lgGetItem',
    summary: 'One item; null where there is none',
    role: 'read',
    query: { namespace: { type: 'string' }, key: KEY, refresh_ttl: { type: 'string' } },
    answer,
    async handle(call) {
      const { namespace = '', key = '' } = call.query as { readonly namespace?: string; readonly key?: string }
      const item = await checked((await storeOf(call)).get(namespace.split('.'), key))
      return item === null ? null : toItem(item)
    },
  },
  {
    method: 'DELETE',
    path: '/store/items',
    name: 'lgDeleteItem',
    summary: 'Removes an item',
    role: 'run',
    body: { type: 'object', properties: { namespace: LABELS, key: KEY }, required: ['namespace', 'key'] },
    answer: { status: 204 },
    async handle(call) {
      const { namespace, key } = call.body as { readonly namespace: string[]; readonly key: string }
      await checked((await storeOf(call)).delete(namespace, key))
    },
  },
  {
    method: 'POST',
    path: '/store/items/search',
    name: 'lgSearchItems',
    summary: 'Items below a namespace, by their fields or by meaning',
    role: 'read',
    body: {
      type: 'object',
      properties: {
        namespace_prefix: nullable(LABELS),
        filter: nullable({ type: 'object' }),
        query: nullable({ type: 'string' }),
        limit: LIMIT,
        offset: OFFSET,
      },
    },
    answer,
    async handle(call) {
      const { namespace_prefix: prefix, ...options } = call.body as {
        readonly namespace_prefix?: string[] | null
        readonly filter?: Record<string, unknown> | null
        readonly query?: string | null
        readonly limit?: number | null
        readonly offset?: number | null
      }
      const { filter, query, limit, offset } = options
      const found = (await storeOf(call)).search(prefix ?? [], {
        ...(filter ? { filter } : {}),
        ...(query ? { query } : {}),
        limit: limit ?? 10,
        offset: offset ?? 0,
      })
      return { items: (await checked(found)).map(toItem) }
    },
  },
  {
    method: 'POST',
    path: '/store/namespaces',
    name: 'lgListNamespaces',
    summary: 'Namespaces that hold items',
    role: 'read',
    body: {
      type: 'object',
      properties: {
        prefix: nullable(LABELS),
        suffix: nullable(LABELS),
        max_depth: nullable({ type: 'integer', minimum: 1 }),
        limit: LIMIT,
        offset: OFFSET,
      },
    },
    answer,
    async handle(call) {
      const {
        prefix,
        suffix,
        max_depth: maxDepth,
        limit,
        offset,
      } = call.body as {
        readonly prefix?: string[] | null
        readonly suffix?: string[] | null
        readonly max_depth?: number | null
        readonly limit?: number | null
        readonly offset?: number | null
      }
      const found = (await storeOf(call)).listNamespaces({
        ...(prefix ? { prefix } : {}),
        ...(suffix ? { suffix } : {}),
        ...(maxDepth ? { maxDepth } : {}),
        limit: limit ?? 100,
        offset: offset ?? 0,
      })
      return { namespaces: await checked(found) }
    },
  },
]

/** The memory that the graphs here are given; without a graph, the same by its defaults. */
async function storeOf({ core, hf, principal }: Call): Promise<GraphStore> {
  for (const program of core.programs.values()) {
    const hosted = hostedOf(program)
    if (hosted !== undefined) return hosted.store(principal.tenant)
  }
  try {
    const { HoldfastStore } = await import('../../adapters/langgraph/index.js')
    return new HoldfastStore(hf) as GraphStore
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw notOffered('The store of LangGraph', 'It needs @langchain/langgraph-checkpoint and @langchain/core.')
  }
}

/** What LangGraph's own rules refuse is the caller's mistake. */
async function checked<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked
  } catch (error) {
    const { name, message } = error as { readonly name?: string; readonly message?: string }
    if (isHoldfastError(error) || name !== 'InvalidNamespaceError') throw error
    throw new HttpProblem(422, 'invalid-value', String(message), { fields: { path: 'namespace' } })
  }
}

function toItem({ namespace, key, value, createdAt, updatedAt, score }: StoreItem) {
  return {
    namespace,
    key,
    value,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
    ...(score === undefined ? {} : { score }),
  }
}
