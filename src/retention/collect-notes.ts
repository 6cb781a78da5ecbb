import { DEFAULT_TENANT, type TenantId } from '../core/ids.js'
import type { LogStore } from '../log/log-store.js'
import type { Collection } from '../store/collection.js'
import { Store } from '../store/store.js'
import { METRICS_SCOPE } from '../telemetry/process-metrics.js'

/** Where notes lie when there are keys: sealed as everything else, and no tenant of the user's gets a key by it. */
const NOTES_TENANT = 'holdfast.metrics' as TenantId
const NOTES = 'blobs-to-collect'
const PAGE = 100

/** A tenant of whose entries some were removed that pointed to blobs. */
export interface CollectNote {
  readonly tenant: TenantId
  readonly at: number
  readonly version: string
}

/**
 * Which tenants may have blobs that nothing points to any more. Written before entries are removed and taken back after the
 * blobs are: whoever is killed in between leaves the note to the next sweep, also where the tenant has no thread left that
 * would lead there.
 */
export class CollectNotes {
  readonly #notes: Collection<{ readonly at: number }>
  readonly #now: () => number
  /** What this process noted last: not written again for every thread of a tenant. */
  readonly #noted = new Map<TenantId, number>()

  constructor(logs: LogStore) {
    const tenant = logs.hasKeys ? NOTES_TENANT : DEFAULT_TENANT
    this.#notes = new Store(logs.items, tenant).scope(METRICS_SCOPE).collection(NOTES)
    this.#now = () => logs.clock.now()
  }

  async add(tenant: TenantId): Promise<void> {
    const at = this.#now()
    // A minute earlier only means that what is removed within it is collected a minute later than it could be.
    if ((this.#noted.get(tenant) ?? Number.NEGATIVE_INFINITY) > at - 60_000) return
    await this.#notes.put(tenant, { at })
    this.#noted.set(tenant, at)
  }

  /** Those that were written before, a page of them. */
  async due(before: number, only?: TenantId): Promise<readonly CollectNote[]> {
    const items =
      only === undefined
        ? (await this.#notes.list({ limit: PAGE })).items
        : [...(await this.#notes.getMany([only])).values()]
    return items
      .filter(({ value }) => value.at <= before)
      .map(({ key, value, version }) => ({ tenant: key as TenantId, at: value.at, version }))
  }

  /** Taken back, unless another noted it again meanwhile. */
  async done({ tenant, version }: CollectNote): Promise<void> {
    this.#noted.delete(tenant)
    await this.#notes.batch([{ delete: tenant, expect: version }])
  }
}
