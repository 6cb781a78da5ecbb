import { join } from 'node:path'
import { toStorageError } from '../disk/disk-errors.js'
import { type Disk, type FileIdentity, hasCode, isSameFile } from '../disk/disk.js'
import { parseSlot, slotName } from './names.js'
import {
  type ChainRecord,
  encodeRecord,
  FIRST_LINE_BYTES,
  missing,
  parsePreamble,
  parseRecord,
  type RecordPart,
} from './record.js'
import type { Hash } from '../../../log/contract.js'

/**
 * A chain is a folder of records in which every change is one new file, and the name of that file is determined by the
 * record before it. So the exclusive link of that one name is the whole compare-and-append, for any number of
 * processes, without a lock that a stopped process could hold.
 *
 * Two rules make removed names safe against writers that wake up late:
 * - Records are removed in ascending order only. A writer that finds its predecessor still there after its link
 *   therefore knows that its own name was never taken before.
 * - The newest record and its predecessor are never removed. A newest record without its predecessor is thus either
 *   the work of a late writer or damage.
 */
export interface ChainLink<Record extends ChainRecord> {
  readonly record: Record
  readonly sum: Hash
  readonly identity: FileIdentity
}

const START_BYTES = 4096

/** Reads one record without its bodies. Undefined if there is none. */
export async function readLink<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  slot: number,
): Promise<ChainLink<Record> | undefined> {
  const path = join(folder, slotName(slot))
  let start = await disk.readStart(path, START_BYTES)
  if (start === undefined) return undefined
  let preamble = parsePreamble(path, start.bytes)
  if (start.bytes.length < preamble.bodiesAt && start.bytes.length < Number(start.identity.size)) {
    start = await disk.readStart(path, preamble.bodiesAt)
    if (start === undefined) return undefined
    preamble = parsePreamble(path, start.bytes)
  }
  return {
    record: parseRecord<Record>(path, start.bytes, preamble),
    sum: preamble.sum,
    identity: start.identity,
  }
}

/** Whether the record before this one is still in its place, and is the one that this record follows. */
export async function hasPredecessor(disk: Disk, folder: string, record: ChainRecord): Promise<boolean> {
  if (record.prev === null) return true
  const path = join(folder, slotName(record.prev.slot))
  const start = await disk.readStart(path, FIRST_LINE_BYTES)
  return start !== undefined && parsePreamble(path, start.bytes).sum === record.prev.sum
}

/**
 * Follows a chain from a record that was its newest to the one that is now, and calls `step` for each new one.
 * Undefined if the known record is gone: the chain was pruned past it, or erased.
 */
export async function follow<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  known: ChainLink<Record>,
  step?: (link: ChainLink<Record>) => void,
): Promise<ChainLink<Record> | undefined> {
  let newest = known
  for (;;) {
    const next = await readLink<Record>(disk, folder, newest.record.next)
    if (next === undefined) {
      // Looked at after its successor: still there means that the successor never was (see the rules above).
      const now = await disk.identify(join(folder, slotName(newest.record.slot)))
      return isSameFile(now, newest.identity) ? newest : undefined
    }
    if (next.record.prev?.sum !== newest.sum) return undefined
    newest = next
    step?.(next)
  }
}

/** The slots of a folder's records, ascending. Other files are not ours and are left alone. */
export async function listSlots(disk: Disk, folder: string): Promise<number[]> {
  return slotsAmong((await disk.list(folder)) ?? [])
}

export function slotsAmong(names: readonly string[]): number[] {
  return names
    .map(parseSlot)
    .filter((slot) => slot !== undefined)
    .sort((a, b) => a - b)
}

export type CommitResult<Record extends ChainRecord> =
  | { readonly status: 'committed'; readonly link: ChainLink<Record> }
  /** Another writer was first, or the folder is gone. Nothing was written. */
  | { readonly status: 'taken' }
  /** Linked, but the predecessor is gone: see `settle` of the caller for what that means. */
  | { readonly status: 'unsure'; readonly link: ChainLink<Record> }

