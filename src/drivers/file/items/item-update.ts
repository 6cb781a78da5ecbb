import { dirname } from 'node:path'
import { begin } from '../records/chain.js'
import { type Disk, hasCode } from '../disk/disk.js'
import { toStorageError } from '../disk/disk-errors.js'
import { checkPlace, commitItem, type FoundItem, type ItemPlace, loadNewest } from './item-chain.js'
import { clearItem } from './item-clearing.js'
import { type ItemRecord, type ItemState, itemParts, placeFirst } from './item-record.js'
import { attempts, type FileStore } from '../store.js'

/** What to write, if anything, and what to return once it is written. */
export interface Decision<Result> {
  readonly result: Result
  readonly write?: { readonly state: ItemState; readonly value: Uint8Array }
}

/**
 * Changes one item in one step: `decide` sees the current item, and what it decides lands only if nothing came in
 * between; otherwise it is called again.
 */
export function updateItem<Result>(
  store: FileStore,
  place: ItemPlace,
  decide: (found: FoundItem | undefined) => Decision<Result>,
  options: { readonly value?: boolean } = {},
): Promise<Result> {
  const { disk } = store
  return store.writers.take(place.folder, async () => {
    const again = attempts('the item')
    for (;;) {
      const found = await loadNewest(disk, place.folder, options)
      if (found !== undefined) checkPlace(place, found.record)
      const isEnd = found?.record.kind === 'end'
      const { result, write } = decide(isEnd ? undefined : found)
      if (write === undefined) return result
      if (isEnd) await clearItem(disk, place.folder, found.slots, found.record.slot)
      const landed =
        found === undefined || isEnd
          ? await createItem(store, place, write.state, write.value)
          : await commitItem(store, place, found, { ...write.state, kind: 'item' }, write.value)
      if (landed) return result
      await again()
    }
  })
}

// The folder is built elsewhere and moved into place, which fails if one already exists: so an item appears with its
// first version or not at all, and if two create it, one is first.
async function createItem(
  store: FileStore,
  { tenant, space, key, parent, folder }: ItemPlace,
  state: ItemState,
  value: Uint8Array,
): Promise<boolean> {
  const { disk } = store
  const aside = disk.temporary()
  await disk.makeFolder(aside)
  try {
    const record: ItemRecord = { ...state, kind: 'item', ...placeFirst(disk.unique()), tenant, space, key }
    await begin(disk, aside, record, itemParts(value))
    await disk.flushFolder(aside)
    await moveInto(disk, aside, parent, folder)
  } catch (error) {
    await disk.removeTree(aside).catch(() => undefined)
    // Another made it first, or a sweep removed the folder of the space just then.
    if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) return false
    if (process.platform !== 'win32' || !hasCode(error, 'EPERM')) throw error
    // There a folder is in the way even when it is empty.
    await disk.removeFolder(folder)
    return false
  }
  try {
    // The name of the space as well, each time: a sweep may have removed its folder and another process made it anew.
    await Promise.all([disk.flushFolder(parent), disk.flushFolder(dirname(parent))])
  } catch (error) {
    throw toStorageError(error, 'unknown')
  }
  return true
}

async function moveInto(disk: Disk, aside: string, parent: string, folder: string): Promise<void> {
  try {
    await disk.rename(aside, folder)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
    await disk.ensureFolder(dirname(parent))
    await disk.makeFolder(parent).catch((failure: unknown) => {
      if (!hasCode(failure, 'EEXIST')) throw failure
    })
    await disk.rename(aside, folder)
  }
}
