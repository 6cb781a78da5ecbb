import { join } from 'node:path'
import { isOvertaken, type ItemPlace, loadNewest } from './item-chain.js'
import { clearItem, dropFolder, parseEndMark } from './item-clearing.js'
import { isThere } from './item-record.js'
import { forgetItem, isForgettable, sweepItem } from './item-writes.js'
import { mapSome } from '../batch.js'
import type { FileStore } from '../store.js'

const AT_ONCE = 64

interface Sweep {
  readonly now: number
  /** How many may still be removed. */
  left: number
  /** What was found damaged on the way. */
  readonly errors: unknown[]
}

/**
 * Removes what has expired, by walking through all items, and forgets what was removed more than a day ago, with the
 * folders of spaces that become empty. A damaged item does not stop it: it is reported at the end.
 */
export async function sweepItems(store: FileStore, now: number, limit: number): Promise<number> {
  const { disk } = store
  const sweep: Sweep = { now, left: Math.max(0, limit), errors: [] }
  const tenants = join(disk.root, 'tenants')
  for (const tenant of (await disk.list(tenants)) ?? []) {
    const items = join(tenants, tenant, 'items')
    for (const space of (await disk.list(items)) ?? []) {
      if (sweep.left === 0) break
      await sweepSpace(store, join(items, space), sweep)
    }
  }
  if (sweep.errors.length > 0) throw sweep.errors[0]
  return Math.max(0, limit) - sweep.left
}

async function sweepSpace(store: FileStore, parent: string, sweep: Sweep): Promise<void> {
  const names = await store.disk.list(parent)
  if (names === undefined) return
  for (let at = 0; at < names.length && sweep.left > 0; at += AT_ONCE) {
    await mapSome(names.slice(at, at + AT_ONCE), async (name) => {
      try {
        const mark = parseEndMark(name)
        if (mark === undefined) await visit(store, parent, join(parent, name), sweep)
        else await dropFolder(store.disk, join(parent, mark.item), mark.slot)
      } catch (error) {
        // Others changed it in the meantime, which is as good as having been swept.
        if (!isOvertaken(error)) sweep.errors.push(error)
      }
    })
  }
  // Fails as long as anything is in it, also what came since.
  await store.disk.removeFolder(parent).catch((error: unknown) => sweep.errors.push(error))
}

async function visit(store: FileStore, parent: string, folder: string, sweep: Sweep): Promise<void> {
  const found = await loadNewest(store.disk, folder)
  if (found === undefined) return
  const { record, slots } = found
  const { tenant, space, key } = record
  const place: ItemPlace = { tenant, space, key, parent, folder }
  if (record.kind === 'end') await clearItem(store.disk, folder, slots, record.slot)
  else if (isForgettable(record, sweep.now)) await forgetItem(store, place, sweep.now)
  else if (record.item !== null && !isThere(record, sweep.now) && sweep.left > 0) {
    // Taken before it is awaited, because several are swept at once.
    sweep.left--
    let removed = false
    try {
      removed = await sweepItem(store, place, sweep.now)
    } finally {
      if (!removed) sweep.left++
    }
  }
}