/**
 * Adds a record after `prev`: written completely and flushed under another name, then linked to the one name it can
 * have.
 */
export async function commit<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  prev: ChainLink<Record>,
  record: Record,
  parts: readonly RecordPart[] = [],
): Promise<CommitResult<Record>> {
  const { bytes, sum } = encodeRecord(record, parts)
  const temporary = disk.temporary()
  const identity = await writeTemporary(disk, temporary, bytes)
  const predecessor = join(folder, slotName(prev.record.slot))
  try {
    // The check that counts comes after the link. This one spares a writer that was away while the chain was pruned
    // past it the doubt whether its own record or another's was pruned.
    if (!isSameFile(await disk.identify(predecessor), prev.identity)) {
      await disk.remove(temporary)
      return { status: 'taken' }
    }
    await disk.link(temporary, join(folder, slotName(record.slot)))
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    if (hasCode(error, 'EEXIST', 'ENOENT')) return { status: 'taken' }
    throw error
  }
  try {
    const link = { record, sum, identity }
    const before = await disk.identify(predecessor)
    // Link before remove: a crash between them leaves a stray temporary file, never a missing record.
    await disk.remove(temporary)
    await disk.flushFolder(folder)
    return { status: isSameFile(before, prev.identity) ? 'committed' : 'unsure', link }
  } catch (error) {
    // Gone with the whole folder: the caller finds out what that means for its record.
    if (hasCode(error, 'ENOENT')) return { status: 'unsure', link: { record, sum, identity } }
    throw toStorageError(error, 'unknown')
  }
}

/** Writes a file under its temporary name, and removes it again if the disk has no room for it. */
export async function writeTemporary(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  options?: { readonly flush?: boolean },
): Promise<FileIdentity> {
  try {
    return await disk.writeNew(path, bytes, options)
  } catch (error) {
    await disk.remove(path).catch(() => undefined)
    throw error
  }
}

/** The first record of a new folder, written in place: nobody knows the folder yet. */
export async function begin<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  record: Record,
  parts: readonly RecordPart[] = [],
): Promise<ChainLink<Record>> {
  const { bytes, sum } = encodeRecord(record, parts)
  const identity = await disk.writeNew(join(folder, slotName(record.slot)), bytes)
  return { record, sum, identity }
}

/**
 * What happened to a record that was linked while its predecessor went away. 'in' if the chain holds it, 'out' if a
 * late writer put it next to the chain (it is removed), 'unknown' if the chain was cut after it.
 */
export async function settle<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  own: ChainLink<Record>,
  newest: ChainLink<Record>,
): Promise<'in' | 'out' | 'unknown'> {
  let link = newest
  while (link.record.slot > own.record.slot) {
    const prev: ChainRecord['prev'] = link.record.prev
    if (prev === null) return 'unknown'
    if (prev.slot === own.record.slot && prev.sum === own.sum) return 'in'
    if (prev.slot <= own.record.slot) {
      await removeOwn(disk, folder, own)
      return 'out'
    }
    const before = await readLink<Record>(disk, folder, prev.slot)
    if (before === undefined) return 'unknown'
    link = before
  }
  return link.sum === own.sum ? 'in' : 'unknown'
}

/** Safe for a record next to the chain: its slot is after the newest, so no valid record can ever come there. */
async function removeOwn<Record extends ChainRecord>(
  disk: Disk,
  folder: string,
  own: ChainLink<Record>,
): Promise<void> {
  const path = join(folder, slotName(own.record.slot))
  if (isSameFile(await disk.identify(path), own.identity)) await disk.remove(path)
}

/** Removes records before `slot`, oldest first. */
export async function removeBefore(disk: Disk, folder: string, slots: readonly number[], slot: number): Promise<void> {
  for (const old of slots) {
    if (old < slot) await disk.remove(join(folder, slotName(old)))
  }
}

export function missingRecord(folder: string, slot: number): Error {
  return missing(join(folder, slotName(slot)))
}
