import { isPassed } from '../shared/redo-rule.js'
import type { TenantId } from '../../core/ids.js'
import type { CarriedWrite, ItemWrite, ItemWriteResult, NewItem } from '../../log/store-contract.js'
import type { MemoryItem, MemorySpace, MemoryStore } from './memory-store.js'

/** How long a removed item is remembered, so that a late redo does not bring it back. */
const REMEMBER_MS = 24 * 60 * 60 * 1000
/** How many logs an item remembers. */
const MAX_LOGS = 16

interface Writer {
  /** The incarnation of the log whose entry carried the write, or null. */
  readonly by: string | null
  readonly at: number
}

/** Compares and writes one item. Synchronous, which is all the atomicity it needs. */
export function writeItem(store: MemoryStore, tenant: TenantId, write: ItemWrite, now: number): ItemWriteResult {
  const { space, key, item, expect } = write
  if (expect !== undefined) {
    const found = store.items.get(tenant)?.get(space)?.items.get(key)
    const version = found && isAlive(found, now) ? (found.item as NewItem).version : null
    if (version !== expect) return { status: 'conflict', version }
  }
  put(store, tenant, write, item, now, { by: null, at: item?.at ?? now })
  return { status: 'written' }
}

/** A write that lands with its entry, whatever the current state. */
export function carryWrite(store: MemoryStore, tenant: TenantId, incarnation: string, write: CarriedWrite): void {
  const found = put(store, tenant, write, write.item, write.at, { by: incarnation, at: write.at })
  remember(found, incarnation, write.seq)
}

/** A write that is applied after its entry landed, perhaps again, perhaps late. */
export function applyWrite(
  store: MemoryStore,
  tenant: TenantId,
  incarnation: string,
  write: CarriedWrite,
  redo: boolean,
): void {
  const found = store.items.get(tenant)?.get(write.space)?.items.get(write.key)
  const known = found && { seq: found.seqs.get(incarnation), lastAt: found.lastAt, lastBy: found.lastBy }
  if (!isPassed(known, write, incarnation, redo)) carryWrite(store, tenant, incarnation, write)
}

export function isAlive(found: MemoryItem, now: number): boolean {
  return found.item !== null && (found.expiresAt === null || now < found.expiresAt)
}

/** Leaves a note of the item, which is forgotten after a day. */
export function removeItem(
  store: MemoryStore,
  place: { readonly tenant: TenantId; readonly space: string; readonly key: string },
  found: MemoryItem,
  at: number,
): void {
  if (found.item !== null) spaceOf(store, place.tenant, place.space).sorted = undefined
  found.item = null
  found.expiresAt = null
  store.removed.add({ ...place, at })
  forgetRemoved(store, at - REMEMBER_MS)
}

function put(
  store: MemoryStore,
  tenant: TenantId,
  { space, key }: { readonly space: string; readonly key: string },
  item: NewItem | null,
  now: number,
  writer: Writer,
): MemoryItem {
  const holder = spaceOf(store, tenant, space)
  let found = holder.items.get(key)
  if (found === undefined) {
    found = { item: null, createdAt: 0, expiresAt: null, lastAt: 0, lastBy: null, seqs: new Map() }
    holder.items.set(key, found)
  }
  found.lastAt = writer.at
  found.lastBy = writer.by
  if (item === null) {
    removeItem(store, { tenant, space, key }, found, writer.at)
    return found
  }
  if (!isAlive(found, now)) found.createdAt = item.at
  if (found.item === null) holder.sorted = undefined
  found.item = { ...item, value: new Uint8Array(item.value), fields: item.fields.map(([name, token]) => [name, token]) }
  found.expiresAt = item.expiresAt
  return found
}

function remember(found: MemoryItem, incarnation: string, seq: number): void {
  const known = found.seqs.get(incarnation) ?? -1
  found.seqs.delete(incarnation)
  found.seqs.set(incarnation, Math.max(known, seq))
  const [oldest] = found.seqs.keys()
  if (found.seqs.size > MAX_LOGS && oldest !== undefined) found.seqs.delete(oldest)
}

// Removals are noted in the order of time, or nearly so: a clock that was set back only delays forgetting.
function forgetRemoved(store: MemoryStore, before: number): void {
  for (const note of store.removed) {
    if (note.at > before) return
    store.removed.delete(note)
    const spaces = store.items.get(note.tenant)
    const holder = spaces?.get(note.space)
    const found = holder?.items.get(note.key)
    if (spaces === undefined || holder === undefined || found === undefined) continue
    if (found.item !== null || found.lastAt > before) continue
    holder.items.delete(note.key)
    if (holder.items.size === 0) spaces.delete(note.space)
    if (spaces.size === 0) store.items.delete(note.tenant)
  }
}

function spaceOf(store: MemoryStore, tenant: TenantId, space: string): MemorySpace {
  let spaces = store.items.get(tenant)
  if (spaces === undefined) store.items.set(tenant, (spaces = new Map()))
  let holder = spaces.get(space)
  if (holder === undefined) spaces.set(space, (holder = { items: new Map(), sorted: undefined }))
  return holder
}
