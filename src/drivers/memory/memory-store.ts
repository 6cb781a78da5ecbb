import type { Clock } from '../../core/time/clock.js'
import type { BranchId, TenantId, ThreadId } from '../../core/ids.js'
import { systemClock } from '../../core/time/system-clock.js'
import type { Hash, IndexFields, LogKey, StoredEntry, Tombstone } from '../../log/contract.js'
import type { NewItem } from '../../log/store-contract.js'

export interface MemoryLog {
  readonly key: LogKey
  readonly incarnation: string
  /** From the base on: the entry with seq s is at `s - entries[0].seq`. Never empty. */
  readonly entries: StoredEntry[]
  epoch: number
  /** The last owner, also after its lease ended: `renew` may bring it back. */
  owner: string | null
  /** By the store's monotonic clock. */
  leaseEnd: number
  /** Changed by `setIndex` only. */
  index: IndexFields
  /** Until when, by the store's monotonic clock, it is kept for whoever asked for it, as long as it ends there. */
  reserved?: { readonly seq: number; readonly until: number }
  /** The seq up to which `applyWrites` applied what the entries carry. */
  applied: number
}

export interface MemoryThread {
  readonly branches: Map<BranchId, MemoryLog>
  tombstone: Tombstone | undefined
}

export interface MemoryBlob {
  readonly bytes: Uint8Array
  touchedAt: number
}

/** What a space knows of a key: the item, or that there was one. */
export interface MemoryItem {
  /** `null` once removed. */
  item: NewItem | null
  createdAt: number
  expiresAt: number | null
  /** When it was last written or removed, and by which incarnation; `null` for a write that no entry carried. */
  lastAt: number
  lastBy: string | null
  /** The newest seq of each log that wrote it, by incarnation. */
  readonly seqs: Map<string, number>
}

export interface MemorySpace {
  readonly items: Map<string, MemoryItem>
  /** The keys in the order of their bytes; undefined after one came or went, until a scan needs them. */
  sorted: string[] | undefined
}

/** The data behind one or more memory drivers. It lives as long as something refers to it. */
export interface MemoryStore {
  readonly clock: Clock
  readonly threads: Map<TenantId, Map<ThreadId, MemoryThread>>
  readonly blobs: Map<TenantId, Map<Hash, MemoryBlob>>
  readonly items: Map<TenantId, Map<string, MemorySpace>>
  /** What was removed, oldest first, to be forgotten after a day. */
  readonly removed: Set<{
    readonly tenant: TenantId
    readonly space: string
    readonly key: string
    readonly at: number
  }>
  /** Who of this process listens to which topic. */
  readonly topics: Map<string, Set<(message: string | undefined) => void>>
  /** The logs with a wake time, by program. */
  readonly due: Map<string, Set<MemoryLog>>
  /** The newest `touchedAt` given so far. */
  lastTouch: number
}

/** A store to open several times with `openMemory({ store })`, as several processes would open one database. */
export function createMemoryStore(options: { readonly clock?: Clock } = {}): MemoryStore {
  return {
    clock: options.clock ?? systemClock(),
    threads: new Map(),
    blobs: new Map(),
    items: new Map(),
    removed: new Set(),
    topics: new Map(),
    due: new Map(),
    lastTouch: Number.NEGATIVE_INFINITY,
  }
}

export function findThread(store: MemoryStore, tenant: TenantId, thread: ThreadId): MemoryThread | undefined {
  return store.threads.get(tenant)?.get(thread)
}

export function findLog(store: MemoryStore, key: LogKey): MemoryLog | undefined {
  return findThread(store, key.tenant, key.thread)?.branches.get(key.branch)
}

export function ensureThread(store: MemoryStore, tenant: TenantId, thread: ThreadId): MemoryThread {
  let threads = store.threads.get(tenant)
  if (threads === undefined) {
    threads = new Map()
    store.threads.set(tenant, threads)
  }
  let found = threads.get(thread)
  if (found === undefined) {
    found = { branches: new Map(), tombstone: undefined }
    threads.set(thread, found)
  }
  return found
}

/** Forgets a thread of which nothing is left, so that a store that erases as much as it creates does not grow. */
export function dropIfEmpty(store: MemoryStore, tenant: TenantId, thread: ThreadId): void {
  const threads = store.threads.get(tenant)
  const found = threads?.get(thread)
  if (threads === undefined || found === undefined) return
  if (found.branches.size > 0 || found.tombstone !== undefined) return
  threads.delete(thread)
  if (threads.size === 0) store.threads.delete(tenant)
}
