import { vectorBytes } from '../codec/item.js'
import { DEFAULT_LIMITS } from '../codec/limits.js'
import { type Encoded, encodeValue, type Value } from '../codec/value.js'
import { ConflictError, InvalidValueError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import type { ItemChange, ItemStore, OpenItem } from '../log/items/item-store.js'
import { checkExpect, checkTtl, type ParsedOptions } from './collection-options.js'
import { embedValues } from './search/embedding.js'
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
import { PageBudget } from './search/page-budget.js'
import type { Found } from './search/search.js'
import { LIST_QUERY, SEARCH_QUERY, searchItems } from './search/search-query.js'
import { checkKey } from './space.js'
import { validate } from './standard-schema.js'

const MAX_BATCH = 1000

// A version to expect that is misspelled would overwrite what somebody else wrote.
const PUT_OPTIONS: OptionNames<PutOptions> = { ttlMs: true, expect: true }
const DELETE_OPTIONS: OptionNames<DeleteOptions> = { expect: true }
const BATCH_PUT = { put: true, value: true, ...PUT_OPTIONS }
const BATCH_DELETE = { delete: true, ...DELETE_OPTIONS }

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
    const page = await searchItems(this.#items, { tenant: this.#tenant, space: this.#space }, this.#options, query)
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
