import { join } from 'node:path'
import { StorageError } from '../../../core/errors.js'
import type { TenantId, ThreadId } from '../../../core/ids.js'
import {
  begin,
  type ChainLink,
  commit,
  follow,
  hasPredecessor,
  listSlots,
  missingRecord,
  readLink,
  removeBefore,
  settle,
  slotsAmong,
} from './chain.js'
import { hasCode } from '../disk/disk.js'
import { encodeName, isWriterGone, parseSlot, slotName } from './names.js'
import { damaged, type ThreadRecord } from './record.js'
import { type FileStore, isAlive, pause } from '../store.js'

/** How many old records of a directory stay, so that a writer held up between link and check still finds its place. */
const KEPT = 8
/** Unfinished folders of a process that ended are removed after this long. */
const STALE_MS = 3_600_000
/** Looks at a record without its predecessor before it counts as damage. */
const MAX_DOUBTS = 20

export type ThreadLink = ChainLink<ThreadRecord>
export type ThreadChange = Pick<ThreadRecord, 'logs' | 'tombstone' | 'removed'>

export function threadFolder(store: FileStore, tenant: TenantId, thread: ThreadId): string {
  return join(tenantFolder(store, tenant), 'threads', encodeName(thread))
}

export function tenantFolder(store: FileStore, tenant: TenantId): string {
  return join(store.disk.root, 'tenants', encodeName(tenant))
}

/** The newest record of a thread's directory. Undefined if the thread has neither logs nor a tombstone. */
export async function findThread(store: FileStore, folder: string): Promise<ThreadLink | undefined> {
  const newest = await findNewest(store, folder)
  return newest === undefined || isFinal(newest.record) ? undefined : newest
}

/** The same, with a check that the folder is the one of this thread. */
export async function findThreadOf(
  store: FileStore,
  tenant: TenantId,
  thread: ThreadId,
): Promise<ThreadLink | undefined> {
  const folder = threadFolder(store, tenant, thread)
  const found = await findThread(store, folder)
  if (found !== undefined && (found.record.tenant !== tenant || found.record.thread !== thread)) {
    throw damaged(join(folder, slotName(found.record.slot)), 'belongs to another thread')
  }
  return found
}

/**
 * A directory that became empty accepts no more changes: its folder is cleared away, and a thread of that name starts
 * in a new one. Otherwise clearing could hit a log that is being created at that moment.
 */
function isFinal(record: ThreadRecord): boolean {
  return record.logs.length === 0 && record.tombstone === null
}

async function findNewest(store: FileStore, folder: string): Promise<ThreadLink | undefined> {
  const known = store.threads.get(folder)
  const followed = known && (await follow(store.disk, folder, known))
  const newest = followed ?? (await loadThread(store, folder))
  if (newest === undefined) store.threads.delete(folder)
  else store.threads.set(folder, newest)
  // Seen for the first time: an erasure that was cut off may have left something to clear.
  if (newest !== undefined && followed === undefined && (isFinal(newest.record) || newest.record.removed.length > 0)) {
    await sweepThread(store, folder)
  }
  return newest
}

async function loadThread(store: FileStore, folder: string): Promise<ThreadLink | undefined> {
  const { disk } = store
  for (let doubts = 0; ; ) {
    const [slot] = (await listSlots(disk, folder)).slice(-1)
    if (slot === undefined) return undefined
    const link = await readLink<ThreadRecord>(disk, folder, slot)
    if (link === undefined) continue
    if (await hasPredecessor(disk, folder, link.record)) {
      const newest = await follow(disk, folder, link)
      if (newest !== undefined) return newest
      continue
    }
    // A late writer's record in a thread that was cleared is invalid, and its writer takes it back at once. One that
    // stays and has logs is damage: its predecessor was removed by someone else.
    if (!(await hasLogs(store, folder, link.record))) return undefined
    if (++doubts > MAX_DOUBTS) throw missingRecord(folder, link.record.prev?.slot ?? 0)
    await pause(5)
  }
}

async function hasLogs(store: FileStore, folder: string, record: ThreadRecord): Promise<boolean> {
  for (const log of record.logs) {
    if ((await listSlots(store.disk, join(folder, log.folder))).length > 0) return true
  }
  return false
}

/** The directory of a thread that does not exist yet, in a folder that is not yet in its place. */
export async function beginThread(
  store: FileStore,
  folder: string,
  tenant: TenantId,
  thread: ThreadId,
  change: ThreadChange,
): Promise<ThreadLink> {
  // By the wall clock, so that a thread erased and made again counts on from where no late writer still stands.
  const slot = Date.now() * 1000
  return begin<ThreadRecord>(store.disk, folder, {
    kind: 'thread',
    slot,
    next: slot + 1,
    prev: null,
    tenant,
    thread,
    ...change,
  })
}

