import type { DataKey } from '../../codec/secret/data-key.js'
import { InvalidIdError } from '../../core/errors.js'
import type { TenantId, ThreadId } from '../../core/ids.js'

/** Where the log finds the keys of a tenant. Without one, entries are chained by SHA-256 alone. */
export interface KeySource {
  /** True when bodies and blobs are encrypted and not only authenticated. */
  readonly encrypt: boolean
  /** The key to write with. */
  current(tenant: TenantId): Promise<DataKey>
  /** A key to read with; throws if it can't be had. */
  find(tenant: TenantId, id: string): Promise<DataKey>
  /**
   * The key that fields of the store's items are named and found by: it never changes. Undefined before the first key.
   */
  index(tenant: TenantId): Promise<DataKey | undefined>
  /** How many data keys the tenant had before this one; undefined where keys have no such order. */
  generation(tenant: TenantId, id: string): number | undefined
  /** Entries written at or before this time may be without a key; `null`: none may. */
  plainUntil(tenant: TenantId): Promise<number | null>
}

/** Where a tenant's data keys are kept. No user input parses to it: structured ids have at least one part. */
export const KEY_THREAD = '{}keys' as ThreadId

/** Logs of our own that users neither see nor name. */
export function isReservedThread(thread: ThreadId): boolean {
  return thread.startsWith('{}')
}

export function refuseReservedThread(thread: ThreadId): void {
  if (!isReservedThread(thread)) return
  throw new InvalidIdError(
    'thread id',
    `"${thread}" is reserved`,
    'Make thread ids with parseThreadId; it never yields this one.',
  )
}
