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
import {
  type BatchOperation,
  type Collection,
  type CollectionOptions,
  type Holdfast,
  InvalidOptionError,
  type Scope,
  type Value,
} from 'holdfast'
import { decode } from './decode.js'
import { encode, isPlainObject } from './encode.js'
import { checkFilter, fits } from './store-filter.js'
import { bestScore, SemanticIndex } from './store-index.js'
import {
  checkNamespace,
  collectionOf,
  escape,
  namespaceOfCollection,
  namespacePrefix,
  unescape,
} from './store-names.js'

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
  /** The most bytes of JSON in one item, its vectors included. Default 1 MiB. */
  readonly maxBytes?: number
}

/** How an item is kept: its value, and the vectors by which it is found. */
type Kept = { readonly value: Value; readonly vectors?: readonly Value[] }
type Put = PutOperation & { readonly ttl?: number }

const PAGE = 1000
const MINUTE_MS = 60_000
const CHECKS_AT_ONCE = 16

/** Keeps LangGraph's long-term memory in a Holdfast, on any of its backends. */
export class HoldfastStore extends BaseStore {
  readonly #scope: Scope
  readonly #index: SemanticIndex | undefined
  readonly #collectionOptions: Pick<CollectionOptions, 'ttlMs' | 'refreshOnRead' | 'maxBytes'>

  constructor(hf: Holdfast, options: HoldfastStoreOptions = {}) {
    super()
    const { tenant, scope = { langgraph: 'store' }, index, ttl = {}, maxBytes } = options
    const owner = tenant === undefined ? hf : hf.tenant(tenant)
    this.#scope = owner.store.scope(scope)
    this.#index = index && new SemanticIndex(index)
    const { defaultTtl, refreshOnRead = true } = ttl
    this.#collectionOptions = {
      ...(defaultTtl === undefined ? {} : { ttlMs: toMs(defaultTtl), refreshOnRead }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    }
  }

  /** Reads see what was there before the writes of the same batch. Of several writes of one item the last counts. */
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
        throw new InvalidOptionError('value', 'is no object', 'Pass an object with fields, or null to delete.')
      }
      const made = vectors[i] ?? []
      const kept: Kept = {
        value: encode(value, ['value']),
        ...(made.length === 0 ? {} : { vectors: made.map((vector) => new Uint8Array(vector.buffer)) }),
      }
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
    return { namespace, key, value: decode(item.value.value) as Record<string, unknown>, createdAt, updatedAt }
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const { namespacePrefix: prefix, filter, query, limit = 10, offset = 0 } = operation
    checkFilter(filter)
    const vector = query && this.#index ? await this.#index.queryVector(query) : undefined
    const found: { item: SearchItem; score: number | undefined }[] = []
    for (const name of await this.#scope.collections({ prefix: namespacePrefix(prefix) })) {
      for await (const { key, value: kept, createdAt, updatedAt } of this.#items(name)) {
        const value = decode(kept.value) as Record<string, unknown>
        if (filter && !fits(value, filter)) continue
        const score = vector && bestScore(vector, readVectors(kept))
        const item: SearchItem = {
          namespace: namespaceOfCollection(name),
          key: unescape(key),
          value,
          createdAt,
          updatedAt,
        }
        found.push({ item: score === undefined ? item : { ...item, score }, score })
      }
    }
    // By score where there is one, then what was written last first; names decide the rest, so that pages are stable.
    found.sort(
      (a, b) =>
        (b.score ?? -2) - (a.score ?? -2) ||
        b.item.updatedAt.getTime() - a.item.updatedAt.getTime() ||
        compareNames(a.item, b.item),
    )
    return found.slice(offset, offset + limit).map(({ item }) => item)
  }

  async #listNamespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth, limit, offset = 0 } = operation
    const names = await this.#scope.collections({ prefix: namespacePrefix(fixedPrefix(matchConditions)) })
    const matching = names.filter((name) => {
      const namespace = namespaceOfCollection(name)
      return matchConditions.every((condition) => isMatch(namespace, condition))
    })
    const holding = await this.#holdingItems(matching)
    const cut = holding.map((name) => namespaceOfCollection(name).slice(0, maxDepth))
    const distinct = new Map(cut.map((namespace) => [JSON.stringify(namespace), namespace]))
    return [...distinct.values()].slice(offset, limit === undefined ? undefined : offset + limit)
  }

  /** Backends may name a collection whose last item just went. */
  async #holdingItems(names: readonly string[]): Promise<string[]> {
    const holding: string[] = []
    for (let from = 0; from < names.length; from += CHECKS_AT_ONCE) {
      const some = names.slice(from, from + CHECKS_AT_ONCE)
      const pages = await Promise.all(some.map((name) => this.#collection(name).list({ limit: 1 })))
      holding.push(...some.filter((_, i) => (pages[i]?.items.length ?? 0) > 0))
    }
    return holding
  }

  async *#items(name: string) {
    const collection = this.#collection(name)
    let cursor: string | undefined
    do {
      const page = await collection.list({ limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
      yield* page.items
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  #collection(name: string): Collection<Kept> {
    return this.#scope.collection<Kept>(name, this.#collectionOptions)
  }
}

function isPut(operation: Operation): operation is Put {
  return 'value' in operation
}

function readVectors({ vectors = [] }: Kept): Float32Array[] {
  return vectors.map((bytes) => new Float32Array(new Uint8Array(bytes as Uint8Array).buffer))
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

function compareNames(a: Item, b: Item): number {
  const [left, right] = [JSON.stringify([a.namespace, a.key]), JSON.stringify([b.namespace, b.key])]
  return left < right ? -1 : left > right ? 1 : 0
}

function toMs(minutes: number): number {
  const ms = Math.round(minutes * MINUTE_MS)
  if (Number.isSafeInteger(ms) && ms >= 1) return ms
  throw new InvalidOptionError('ttl', 'is no number of minutes above 0', 'Leave it out for items that stay.')
}
