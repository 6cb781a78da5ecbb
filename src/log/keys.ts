import type { DataKey } from '../codec/data-key.js'
import type { TenantId } from '../core/ids.js'

/** Where the log finds the keys of a tenant. Without one, entries are chained by SHA-256 alone. */
export interface KeySource {
  /** True when bodies and blobs are encrypted and not only authenticated. */
  readonly encrypt: boolean
  /** The key to write with. */
  current(tenant: TenantId): Promise<DataKey>
  /** A key to read with; throws MissingKeyError if it can't be had. */
  find(tenant: TenantId, id: string): Promise<DataKey>
  /** Entries written at or before this time may be without a key; `null`: none may. */
  plainUntil(tenant: TenantId): Promise<number | null>
}
