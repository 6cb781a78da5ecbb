import { join } from 'node:path'
import type { TenantId } from '../../../core/ids.js'
import { compareUtf8 } from '../../../core/text-order.js'
import type { ItemScan, StoredItem } from '../../../log/store-contract.js'
import { takeSmallest } from '../../shared/take-smallest.js'
import { mapSome } from '../batch.js'
import { findItem, itemsFolder, loadNewest, placeOf } from './item-chain.js'
import { isThere, type ItemMeta } from './item-record.js'
import { storedItem } from './item-writes.js'
import { decodeName, encodeName, isShortened } from '../records/names.js'
import type { FileStore } from '../store.js'

/** How many of the next keys are picked at once from an unsorted list: many of them may be removed or expired. */
const MIN_PICKED = 256
const AT_ONCE = 16

/** One page of a space. There is no index: each page lists the folder of the space, then reads what it returns. */
export async function scanItems(
  store: FileStore,
  tenant: TenantId,
  space: string,
  { prefix = '', after, limit, where = [], fields = false }: ItemScan,
  now: number,
): Promise<StoredItem[]> {
  const found: StoredItem[] = []
  if (limit <= 0) return found
  const keys = await listKeys(store, tenant, space)
  let from = after
  for (;;) {
    const above = keys.filter((key) => key.startsWith(prefix) && isAbove(key, from))
    const picked = takeSmallest(above, Math.max(limit - found.length, MIN_PICKED), compareUtf8)
    for (let at = 0; at < picked.length; ) {
      const some = picked.slice(at, at + Math.min(AT_ONCE, limit - found.length))
      const items = await mapSome(some, (key) => findItem(store, placeOf(store, tenant, space, key), { value: true }))
      for (const item of items) {
        if (!isThere(item?.record, now) || !fits(item?.record.item as ItemMeta, where)) continue
        const stored = storedItem(item) as StoredItem
        found.push(fields ? { ...stored, fields: item?.record.item?.fields ?? [] } : stored)
      }
      if (found.length >= limit) return found
      at += some.length
    }
    from = picked.at(-1)
    if (from === undefined) return found
  }
}

export async function listSpaces(
  store: FileStore,
  tenant: TenantId,
  { after, limit }: { readonly after?: string; readonly limit: number },
): Promise<string[]> {
  const root = itemsFolder(store, tenant)
  const names = (await store.disk.list(root)) ?? []
  const spaces = await mapSome(names, (name) => nameOf(store, root, name, findSpaceName))
  const above = spaces.filter((space): space is string => space !== undefined && isAbove(space, after))
  return takeSmallest(above, limit, compareUtf8)
}

function isAbove(text: string, bound: string | undefined): boolean {
  return bound === undefined || compareUtf8(text, bound) > 0
}

function fits({ fields }: ItemMeta, where: NonNullable<ItemScan['where']>): boolean {
  return where.every(([name, tokens]) => {
    const field = fields.find(([own]) => own === name)
    return field === undefined || tokens.includes(field[1])
  })
}

/** The keys of a space, of removed and expired items too, in no order. */
async function listKeys(store: FileStore, tenant: TenantId, space: string): Promise<string[]> {
  const folder = join(itemsFolder(store, tenant), encodeName(space))
  const names = (await store.disk.list(folder)) ?? []
  const keys: string[] = []
  const shortened: string[] = []
  for (const name of names) {
    const key = decodeName(name)
    if (key !== undefined) keys.push(key)
    else if (isShortened(name)) shortened.push(name)
  }
  const found = await mapSome(shortened, (name) => nameOf(store, folder, name, findKey))
  return [...keys, ...found.filter((key) => key !== undefined)]
}

// The folder of a long name holds a hash of it, so what a folder once stood for it always stands for.
async function nameOf(
  store: FileStore,
  parent: string,
  name: string,
  find: (store: FileStore, folder: string) => Promise<string | undefined>,
): Promise<string | undefined> {
  if (!isShortened(name)) return decodeName(name)
  const folder = join(parent, name)
  const known = store.longNames.get(folder)
  if (known !== undefined) return known
  const found = await find(store, folder)
  if (found === undefined || encodeName(found) !== name) return undefined
  store.longNames.set(folder, found)
  return found
}

async function findKey({ disk }: FileStore, folder: string): Promise<string | undefined> {
  return (await loadNewest(disk, folder))?.record.key
}

async function findSpaceName({ disk }: FileStore, folder: string): Promise<string | undefined> {
  for (const name of (await disk.list(folder)) ?? []) {
    const found = await loadNewest(disk, join(folder, name))
    if (found !== undefined) return found.record.space
  }
  return undefined
}
