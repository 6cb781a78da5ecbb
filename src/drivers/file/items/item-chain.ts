import { join } from 'node:path'
import { isHoldfastError, StorageError } from '../../../core/errors.js'
import type { TenantId } from '../../../core/ids.js'
import { type ChainLink, commit, listSlots, missingRecord, removeBefore } from '../records/chain.js'
import { type Disk, isSameFile } from '../disk/disk.js'
import { toStorageError } from '../disk/disk-errors.js'
import { finishClearing } from './item-clearing.js'
import { type ItemRecord, type ItemState, itemParts, parseItem, placeBehind } from './item-record.js'
import { encodeName, slotName } from '../records/names.js'
import { damaged, parsePreamble, type Preamble } from '../records/record.js'
import { attempts, type FileStore, pause } from '../store.js'
import { tenantFolder } from '../records/threads.js'

/** Looks at a record without its predecessor before it counts as damage. */
const MAX_DOUBTS = 20
/** Looks at a newest record without its value before it counts as damage. */
const MAX_TORN = 3
const START_BYTES = 4096
const OVERTAKEN = 'overtaken'

/** An item's name, and where it is. */
export interface ItemPlace {
  readonly tenant: TenantId
  readonly space: string
  readonly key: string
  /** The folder of the space. */
  readonly parent: string
  readonly folder: string
}

/** The newest record of an item. */
export interface FoundItem extends ChainLink<ItemRecord> {
  readonly preamble: Preamble
  /** If it was asked for. */
  readonly value: Uint8Array | undefined
  /** All slots that were seen, ascending. */
  readonly slots: readonly number[]
}

export function itemsFolder(store: FileStore, tenant: TenantId): string {
  return join(tenantFolder(store, tenant), 'items')
}

export function placeOf(store: FileStore, tenant: TenantId, space: string, key: string): ItemPlace {
  const parent = join(itemsFolder(store, tenant), encodeName(space))
  return { tenant, space, key, parent, folder: join(parent, encodeName(key)) }
}

/** What is known of an item: it may have been removed or have expired. Undefined if nothing is. */
export async function findItem(
  store: FileStore,
  place: ItemPlace,
  options: { readonly value?: boolean } = {},
): Promise<FoundItem | undefined> {
  const found = await loadNewest(store.disk, place.folder, options)
  if (found === undefined || found.record.kind === 'end') return undefined
  checkPlace(place, found.record)
  return found
}

export function checkPlace(place: ItemPlace, { slot, tenant, space, key }: ItemRecord): void {
  if (tenant === place.tenant && space === place.space && key === place.key) return
  throw damaged(join(place.folder, slotName(slot)), 'belongs to another item')
}

/**
 * The newest record of a folder. The rules are those of every chain (see chain.ts): the newest record and the one
 * before it are never removed, and removal goes upward. So one that is there after its successor was looked for in
 * vain is the newest, and one without its predecessor is a late writer's (see item-clearing.ts), or damage.
 */
export async function loadNewest(
  disk: Disk,
  folder: string,
  { value = false }: { readonly value?: boolean } = {},
): Promise<FoundItem | undefined> {
  const again = attempts('the item')
  let torn = { slot: -1, times: 0 }
  for (let doubts = 0; ; ) {
    const slots = await listSlots(disk, folder)
    if (slots.length === 0) return undefined
    let outcome: Look = 'stray'
    for (let i = slots.length - 1; i >= 0 && outcome === 'stray'; i--) {
      const slot = slots[i] as number
      outcome = await look(disk, folder, slot, value)
      if (outcome !== 'torn') continue
      // Cut off by the writer of a newer record, which the next look finds.
      torn = { slot, times: torn.slot === slot ? torn.times + 1 : 1 }
      if (torn.times > MAX_TORN) throw damaged(join(folder, slotName(slot)), 'ends before its value')
    }
    if (typeof outcome === 'object') return { ...outcome, slots }
    if (outcome === 'stray') {
      if (await finishClearing(disk, folder, slots)) return undefined
      if (++doubts > MAX_DOUBTS) throw missingRecord(folder, (slots.at(-1) as number) - 1)
      await pause(5)
    }
    await again()
  }
}