/** Whether a thread has this log, in this incarnation. */
export function isListed(
  thread: ThreadLink | undefined,
  wanted: { readonly branch: string; readonly incarnation: string },
): boolean {
  return (
    thread?.record.logs.some((log) => log.branch === wanted.branch && log.incarnation === wanted.incarnation) ?? false
  )
}

/** Commits a change of the directory, if it is still as `link` says. */
export async function changeThread(
  store: FileStore,
  folder: string,
  link: ThreadLink,
  { logs, tombstone, removed }: ThreadChange,
): Promise<ThreadLink | undefined> {
  const { tenant, thread, next, slot } = link.record
  const record: ThreadRecord = {
    kind: 'thread',
    slot: next,
    next: next + 1,
    prev: { slot, sum: link.sum },
    tenant,
    thread,
    logs,
    tombstone,
    removed,
  }
  const result = await commit<ThreadRecord>(store.disk, folder, link, record)
  if (result.status === 'taken') return undefined
  if (result.status === 'unsure' && !(await isSettled(store, folder, result.link))) return undefined
  store.threads.set(folder, result.link)
  await removeOld(store, folder, next)
  return result.link
}

async function isSettled(store: FileStore, folder: string, own: ThreadLink): Promise<boolean> {
  const [last] = (await listSlots(store.disk, folder)).slice(-1)
  const newest = last === own.record.slot ? undefined : await loadThread(store, folder)
  if (newest === undefined) {
    // No predecessor and nothing newer: the thread was cleared before this record came. Its name never comes again.
    await store.disk.remove(join(folder, slotName(own.record.slot)))
    return false
  }
  const place = await settle(store.disk, folder, own, newest)
  if (place === 'unknown') {
    throw new StorageError(
      'The thread was changed by others so often in the meantime that it is unknown whether this change was among them.',
      'Look at the thread again before repeating the change.',
      { reason: 'overtaken', written: 'unknown', retryable: true },
    )
  }
  return place === 'in'
}

async function removeOld(store: FileStore, folder: string, newest: number): Promise<void> {
  const old = newest - KEPT - 1
  try {
    // One by one as they come out of use; the list is only read when one was left over.
    if ((await store.disk.identify(join(folder, slotName(old)))) === undefined) return
    await removeBefore(store.disk, folder, await listSlots(store.disk, folder), old + 1)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/**
 * Clears what interrupted erasures and creations left in a thread's folder, and the folder itself when nothing of the
 * thread is left. Every name removed here is unique, so none that is in use can be hit.
 */
export async function sweepThread(store: FileStore, folder: string): Promise<void> {
  const names = await store.disk.list(folder)
  if (names === undefined) return
  const thread = await findNewest(store, folder)
  const record = thread?.record
  const inUse = new Set(record?.logs.map((log) => log.folder))
  const isGone = record === undefined || isFinal(record)
  for (const name of names) {
    if (parseSlot(name) !== undefined || inUse.has(name)) continue
    if (record?.removed.includes(name) || (await isLeftOver(store, folder, name, isGone))) {
      await removeLogFolder(store, join(folder, name))
    }
  }
  if (!isGone) return
  await removeBefore(store.disk, folder, slotsAmong(names), Number.POSITIVE_INFINITY)
  await store.disk.removeFolder(folder)
  store.threads.delete(folder)
}

async function isLeftOver(store: FileStore, folder: string, name: string, gone: boolean): Promise<boolean> {
  const at = name.lastIndexOf('~')
  if (at < 0 || !/^[0-9a-f]{8}-\d+-[0-9a-f]+$/.test(name.slice(at + 1))) return false
  // Without a directory nothing can come to use this folder: its writer's commit would find no predecessor.
  if (gone) return true
  if (!isWriterGone(name.slice(at + 1), store.disk.bootId, isAlive)) return false
  const seen = await store.disk.identify(join(folder, name))
  return seen !== undefined && Date.now() - Number(seen.modified / 1_000_000n) > STALE_MS
}

/** Removes an erased log's folder, records in ascending order (see chain.ts). */
export async function removeLogFolder(store: FileStore, folder: string): Promise<void> {
  const { disk } = store
  const slots = await listSlots(disk, folder)
  await removeBefore(disk, folder, slots, Number.POSITIVE_INFINITY)
  await disk.removeTree(folder)
}
