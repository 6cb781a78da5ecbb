import { vectorBytes } from '../codec/item.js'
import { DEFAULT_LIMITS } from '../codec/limits.js'
import { type Encoded, encodeValue, type Value } from '../codec/value.js'
import { describeGiven } from '../core/choices.js'
import { ConflictError, InvalidOptionError, InvalidValueError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import { checkOptionNames, type OptionNames } from '../core/option-names.js'
import type { ItemChange, ItemStore, OpenItem } from '../log/items/item-store.js'
import { checkExpect, checkTtl, type ParsedOptions } from './collection-options.js'
import type { Order } from './cursor.js'
import { embedValues } from './embedding.js'
import { parseField } from './field.js'
import { parseFilter } from './filter.js'
import type {
  BatchOperation,
  BatchResult,
  DeleteOptions,
  Item,
  ItemPage,
  ListQuery,
  PutOptions,
  SearchQuery,
  StoreWriter,
  Written,
} from './item.js'
import { type Found, type FoundPage, type SearchPlan, searchNearest, searchOrdered } from './search.js'
import { PageBudget } from './page-budget.js'
import { checkKey } from './space.js'
import { validate } from './standard-schema.js'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 10_000
const MAX_BATCH = 1000

// A version to expect that is misspelled would overwrite what somebody else wrote, a misspelled filter find everything.
const PUT_OPTIONS: OptionNames<PutOptions> = { ttlMs: true, expect: true }
const DELETE_OPTIONS: OptionNames<DeleteOptions> = { expect: true }
const BATCH_PUT = { put: true, value: true, ...PUT_OPTIONS }
const BATCH_DELETE = { delete: true, ...DELETE_OPTIONS }
const LIST_QUERY: OptionNames<ListQuery> = { prefix: true, limit: true, cursor: true }
const SEARCH_QUERY: OptionNames<SearchQuery> = {
  ...LIST_QUERY,
  filter: true,
  orderBy: true,
  direction: true,
  query: true,
  minScore: true,
}

/** Items of one kind in one scope, each under a key. */
export class Collection<Output = Value, Input = Output> {
  readonly #items: ItemStore
  readonly #tenant: TenantId
  readonly #space: string
  readonly #options: ParsedOptions

  constructor(items: ItemStore, tenant: TenantId, space: string, options: ParsedOptions) {
    this.#items = items
    this.#tenant = tenant
    this.#space = space
    this.#options = options
  }

  /**
   * Writes an item, replacing any that exists unless `expect` says otherwise. Rejects with ConflictError if `expect`
   * does not match.
   */
  async put(key: string, value: Input, options: PutOptions = {}): Promise<Written> {
    checkOptionNames('put()', options, PUT_OPTIONS)
    const [result] = await this.batch([{ put: key, value, ...options }])
    if (result?.status === 'written') return result.written as Written
    throw conflict(key, options.expect, result?.version ?? null)
  }

  /** Removes an item. It is no error if there is none, unless `expect` names a version. */
  async delete(key: string, options: DeleteOptions = {}): Promise<void> {
    checkOptionNames('delete()', options, DELETE_OPTIONS)
    const [result] = await this.batch([{ delete: key, ...options }])
    if (result?.status === 'conflict') throw conflict(key, options.expect, result.version)
  }

  /**
   * Many writes in few round trips. All are validated before any is made; then each succeeds or conflicts on its own,
   * and the results say which, in the same order.
   */
  async batch(operations: readonly BatchOperation<Input>[]): Promise<readonly BatchResult[]> {
    const changes = await this.#prepare(operations)
    const results: BatchResult[] = []
    for (let from = 0; from < changes.length; from += MAX_BATCH) {
      const part = changes.slice(from, from + MAX_BATCH)
      for (const [i, result] of (await this.#items.write(this.#tenant, part)).entries()) {
        if (result.status === 'conflict') {
          results.push(result)
          continue
        }
        const { key, item } = part[i] as ItemChange
        const expiresAt = item?.expiresAt ?? null
        const written = item && {
          key,
          version: result.version as string,
          updatedAt: new Date(result.at),
          expiresAt: expiresAt === null ? null : new Date(expiresAt),
        }
        results.push({ status: 'written', written })
      }
    }
    return results
  }

  async get(key: string): Promise<Item<Output> | undefined> {
    return (await this.getMany([key])).get(key)
  }

  /** The items that exist, by key. */
  async getMany(keys: readonly string[]): Promise<ReadonlyMap<string, Item<Output>>> {
    const checked = [...new Set(keys.map(checkKey))]
    const { ttlMs, refreshOnRead } = this.#options
    await this.#items.clock.catchUp()
    const refresh = refreshOnRead && ttlMs !== null ? { extendTo: this.#items.clock.now() + ttlMs } : {}
    const found = new Map<string, Item<Output>>()
    const budget = new PageBudget(this.#items)
    for (const item of await this.#items.read(this.#tenant, this.#space, checked, refresh)) {
      budget.take(item)
      found.set(item.key, toItem<Output>({ item, value: await item.read() }))
    }
    return found
  }

  /** One page in key order, by code points. */
  async list(query: ListQuery = {}): Promise<ItemPage<Output>> {
    checkOptionNames('list()', query, LIST_QUERY)
    return this.search(query)
  }

  /** One page of the items that match a filter, in an order; or, with `query`, those nearest to it in meaning. */
  async search(query: SearchQuery = {}): Promise<ItemPage<Output>> {
    checkOptionNames('search()', query, SEARCH_QUERY)
    const plan = this.#plan(query)
    const page =
      query.query === undefined ? await this.#searchOrdered(plan, query) : await this.#searchNearest(plan, query)
    const items = page.found.map((found) => toItem<Output>(found))
    return { items, ...(page.cursor === undefined ? {} : { cursor: page.cursor }) }
  }

  /**
   * Writes for `Draft.store`: they are part of the entry of a step and happen if and only if that entry lands. They
   * take no `expect`, because whether the entry lands is what is decided.
   */
  get write(): StoreWriter<Input> {
    return {
      put: async (key, value, { ttlMs } = {}) => {
        const [change] = await this.#prepare([{ put: key, value, ...(ttlMs === undefined ? {} : { ttlMs }) }])
        const { content, expiresAt, vector } = (change as ItemChange).item as NonNullable<ItemChange['item']>
        const { index, refreshOnRead } = this.#options
        const extras = {
          ...(index.length > 0 ? { index } : {}),
          ...(vector ? { vector: new Uint8Array(vectorBytes(vector)) } : {}),
          ...(refreshOnRead && expiresAt !== null ? { renewable: true } : {}),
        }
        const write = ['put', this.#space, key, content.value, expiresAt] as const
        return Object.keys(extras).length === 0 ? write : [...write, extras]
      },
      delete: (key) => ['delete', this.#space, checkKey(key)],
    }
  }

  async #prepare(operations: readonly BatchOperation<Input>[]): Promise<readonly ItemChange[]> {
    const { embed, index, refreshOnRead } = this.#options
    const seen = new Set<string>()
    const puts: { readonly at: number; readonly content: Encoded; readonly ttl: number | null }[] = []
    const changes: ItemChange[] = []
    for (const operation of operations) {
      const isPut = isObject(operation) && 'put' in operation
      if (!isPut && !(isObject(operation) && 'delete' in operation)) {
        throw new InvalidValueError(
          'batch',
          'holds something that is neither a put nor a delete',
          'Use { put, value } and { delete }.',
        )
      }
      checkOptionNames('a write of a batch', operation, isPut ? BATCH_PUT : BATCH_DELETE)
      const key = checkKey(isPut ? operation.put : operation.delete)
      if (seen.has(key))
        throw new InvalidValueError(
          `key ${JSON.stringify(key)}`,
          'is written twice in one batch',
          'Write each key once.',
        )
      seen.add(key)
      const expect = checkExpect(operation.expect)
      if (isPut) {
        const content = await this.#encode(operation.value)
        puts.push({ at: changes.length, content, ttl: this.#ttl(operation.ttlMs) })
      }
      changes.push({ space: this.#space, key, item: null, expect })
    }
    const vectors = embed
      ? await embedValues(
          embed,
          puts.map(({ content }) => content.value),
        )
      : []
    // Only now: computing vectors may take a while, and an item's life starts when it is written.
    await this.#items.clock.catchUp()
    const now = this.#items.clock.now()
    for (const [i, { at, content, ttl }] of puts.entries()) {
      const expiresAt = ttl === null ? null : now + ttl
      changes[at] = {
        ...(changes[at] as ItemChange),
        item: { content, expiresAt, renewable: refreshOnRead, index, vector: vectors[i] },
      }
    }
    return changes
  }

  async #encode(value: unknown): Promise<Encoded> {
    const { schema, maxBytes } = this.#options
    const checked = schema ? await validate(schema, value) : value
    const encoded = encodeValue(checked, { ...DEFAULT_LIMITS, maxBytes })
    const kept = this.#items.redactor?.value(encoded.value) ?? encoded.value
    return kept === encoded.value ? encoded : encodeValue(kept, { ...DEFAULT_LIMITS, maxBytes })
  }

  #ttl(ttlMs: number | null | undefined): number | null {
    if (ttlMs === undefined) return this.#options.ttlMs
    return ttlMs === null ? null : checkTtl(ttlMs)
  }

  #plan({ prefix, filter, limit = DEFAULT_LIMIT }: SearchQuery): SearchPlan {
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw new InvalidOptionError(
        'limit',
        `must be a whole number from 1 to ${MAX_LIMIT}, not ${describeGiven(limit)}`,
        'Ask for pages and follow the cursor.',
      )
    }
    return {
      tenant: this.#tenant,
      space: this.#space,
      prefix: prefix === undefined || prefix === '' ? undefined : checkKey(prefix),
      conditions: parseFilter(filter),
      index: this.#options.index,
      limit,
    }
  }

  #searchOrdered(plan: SearchPlan, { orderBy, direction = 'asc', cursor }: SearchQuery): Promise<FoundPage> {
    if (direction !== 'asc' && direction !== 'desc') {
      throw new InvalidOptionError(
        'direction',
        `must be 'asc' or 'desc', not ${describeGiven(direction)}`,
        'Leave it out for asc.',
      )
    }
    const order: Order = {
      field: orderBy === undefined ? undefined : parseField('orderBy', orderBy),
      descending: direction === 'desc',
    }
    return searchOrdered(this.#items, plan, order, cursor)
  }

  async #searchNearest(
    plan: SearchPlan,
    { query, minScore = -1, orderBy, direction, cursor }: SearchQuery,
  ): Promise<FoundPage> {
    const { embed } = this.#options
    if (embed === undefined)
      throw new InvalidOptionError('query', 'needs embed', 'Give the collection an embed function.')
    if (typeof query !== 'string' || query === '')
      throw new InvalidOptionError(
        'query',
        `must be a non-empty string, not ${describeGiven(query)}`,
        'Pass what to look for.',
      )
    if (orderBy !== undefined || direction !== undefined || cursor !== undefined) {
      throw new InvalidOptionError(
        'query',
        'has an order of its own, in one page',
        'Leave out orderBy, direction and cursor.',
      )
    }
    if (typeof minScore !== 'number' || Number.isNaN(minScore)) {
      throw new InvalidOptionError(
        'minScore',
        `must be a number from -1 to 1, not ${describeGiven(minScore)}`,
        'Pass for example 0.7.',
      )
    }
    const [vector] = await embed.embed([query])
    return searchNearest(this.#items, plan, vector as Float32Array, minScore)
  }
}

function toItem<Output>({ item, value, score }: Omit<Found, 'item'> & { readonly item: OpenItem }): Item<Output> {
  const { key, version, createdAt, updatedAt, expiresAt } = item
  return {
    key,
    value: value as Output,
    version,
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
    expiresAt: expiresAt === null ? null : new Date(expiresAt),
    ...(score === undefined ? {} : { score }),
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function conflict(key: string, expected: string | null | undefined, version: string | null): ConflictError {
  const found = version === null ? 'there is none' : `it is at version ${version}`
  const wanted = expected === null ? 'should not exist' : `should be at version ${expected}`
  const message = `The item ${JSON.stringify(key)} ${wanted}, but ${found}.`
  return new ConflictError(message, { key, expected, version }, 'Read the item again and decide on what it holds now.')
}