type Look = Omit<FoundItem, 'slots'> | 'changed' | 'stray' | 'torn'

async function look(disk: Disk, folder: string, slot: number, whole: boolean): Promise<Look> {
  const path = join(folder, slotName(slot))
  // Both before the record is read, and after it was listed: see above for what each of them shows.
  const [next, before] = await Promise.all([
    disk.identify(join(folder, slotName(slot + 1))),
    disk.identify(join(folder, slotName(slot - 1))),
  ])
  if (next !== undefined) return 'changed'
  let start = await disk.readStart(path, whole ? Number.POSITIVE_INFINITY : START_BYTES)
  if (start === undefined) return 'changed'
  const { bodiesAt } = parsePreamble(path, start.bytes)
  if (start.bytes.length < bodiesAt && start.bytes.length < Number(start.identity.size)) {
    start = await disk.readStart(path, bodiesAt)
    if (start === undefined) return 'changed'
  }
  const { record, preamble, value } = parseItem(path, start.bytes)
  // The last record of a chain is removed last, and says the same with or without its predecessor.
  if (record.prev !== null && before === undefined && record.kind !== 'end') return 'stray'
  if (whole && value === undefined) return 'torn'
  return { record, preamble, value, sum: preamble.sum, identity: start.identity }
}

/**
 * Adds a version after the newest, by the exclusive link of the one name it can have. False if another came first: look
 * again and decide again.
 */
export async function commitItem(
  store: FileStore,
  place: ItemPlace,
  found: FoundItem,
  change: ItemState & { readonly kind: ItemRecord['kind'] },
  value: Uint8Array,
): Promise<boolean> {
  const { disk } = store
  const { tenant, space, key, folder } = place
  const record: ItemRecord = { ...change, ...placeBehind(found, disk.unique()), tenant, space, key }
  const result = await commit<ItemRecord>(disk, folder, found, record, itemParts(value))
  if (result.status === 'taken') return false
  if (result.status === 'unsure') {
    return isIn(store, place, result.link).catch((error: unknown) => {
      throw toStorageError(error, 'unknown')
    })
  }
  // What can't be cleared now is cleared by the next write.
  await dropOld(disk, folder, found).catch(() => undefined)
  return true
}

// The record before the newest stays, because it shows that the newest is not a late writer's; but the value that was
// overwritten or removed does not stay with it.
async function dropOld(disk: Disk, folder: string, { record, preamble, identity, slots }: FoundItem): Promise<void> {
  await removeBefore(disk, folder, slots, record.slot)
  const { bodiesAt, end } = preamble
  if (end > bodiesAt + 1) await disk.truncate(join(folder, slotName(record.slot)), bodiesAt, identity)
}

/** Whether a record that was linked while its predecessor went away is part of the chain. If not, it is taken back. */
async function isIn(store: FileStore, { folder }: ItemPlace, own: ChainLink<ItemRecord>): Promise<boolean> {
  const { disk } = store
  const { slot, id } = own.record
  if ((await listSlots(disk, folder)).at(-1) === slot) {
    // The newest of a chain has its predecessor: this one came into a folder that was being cleared.
    await takeBack(disk, folder, own)
    await disk.removeFolder(folder)
    return false
  }
  const newest = await loadNewest(disk, folder)
  const steps = newest === undefined ? -1 : newest.record.slot - 1 - slot
  const there = newest?.record.past[steps]
  if (there === id) return true
  await takeBack(disk, folder, own)
  if (there !== undefined) return false
  throw new StorageError(
    'The item was changed by others so often in the meantime that it is unknown whether this write was among them.',
    'Look at the item again before repeating the write.',
    { reason: OVERTAKEN, written: 'unknown', retryable: true },
  )
}

/** Whether a write failed because others wrote so much that its outcome can't be determined. */
export function isOvertaken(error: unknown): boolean {
  return isHoldfastError(error) && error.data.reason === OVERTAKEN
}

/** Safe for a record beside or far behind the chain: no valid record can ever come to its slot again. */
async function takeBack(disk: Disk, folder: string, own: ChainLink<ItemRecord>): Promise<void> {
  const path = join(folder, slotName(own.record.slot))
  if (isSameFile(await disk.identify(path), own.identity)) await disk.remove(path)
}
