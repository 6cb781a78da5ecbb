import type { TenantId } from '../core/ids.js'
import type { LogStore } from '../log/log-store.js'
import type { Collection } from '../store/collection.js'
import { Store } from '../store/store.js'
import { METRICS_SCOPE } from '../telemetry/process-metrics.js'

const NOTES = 'blobs-to-collect'
const KEY = 'since'

/** A tenant whose removed entries pointed to blobs. */
export interface CollectNote {
  readonly tenant: TenantId
  readonly version: string
}

/**
 * Which tenants may have blobs that nothing points to anymore. Written before entries are removed and taken back after
 * the blobs are: a process that is killed in between leaves the note to the next sweep.
 */
export class CollectNotes {
  readonly #logs: LogStore
  /** What this process noted last: not written again for every thread of a tenant. */
  readonly #noted = new Map<TenantId, number>()

  constructor(logs: LogStore) {
    this.#logs = logs
  }

  async add(tenant: TenantId): Promise<void> {
    const at = this.#logs.clock.now()
    // A minute earlier only means that what is removed within it is collected a minute later than it could be.
    if ((this.#noted.get(tenant) ?? Number.NEGATIVE_INFINITY) > at - 60_000) return
    await this.#notesOf(tenant).put(KEY, { at })
    this.#noted.set(tenant, at)
  }

  /** The note of a tenant, if there is one that was written before. */
  async due(tenant: TenantId, before: number): Promise<CollectNote | undefined> {
    const note = await this.#notesOf(tenant).get(KEY)
    return note === undefined || note.value.at > before ? undefined : { tenant, version: note.version }
  }

  /** Taken back, unless another noted it again in the meantime. */
  async done({ tenant, version }: CollectNote): Promise<void> {
    this.#noted.delete(tenant)
    await this.#notesOf(tenant).batch([{ delete: KEY, expect: version }])
  }

  #notesOf(tenant: TenantId): Collection<{ readonly at: number }> {
    return new Store(this.#logs.items, tenant).scope(METRICS_SCOPE).collection(NOTES)
  }
}
