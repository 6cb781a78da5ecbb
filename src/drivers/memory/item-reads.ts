import type { TenantId } from '../../core/ids.js'
import { compareUtf8 } from '../../core/text-order.js'
import type { ItemScan, NewItem, StoredItem } from '../../log/store-contract.js'
import { takeSmallest } from '../shared/take-smallest.js'
import { isAlive, removeItem } from './item-writes.js'
import type { MemoryItem, MemorySpace, MemoryStore } from './memory-store.js'

export function readItems(
  store: MemoryStore,
  tenant: TenantId,
  space: string,
  keys: readonly string[],
  { now, extendTo }: { readonly now: number; readonly extendTo?: number },
): StoredItem[] {
  const items: StoredItem[] = []
  const holder = store.items.get(tenant)?.get(space)
  for (const key of new Set(keys)) {
    const found = holder?.items.get(key)
    if (found === undefined || !isAlive(found, now)) continue
    if (extendTo !== undefined && found.expiresAt !== null && extendTo > found.expiresAt) found.expiresAt = extendTo
    items.push(stored(key, found))
  }
  return items
}

export function scanItems(
  store: MemoryStore,
  tenant: TenantId,
  space: string,
  { prefix = '', after, limit, where = [], fields = false }: ItemScan,
  now: number,
): StoredItem[] {
  const holder = store.items.get(tenant)?.get(space)
  if (holder === undefined) return []
  const items: StoredItem[] = []
  const sorted = sortedKeys(holder)
  for (let i = firstAbove(sorted, prefix, after); i < sorted.length && items.length < limit; i++) {
    const key = sorted[i] as string
    // Keys with the same beginning lie side by side.
    if (!key.startsWith(prefix)) break
    const found = holder.items.get(key) as MemoryItem
    if (isAlive(found, now) && fits(found.item as NewItem, where)) {
      items.push(fields ? { ...stored(key, found), fields: fieldsOf(found) } : stored(key, found))
    }
  }
  return items
}

function fieldsOf(found: MemoryItem): NewItem['fields'] {
  return (found.item as NewItem).fields.map(([name, token]) => [name, token])
}

export function listSpaces(store: MemoryStore, tenant: TenantId, after: string | undefined, limit: number): string[] {
  const spaces = store.items.get(tenant) ?? new Map<string, MemorySpace>()
  return takeSmallest(candidates(), limit, compareUtf8)

  function* candidates(): Generator<string> {
    for (const [name, holder] of spaces) {
      if (sortedKeys(holder).length > 0 && (after === undefined || compareUtf8(name, after) > 0)) yield name
    }
  }
}

export function sweepItems(store: MemoryStore, now: number, limit: number): number {
  let removed = 0
  for (const [tenant, spaces] of store.items) {
    for (const [space, holder] of spaces) {
      for (const [key, found] of holder.items) {
        if (removed >= limit) return removed
        if (found.item === null || isAlive(found, now)) continue
        removeItem(store, { tenant, space, key }, found, now)
        removed++
      }
    }
  }
  return removed
}

function stored(key: string, found: MemoryItem): StoredItem {
  const { value, version, at } = found.item as NewItem
  const { createdAt, expiresAt } = found
  return { key, value: new Uint8Array(value), version, createdAt, updatedAt: at, expiresAt }
}

function fits({ fields }: NewItem, where: NonNullable<ItemScan['where']>): boolean {
  return where.every(([name, tokens]) => {
    const field = fields.find(([own]) => own === name)
    return field === undefined || tokens.includes(field[1])
  })
}

/** The keys of what is there, expired or not. */
function sortedKeys(holder: MemorySpace): string[] {
  holder.sorted ??= [...holder.items.keys()].filter((key) => holder.items.get(key)?.item !== null).sort(compareUtf8)
  return holder.sorted
}

/** The place of the first key that is at least the prefix and above `after`. */
function firstAbove(sorted: readonly string[], prefix: string, after: string | undefined): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    const key = sorted[middle] as string
    const isBelow = compareUtf8(key, prefix) < 0 || (after !== undefined && compareUtf8(key, after) <= 0)
    if (isBelow) low = middle + 1
    else high = middle
  }
  return low
}
