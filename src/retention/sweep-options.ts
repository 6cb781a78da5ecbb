import type { TenantId } from '../core/ids.js'
import type { Head, LogKey, MetadataValue } from '../log/contract.js'
import type { BeforeRemoval } from '../log/log.js'

/** What a sweep removed from one thread. */
export interface SweptThread {
  readonly tenant: TenantId
  readonly thread: Head['log']['thread']
  /** Present if only a branch was trimmed. */
  readonly branch?: Head['log']['branch']
  readonly why: 'expired' | 'capped'
  readonly branches: number
  readonly entries: number
  /** Stored bytes of these entries, without the blobs that they point to. */
  readonly bytes: number
}

/** Where what is removed is archived, as the sweeper sees it. */
export interface SweptArchive {
  /** Archives whole branches. The returned function undoes that, if they stay after all. */
  writeThread(heads: readonly Head[]): Promise<() => Promise<void>>
  /** Archives what trimming this branch is about to remove. */
  writePast(log: LogKey): BeforeRemoval
  /** Removes a tenant's files that are older than this, some at a time, and says how many. */
  removeOlder(tenant: TenantId, before: number): AsyncIterable<number>
}

export interface SweepOptions {
  /** Required if the policy says that what is removed is archived, or for how long. */
  readonly archive?: SweptArchive | undefined
  /** Only of this tenant; absent: of all. */
  readonly tenant?: TenantId | undefined
  /** Only threads with these labels. */
  readonly metadata?: Readonly<Record<string, MetadataValue>>
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean
  /** How long a large value is spared after it was last written or pointed to, in milliseconds. Default 1 hour. */
  readonly graceMs?: number
  /** Trims only branches that changed since then; 'never': trims none. Default: trims all that have too much. */
  readonly changedSince?: number | 'never'
  /** False: leaves large values to a later sweep. */
  readonly collect?: boolean
  readonly signal?: AbortSignal | undefined
  readonly onSwept?: ((swept: SweptThread) => void) | undefined
}
