import { pathName, writeParts } from './path-id.js'
import { ThreadClient } from './thread-client.js'
import { type ClientOptions, Transport } from './transport.js'
import type {
  AnswerInfo,
  ItemInfo,
  Json,
  ProgramInfo,
  RetentionInfo,
  SeriesInfo,
  ThreadId,
  ThreadInfo,
  ThreadPauseInfo,
  WorkersInfo,
} from './types.js'

/** Which threads to list. */
export interface ThreadFilters {
  /** As paths hold it. */
  readonly thread?: string
  readonly branch?: string
  readonly status?: readonly string[]
  readonly tag?: readonly string[]
  /** `name=value`. */
  readonly metadata?: readonly string[]
  readonly updatedBefore?: string
  readonly updatedAfter?: string
  readonly order?: 'created' | 'updated'
  readonly direction?: 'asc' | 'desc'
  readonly limit?: number
  readonly cursor?: string
}

interface PauseFilters {
  readonly thread?: string
  readonly deferred?: boolean
  readonly limit?: number
  readonly cursor?: string
}

interface PausePage {
  readonly pauses: readonly ThreadPauseInfo[]
  readonly unreadable: readonly { readonly thread: ThreadId; readonly branch: string }[]
  readonly cursor?: string
}

/** A server's native API. Needs only `fetch`, so it runs in browsers. */
export class HoldfastClient {
  readonly #transport: Transport

  constructor(options: ClientOptions = {}) {
    this.#transport = new Transport(options)
  }

  thread(id: ThreadId, options: { readonly branch?: string } = {}): ThreadClient {
    return new ThreadClient(this.#transport, id, options.branch ?? 'main')
  }

  async programs(): Promise<readonly ProgramInfo[]> {
    return (await this.#transport.json<{ programs: readonly ProgramInfo[] }>('/v1/programs')).programs
  }

  /** Whom the token represents. */
  me(): Promise<{
    readonly tenant: string
    readonly subject: string
    readonly roles: readonly string[]
    readonly tenants?: readonly string[] | '*'
  }> {
    return this.#transport.json('/v1/me')
  }

  /** The tenants that the token may act for, with the header `x-holdfast-tenant`. */
  async tenants(): Promise<readonly string[]> {
    return (await this.#transport.json<{ tenants: readonly string[] }>('/v1/tenants')).tenants
  }

  threads(filters: ThreadFilters = {}): Promise<{ readonly threads: readonly ThreadInfo[]; readonly cursor?: string }> {
    return this.#transport.json('/v1/threads', { query: { ...filters } })
  }

  /** Open questions across all threads. */
  pauses(filters: PauseFilters = {}): Promise<PausePage> {
    return this.#transport.json('/v1/pauses', { query: { ...filters } })
  }

  /** Effects whose outcome is unknown. */
  unknownEffects(filters: PauseFilters = {}): Promise<PausePage> {
    return this.#transport.json('/v1/effects', { query: { ...filters } })
  }

  /** What people answered, by thread; the most recently changed come first. */
  answers(
    filters: {
      readonly thread?: string
      readonly branch?: string
      readonly limit?: number
      readonly cursor?: string
    } = {},
  ): Promise<{ readonly answers: readonly AnswerInfo[]; readonly cursor?: string }> {
    return this.#transport.json('/v1/answers', { query: { ...filters } })
  }

  /** Which worker holds which threads, and which threads are waiting for a worker. */
  workers(): Promise<WorkersInfo> {
    return this.#transport.json('/v1/workers')
  }

  /** What a sweep would remove now. Nothing is removed. */
  retention(): Promise<RetentionInfo> {
    return this.#transport.json('/v1/retention')
  }

  /** What all processes of the store have counted, in total and over time. */
  metrics(): Promise<{ readonly processes: readonly Json[]; readonly total: Json; readonly series: SeriesInfo }> {
    return this.#transport.json('/v1/metrics')
  }

  /** Scopes and their collections. */
  collections(options: { readonly limit?: number; readonly cursor?: string } = {}): Promise<{
    readonly collections: readonly { readonly scope: Readonly<Record<string, string>>; readonly collection: string }[]
    readonly cursor?: string
  }> {
    return this.#transport.json('/v1/store', { query: { ...options } })
  }

  /** A collection of the store. */
  collection(scope: Readonly<Record<string, string>>, name: string): CollectionClient {
    return new CollectionClient(this.#transport, scope, name)
  }
}

interface ItemPage {
  readonly items: readonly ItemInfo[]
  readonly cursor?: string
}

/** Items of one collection. */
export class CollectionClient {
  readonly #transport: Transport
  readonly #path: string

  constructor(transport: Transport, scope: Readonly<Record<string, string>>, name: string) {
    this.#transport = transport
    this.#path = `/v1/store/${pathName(writeParts(scope))}/${pathName(name)}`
  }

  list(query: { readonly prefix?: string; readonly limit?: number; readonly cursor?: string } = {}): Promise<ItemPage> {
    return this.#transport.json(this.#path, { query })
  }

  search(query: object = {}): Promise<ItemPage> {
    return this.#transport.json(`${this.#path}/search`, { body: query })
  }

  get(key: string): Promise<ItemInfo> {
    return this.#transport.json(`${this.#path}/items/${pathName(key)}`)
  }

  put(
    key: string,
    value: unknown,
    options: { readonly ttlMs?: number | null; readonly expect?: string | null } = {},
  ): Promise<{ readonly key: string; readonly version: string }> {
    return this.#transport.json(`${this.#path}/items/${pathName(key)}`, { method: 'PUT', body: { value, ...options } })
  }

  async delete(key: string, options: { readonly expect?: string } = {}): Promise<void> {
    await this.#transport.json(`${this.#path}/items/${pathName(key)}`, { method: 'DELETE', query: { ...options } })
  }
}
