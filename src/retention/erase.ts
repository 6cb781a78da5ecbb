import { isHoldfastError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import type { HeadQuery, LogKey, Scrubbed } from '../log/contract.js'
import type { LogStore } from '../log/log-store.js'
import { allHeads } from '../log/read/heads.js'
import type { Store } from '../store/store.js'
import { CollectNotes } from './collect-notes.js'
import { measureEntries } from './measure.js'

/** How a thread is removed. */
export interface EraseOptions {
  /** Kept in the tombstone. Default 'erased'. */
  readonly reason?: string
  /** False: nothing remains that shows the thread ever existed, not even its id. Default true. */
  readonly tombstone?: boolean
}

/** What was erased of a tenant. */
export interface ErasedTenant {
  readonly threads: number
  readonly items: number
  readonly blobs: { readonly removed: number; readonly bytes: number }
}

/** What scrubbing removed, and whether any of it can still be found in the backend's own files. */
export interface ScrubReport extends Scrubbed {
  readonly blobs: { readonly removed: number; readonly bytes: number }
  readonly items: number
}

const PAGE = 100
const ITEMS = 1000
/** Whoever writes a large value points to it within this time. */
const SCRUB_GRACE_MS = 60_000

export async function eraseThread(
  logs: LogStore,
  tenant: TenantId,
  thread: LogKey['thread'],
  { reason = 'erased', tombstone = true }: EraseOptions,
): Promise<{ readonly erased: number }> {
  if (await hasBlobs(logs, tenant, thread)) await new CollectNotes(logs).add(tenant)
  const left = tombstone ? { at: logs.clock.now(), reason } : null
  const result = await logs.erase({ tenant, thread, tombstone: left })
  return result === 'conflict' ? { erased: 0 } : result
}

// A thread that can't be read may point to anything.
async function hasBlobs(logs: LogStore, tenant: TenantId, thread: LogKey['thread']): Promise<boolean> {
  try {
    const { heads } = await logs.list({ tenant, thread, limit: 1000 })
    for (const head of heads) if ((await measureEntries(logs, head)).hasBlobs) return true
    return false
  } catch (error) {
    if (!isHoldfastError(error, 'corrupt')) throw error
    return true
  }
}

export async function eraseTenant(
  logs: LogStore,
  tenant: TenantId,
  store: Store,
  options: EraseOptions,
): Promise<ErasedTenant> {
  const gone = new Set<string>()
  // From the start again after each page, because what was listed is then gone; until nothing new is found.
  for (let found = true; found; ) {
    found = false
    const query: HeadQuery = { tenant, order: 'created', direction: 'asc', limit: PAGE }
    for await (const { log } of allHeads((page) => logs.list(page), query)) {
      const { erased } = await eraseThread(logs, tenant, log.thread, options)
      if (erased === 0) continue
      gone.add(log.thread)
      found = true
    }
  }
  const { items } = await store.erase()
  const { removed, bytes } = await logs.collectBlobs(tenant, { graceMs: SCRUB_GRACE_MS })
  return { threads: gone.size, items, blobs: { removed, bytes } }
}

export async function scrubStore(
  logs: LogStore,
  tenant: TenantId,
  { graceMs = SCRUB_GRACE_MS }: { readonly graceMs?: number },
): Promise<ScrubReport> {
  const { removed, bytes } = await logs.collectBlobs(tenant, { graceMs })
  let items = 0
  for (let swept = ITEMS; swept === ITEMS; items += swept) swept = await logs.items.sweep(ITEMS)
  const { complete, note } = await logs.scrub()
  return { complete, note, blobs: { removed, bytes }, items }
}
