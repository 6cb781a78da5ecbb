import { basename, dirname, join } from 'node:path'
import { removeBefore, slotsAmong } from '../records/chain.js'
import { type Disk, hasCode } from '../disk/disk.js'
import { slotName } from '../records/names.js'

const MARK = '~end-'

/**
 * Clears the folder of an item that is forgotten. Its last record has taken the slot that any other writer would need,
 * so nothing valid can come anymore; but a writer that was away for long may still put a record into a slot that was
 * freed, and must not be taken for the item. So the last record is never out of sight: when all before it are gone it
 * moves next to the folder, `<name>~end-<slot>`, and stays there until the folder is gone. Whatever is in the folder in
 * the meantime, with that slot or a lower one, is a late writer's. An item created again has a higher one.
 *
 * Every step can be done by several processes at once, and by the next one if the process is killed.
 */
export async function clearItem(disk: Disk, folder: string, slots: readonly number[], end: number): Promise<void> {
  await removeBefore(disk, folder, slots, end)
  try {
    await disk.rename(join(folder, slotName(end)), markPath(folder, end))
  } catch (error) {
    // Another process did, or has finished.
    if (!hasCode(error, 'ENOENT')) throw error
  }
  await dropFolder(disk, folder, end)
}

/**
 * Whether the records of a folder are all those of late writers: then they are removed, and the folder with them.
 * `slots` are those that were seen, none with its predecessor.
 */
export async function finishClearing(disk: Disk, folder: string, slots: readonly number[]): Promise<boolean> {
  const newest = slots.at(-1) ?? 0
  for (const name of (await disk.list(dirname(folder))) ?? []) {
    const mark = parseEndMark(name)
    if (mark?.item !== basename(folder) || mark.slot < newest) continue
    await dropFolder(disk, folder, mark.slot)
    return true
  }
  return false
}

/** The parts of a mark's name; undefined for any other name. */
export function parseEndMark(name: string): { readonly item: string; readonly slot: number } | undefined {
  const at = name.lastIndexOf(MARK)
  const digits = name.slice(at + MARK.length)
  return at > 0 && /^\d{16}$/.test(digits) ? { item: name.slice(0, at), slot: Number(digits) } : undefined
}

function markPath(folder: string, slot: number): string {
  return `${folder}${MARK}${String(slot).padStart(16, '0')}`
}

/** Removes a folder with what late writers put there, and then its mark. */
export async function dropFolder(disk: Disk, folder: string, end: number): Promise<void> {
  while (!(await disk.removeFolder(folder))) {
    const names = (await disk.list(folder)) ?? []
    const slots = slotsAmong(names)
    // Made again in the meantime: what late writers put there is lower than what is valid, and harms nobody.
    if ((slots.at(-1) ?? 0) > end) break
    // Kept by files of someone else. The mark stays with it: a late writer may still come.
    if (slots.length === 0 && names.length > 0) return
    await removeBefore(disk, folder, slots, end + 1)
  }
  await disk.remove(markPath(folder, end))
}
