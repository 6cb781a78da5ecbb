import type { TenantId, ThreadId } from '../core/ids.js'
import type { Tombstone } from './contract.js'

/** What an erased thread left behind, with its name. */
export interface NamedTombstone extends Tombstone {
  readonly tenant: TenantId
  readonly thread: ThreadId
}

/** Some tombstones of a store. */
export interface TombstonePage {
  readonly tombstones: readonly NamedTombstone[]
  /** Present exactly when more may follow; a page may be empty and still lead on. */
  readonly cursor?: string
}

/**
 * What moving a whole store needs besides its logs, blobs and items: which tenants have something in it, and what
 * erased threads left behind. Part of every built-in driver. For maintenance: each may walk through everything stored.
 */
export interface CopyDriver {
  /** Every tenant with a log, a tombstone, a blob or an item, each once, in any order. */
  listTenants(): Promise<readonly TenantId[]>

  /** Tombstones of all tenants, in any order. One that exists throughout is on at least one of the pages. */
  listTombstones(options: { readonly cursor?: string }): Promise<TombstonePage>

  /**
   * Leaves a tombstone for a thread that has no log, replacing an older one, and returns true; if the thread has a log,
   * writes nothing and returns false.
   */
  bury(tenant: TenantId, thread: ThreadId, tombstone: Tombstone): Promise<boolean>
}
