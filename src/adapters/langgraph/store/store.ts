import {
  BaseStore,
  type GetOperation,
  type IndexConfig,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from '@langchain/langgraph-checkpoint'
import type { Collection, CollectionOptions, Holdfast, Scope } from '../../../index.js'
import { InvalidOptionError } from '../../../errors.js'
import { checkOptionNames, type OptionNames } from '../../../internal.js'
import type { BatchOperation } from '../../../store/index.js'
import { isPlainObject } from '../values/encode.js'
import { checkFilter } from './store-filter.js'
import { SemanticIndex } from './store-index.js'
import { type Kept, readValue, toKept } from './store-kept.js'
import { checkNamespace, collectionOf, escape, namespaceOfCollection, namespacePrefix } from './store-names.js'
import { checkCount, searchItems } from './store-search.js'

/** Where the memory lives, how it is searched, and when it expires. */
export interface HoldfastStoreOptions {
  /** Whose memory it is. Default: the tenant of the Holdfast that is passed in. */
  readonly tenant?: string
  /** The Holdfast scope that all namespaces live in. Default `{ langgraph: 'store' }`. */
  readonly scope?: Readonly<Record<string, string>>
  /** Finds items by meaning, configured as for LangGraph's own stores. */
  readonly index?: IndexConfig
  /** In minutes, as for LangGraph's own stores. */
  readonly ttl?: { readonly defaultTtl?: number; readonly refreshOnRead?: boolean }
  /**
   * Fields, at most 16, by whose values searches filter with `$eq` and `$in`: the backend then leaves out what can't
   * match. Never changes what is found.
   */
  readonly filterFields?: readonly string[]
  /** The maximum size of one item in bytes of JSON, including its vectors. Default 1 MiB. */
  readonly maxBytes?: number
}

const OPTIONS: OptionNames<HoldfastStoreOptions> = {
  tenant: true,
  scope: true,
  index: true,
  ttl: true,
  filterFields: true,
  maxBytes: true,
}

type Put = PutOperation & { readonly ttl?: number }

const MINUTE_MS = 60_000
const CHECKS_AT_ONCE = 16

/** Keeps LangGraph's long-term memory in a Holdfast, on any of its backends. */
export class HoldfastStore extends BaseStore {
  readonly #scope: Scope
  readonly #index: SemanticIndex | undefined
  readonly #indexConfig: IndexConfig | undefined
  readonly #filterFields: readonly string[]
  readonly #collectionOptions: Pick<CollectionOptions, 'ttlMs' | 'refreshOnRead' | 'maxBytes' | 'index'>

  constructor(hf: Holdfast, options: HoldfastStoreOptions = {}) {
    super()
    checkOptionNames('HoldfastStore', options, OPTIONS)
    const { tenant, scope = { langgraph: 'store' }, index, ttl = {}, filterFields = [], maxBytes } = options
    const owner = tenant === undefined ? hf : hf.tenant(tenant)
    this.#scope = owner.store.scope(scope)
    this.#index = index && new SemanticIndex(index)
    this.#indexConfig = index
    const { defaultTtl, refreshOnRead = true } = ttl
    this.#collectionOptions = {
      ...(defaultTtl === undefined ? {} : { ttlMs: toMs(defaultTtl), refreshOnRead }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
      ...(filterFields.length === 0 ? {} : { index: filterFields.map((field) => ['value', field]) }),
    }
    this.#filterFields = [...filterFields]
    // Refuses an invalid option now, and not with the first item.
    this.#collection('options')
  }

  /** How items are found by meaning, as on LangGraph's own stores. Undefined: they are not. */
  get indexConfig(): IndexConfig | undefined {
    return this.#indexConfig
  }

  /**
   * Reads see what was there before the writes of the same batch. Among several writes of one item, the last counts.
   */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const puts = operations.filter(isPut)
    const writes = await this.#prepare(puts)
    const results = await Promise.all(
      operations.map((operation) => {
        if (isPut(operation)) return undefined
        if ('namespacePrefix' in operation) return this.#search(operation)
        if ('key' in operation) return this.#get(operation)
        return this.#listNamespaces(operation)
      }),
    )
    await Promise.all([...writes].map(([name, batch]) => this.#collection(name).batch([...batch.values()])))
    return results as OperationResults<Op>
  }

  /** With `ttl` in minutes. */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    options: { readonly ttl?: number } = {},
  ): Promise<void> {
    const { ttl } = options
    checkNamespace(namespace)
    await this.batch([
      { namespace, key, value, ...(index === undefined ? {} : { index }), ...(ttl === undefined ? {} : { ttl }) },
    ])
  }

  async #prepare(puts: readonly Put[]): Promise<Map<string, Map<string, BatchOperation<Kept>>>> {
    const batches = new Map<string, Map<string, BatchOperation<Kept>>>()
    const vectors = await this.#vectors(puts)
    for (const [i, { namespace, key, value, ttl }] of puts.entries()) {
      const name = collectionOf(namespace)
      const batch = batches.get(name) ?? new Map<string, BatchOperation<Kept>>()
      batches.set(name, batch)
      const id = escape('key', key)
      if (value === null) {
        batch.set(id, { delete: id })
        continue
      }
      if (typeof value !== 'object' || !isPlainObject(value)) {
        throw new InvalidOptionError('value', 'must be an object', 'Pass an object with fields, or null to delete.')
      }
      const kept = toKept(value, vectors[i] ?? [])
      batch.set(id, { put: id, value: kept, ...(ttl === undefined ? {} : { ttlMs: toMs(ttl) }) })
    }
    return batches
  }

  async #vectors(puts: readonly Put[]): Promise<Float32Array[][]> {
    if (this.#index === undefined) return []
    return this.#index.vectors(
      puts.map(({ value, index }) => ({ value: value ?? {}, index: value === null ? false : index })),
    )
  }

  async #get({ namespace, key }: GetOperation): Promise<Item | null> {
    const item = await this.#collection(collectionOf(namespace)).get(escape('key', key))
    if (item === undefined) return null
    const { createdAt, updatedAt } = item
    return { namespace, key, value: readValue(item.value), createdAt, updatedAt }
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const { namespacePrefix: prefix, filter, query } = operation
    checkFilter(filter)
    const vector = query && this.#index ? await this.#index.queryVector(query) : undefined
    return searchItems(operation, {
      names: await this.#scope.collections({ prefix: namespacePrefix(prefix) }),
      open: (name) => this.#collection(name),
      filterFields: this.#filterFields,
      vector,
    })
  }

  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit = Number.POSITIVE_INFINITY, offset = 0 } = operation
    checkCount('limit', limit)
    checkCount('offset', offset)
    const names = await this.#scope.collections({ prefix: namespacePrefix(fixedPrefix(matchConditions)) })
    const waiting: string[] = []
    const found = new Map<string, string[]>()
    for (const name of names) {
      const namespace = namespaceOfCollection(name)
      if (!matchConditions.every((condition) => isMatch(namespace, condition))) continue
      const cut = namespace.slice(0, maxDepth)
      if (found.has(JSON.stringify(cut))) continue
      waiting.push(name)
      if (waiting.length >= CHECKS_AT_ONCE) await this.#addHolding(waiting.splice(0), maxDepth, found)
      if (found.size >= offset + limit) break
    }
    await this.#addHolding(waiting, maxDepth, found)
    return [...found.values()].slice(offset, offset + limit)
  }

  /** Backends may list a collection whose last item was just removed. */
  async #addHolding(names: readonly string[], maxDepth: number | undefined, found: Map<string, string[]>) {
    const pages = await Promise.all(names.map((name) => this.#collection(name).list({ limit: 1 })))
    for (const [i, name] of names.entries()) {
      if (pages[i]?.items.length === 0) continue
      const cut = namespaceOfCollection(name).slice(0, maxDepth)
      found.set(JSON.stringify(cut), cut)
    }
  }

  #collection(name: string): Collection<Kept> {
    return this.#scope.collection<Kept>(name, this.#collectionOptions)
  }
}

function isPut(operation: Operation): operation is Put {
  return 'value' in operation
}

/** The labels at the beginning that a namespace must have as they are. */
function fixedPrefix(conditions: readonly MatchCondition[]): string[] {
  const { path = [] } = conditions.find(({ matchType }) => matchType === 'prefix') ?? {}
  const wildcard = path.indexOf('*')
  return wildcard < 0 ? [...path] : path.slice(0, wildcard)
}

function isMatch(namespace: readonly string[], { matchType, path }: MatchCondition): boolean {
  if (matchType !== 'prefix' && matchType !== 'suffix') {
    throw new InvalidOptionError('matchType', `is ${JSON.stringify(matchType)}`, 'Use prefix or suffix.')
  }
  if (path.length > namespace.length) return false
  const start = matchType === 'prefix' ? 0 : namespace.length - path.length
  return path.every((label, i) => label === '*' || label === namespace[start + i])
}

function toMs(minutes: number): number {
  const ms = Math.round(minutes * MINUTE_MS)
  if (Number.isSafeInteger(ms) && ms >= 1) return ms
  throw new InvalidOptionError('ttl', 'must be a number of minutes above 0', 'Leave it out for items that stay.')
}
