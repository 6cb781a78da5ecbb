import type { Value } from '../codec/value.js'
import { InvalidOptionError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import { checkOptionNames } from '../core/wording/option-names.js'
import { compareUtf8 } from '../core/text-order.js'
import { METRICS_SCOPE } from '../telemetry/process-metrics.js'
import type { ItemStore } from '../log/items/item-store.js'
import { Collection } from './collection.js'
import { type CollectionOptions, parseOptions } from './collection-options.js'
import { decodeSpace, encodeScope, encodeSpace, type ScopeInput } from './space.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from './standard-schema.js'

const PAGE = 500
const SWEEP = 1000

/** A collection that holds items, for tools that look around. */
export interface SpaceName {
  readonly scope: ScopeInput
  readonly collection: string
}

/** Memory that outlives threads, for one tenant. Everything in it belongs to a scope. */
export class Store {
  readonly #items: ItemStore
  readonly #tenant: TenantId

  constructor(items: ItemStore, tenant: TenantId) {
    this.#items = items
    this.#tenant = tenant
  }

  /** Selects whose memory it is, by named parts: `{ user: 'user-42' }`. */
  scope(scope: ScopeInput): Scope {
    return new Scope(this.#items, this.#tenant, encodeScope(scope))
  }

  /**
   * One page of this tenant's collections that hold items. May list one that has just become empty. Leaves out where
   * processes report their metrics: that is nobody's memory, and exists without anybody having put it there.
   */
  async collections(
    options: { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<{ readonly collections: readonly SpaceName[]; readonly cursor?: string }> {
    const { limit = 100, cursor } = options
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > 10_000) {
      throw new InvalidOptionError('limit', 'must be 1 to 10,000', 'Ask for pages and follow the cursor.')
    }
    const after = cursor === undefined ? {} : { after: readCursor(cursor) }
    const spaces = await this.#items.spaces(this.#tenant, { limit, ...after })
    const last = spaces.at(-1)
    const next = spaces.length < limit || last === undefined ? {} : { cursor: Buffer.from(last).toString('base64url') }
    const own = encodeScope(METRICS_SCOPE)
    return { collections: spaces.filter((space) => !space.startsWith(own)).map(decodeSpace), ...next }
  }

  /** Removes every item of this tenant. What is written in the meantime may stay. */
  async erase(): Promise<{ readonly items: number }> {
    let items = 0
    const own = encodeScope(METRICS_SCOPE)
    for (let after = ''; ; ) {
      const page = await this.#items.spaces(this.#tenant, { limit: PAGE, ...(after === '' ? {} : { after }) })
      for (const space of page) if (!space.startsWith(own)) items += await this.#items.clear(this.#tenant, space)
      if (page.length < PAGE) return { items }
      after = page.at(-1) ?? ''
    }
  }

  /** Removes expired items from the whole backend, to free their space. Expired items are absent with or without it. */
  async sweep(): Promise<void> {
    while ((await this.#items.sweep(SWEEP)) > 0);
  }
}

/** The memory of one user, team or whatever the scope names. */
export class Scope {
  readonly #items: ItemStore
  readonly #tenant: TenantId
  readonly #scope: string

  constructor(items: ItemStore, tenant: TenantId, scope: string) {
    this.#items = items
    this.#tenant = tenant
    this.#scope = scope
  }

  /** Items of one kind. With a schema, values are checked when written and typed by it. */
  collection<Schema extends StandardSchema>(
    name: string,
    options: CollectionOptions & { readonly schema: Schema },
  ): Collection<SchemaOutput<Schema>, SchemaInput<Schema>>
  collection<Item = Value>(name: string, options?: Omit<CollectionOptions, 'schema'>): Collection<Item>
  collection(name: string, options: CollectionOptions = {}): Collection<unknown> {
    const parsed = parseOptions(options, this.#items.maxBytes)
    return new Collection(this.#items, this.#tenant, encodeSpace(this.#scope, name), parsed)
  }

  /** Removes every item of this scope, in all its collections. What is written in the meantime may stay. */
  async erase(): Promise<{ readonly items: number }> {
    let items = 0
    for (const name of await this.collections()) {
      items += await this.#items.clear(this.#tenant, encodeSpace(this.#scope, name))
    }
    return { items }
  }

  /**
   * The names of this scope's collections that hold items, in order; with `prefix`, those that begin with it, found
   * without reading the others. May list one that has just become empty.
   */
  async collections(options: { readonly prefix?: string } = {}): Promise<readonly string[]> {
    checkOptionNames('collections()', options, { prefix: true })
    const { prefix = '' } = options
    if (prefix !== '') encodeSpace(this.#scope, prefix)
    const start = this.#scope + prefix
    const names: string[] = []
    // The names of one scope are adjacent, right after the scope itself. A page begins above `after`, so to find a
    // collection that is named exactly like the prefix it begins one character earlier.
    for (let after = this.#scope + [...prefix].slice(0, -1).join(''); ; ) {
      const page = await this.#items.spaces(this.#tenant, { after, limit: PAGE })
      const own = page.filter((space) => space.startsWith(start))
      names.push(...own.map((space) => decodeSpace(space).collection))
      const last = page.at(-1)
      if (page.length < PAGE || last === undefined) return names
      if (!last.startsWith(start) && compareUtf8(last, start) > 0) return names
      after = last
    }
  }
}

function readCursor(cursor: unknown): string {
  const text =
    typeof cursor === 'string' && /^[A-Za-z0-9_-]+$/.test(cursor) ? Buffer.from(cursor, 'base64url').toString() : ''
  if (text.startsWith('{') && !text.includes('\0')) return text
  throw new InvalidOptionError(
    'cursor',
    'is not one that a page returned',
    'Pass the cursor of the page before, unchanged.',
  )
}
