import { isPassed } from '../../shared/redo-rule.js'
import type { TenantId } from '../../../core/ids.js'
import type { CarriedWrite, ItemWrite, ItemWriteResult, NewItem, StoredItem } from '../../../log/store-contract.js'
import { commitItem, type FoundItem, findItem, type ItemPlace, loadNewest, placeOf } from './item-chain.js'
import { clearItem } from './item-clearing.js'
import { isThere, type ItemMeta, type ItemState, rememberLog, seqOf } from './item-record.js'
import { type Decision, updateItem } from './item-update.js'
import type { FileStore } from '../store.js'

/** How long a removed item is remembered, so that a late redo does not bring it back. */
const REMEMBER_MS = 24 * 60 * 60 * 1000
const NOTHING = new Uint8Array(0)

/** Compares and writes one item. */
export function writeItem(
  store: FileStore,
  tenant: TenantId,
  { space, key, item, expect }: ItemWrite,
  now: number,
): Promise<ItemWriteResult> {
  return updateItem<ItemWriteResult>(store, placeOf(store, tenant, space, key), (found) => {
    const before = found?.record
    if (expect !== undefined) {
      const version = isThere(before, now) ? before.item.version : null
      if (version !== expect) return { result: { status: 'conflict', version } }
    }
    const last = { at: item?.at ?? now, by: null }
    const write = change(before, item, now, { last, removedAt: now, logs: before?.logs ?? [] })
    return { result: { status: 'written' }, write }
  })
}

/** A write that is applied after its entry landed, perhaps again, perhaps late. */
export function applyWrite(
  store: FileStore,
  tenant: TenantId,
  incarnation: string,
  carried: CarriedWrite,
  redo: boolean,
): Promise<void> {
  const { seq, space, key, item, at } = carried
  return updateItem<void>(store, placeOf(store, tenant, space, key), (found) => {
    const before = found?.record
    const logs = before?.logs ?? []
    const known = before && { seq: seqOf(logs, incarnation), lastAt: before.last.at, lastBy: before.last.by }
    if (isPassed(known, carried, incarnation, redo)) return { result: undefined }
    // An entry may be applied long after its time, and its removal is to be remembered for a day from then.
    const removedAt = Math.max(at, store.clock.now())
    const write = change(before, item, at, {
      last: { at, by: incarnation },
      removedAt,
      logs: rememberLog(logs, incarnation, seq),
    })
    return { result: undefined, write }
  })
}

/** Reads one item, and moves its expiry if asked to. */
export async function readItem(
  store: FileStore,
  place: ItemPlace,
  now: number,
  extendTo?: number,
): Promise<StoredItem | undefined> {
  const found = await findItem(store, place, { value: true })
  if (!isThere(found?.record, now)) return undefined
  if (!isEarlier(found?.record.item?.expiresAt, extendTo)) return storedItem(found)
  return updateItem(store, place, (newest) => extend(newest, now, extendTo as number), { value: true })
}

function extend(found: FoundItem | undefined, now: number, extendTo: number): Decision<StoredItem | undefined> {
  const before = found?.record
  if (found?.value === undefined || !isThere(before, now)) return { result: undefined }
  if (!isEarlier(before.item.expiresAt, extendTo)) return { result: storedItem(found) }
  const { last, removedAt, logs } = before
  const item = { ...before.item, expiresAt: extendTo }
  return {
    result: { ...(storedItem(found) as StoredItem), expiresAt: extendTo },
    write: { state: { item, last, removedAt, logs }, value: found.value },
  }
}

/** Whether there is an expiry, and it comes before this. */
function isEarlier(expiresAt: number | null | undefined, than: number | undefined): boolean {
  return typeof expiresAt === 'number' && than !== undefined && expiresAt < than
}

export function storedItem(found: FoundItem | undefined): StoredItem | undefined {
  if (found?.value === undefined || found.record.item === null) return undefined
  const { key, item } = found.record
  const { version, createdAt, updatedAt, expiresAt } = item
  return { key, value: found.value, version, createdAt, updatedAt, expiresAt }
}

/** Removes an item if it has expired. Who wrote it last is remembered as it was. */
export function sweepItem(store: FileStore, place: ItemPlace, now: number): Promise<boolean> {
  return updateItem<boolean>(store, place, (found) => {
    const before = found?.record
    if (before === undefined || before.item === null || isThere(before, now)) return { result: false }
    const { last, logs } = before
    return { result: true, write: { state: { item: null, last, removedAt: now, logs }, value: NOTHING } }
  })
}

/** Whether what is left of an item need not be kept any longer. */
export function isForgettable({ item, removedAt }: ItemState, now: number): boolean {
  return item === null && (removedAt ?? 0) <= now - REMEMBER_MS
}

/**
 * Forgets a removed item: a last record takes the slot that any other writer would need, and then the folder goes.
 * One that is cut off is finished by the next that comes by.
 */
export function forgetItem(store: FileStore, place: ItemPlace, now: number): Promise<void> {
  const { disk } = store
  return store.writers.take(place.folder, async () => {
    const found = await loadNewest(disk, place.folder)
    if (found === undefined) return
    const { record, slots } = found
    if (record.kind === 'end') return clearItem(disk, place.folder, slots, record.slot)
    if (!isForgettable(record, now)) return
    const { item, last, removedAt, logs } = record
    if (!(await commitItem(store, place, found, { kind: 'end', item, last, removedAt, logs }, NOTHING))) return
    await clearItem(disk, place.folder, slots, record.next)
  })
}

function change(
  before: ItemState | undefined,
  item: NewItem | null,
  now: number,
  writer: { readonly last: ItemState['last']; readonly removedAt: number; readonly logs: ItemState['logs'] },
): NonNullable<Decision<unknown>['write']> {
  const { last, logs } = writer
  if (item === null) return { state: { item: null, last, removedAt: writer.removedAt, logs }, value: NOTHING }
  const createdAt = isThere(before, now) ? before.item.createdAt : item.at
  const { version, at, expiresAt, fields } = item
  const meta: ItemMeta = { version, createdAt, updatedAt: at, expiresAt, fields }
  return { state: { item: meta, last, removedAt: null, logs }, value: item.value }
}
