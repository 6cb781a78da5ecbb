import { join } from 'node:path'
import type { Append, AppendResult } from '../../log/contract.js'
import { begin, type ChainLink } from './records/chain.js'
import { hasCode } from './disk/disk.js'
import { toStorageError } from './disk/disk-errors.js'
import { rowAfter } from './records/head-row.js'
import { headOf } from './records/lease.js'
import { findLog } from './records/logs.js'
import { encodeName } from './records/names.js'
import { describeEntries, type LogRecord } from './records/record.js'
import { attempts, type FileStore, logName } from './store.js'
import {
  beginThread,
  changeThread,
  findThreadOf,
  isListed,
  sweepThread,
  tenantFolder,
  type ThreadLink,
  threadFolder,
} from './records/threads.js'

/**
 * Creates a log: its folder with the first record is complete before the thread's directory names it, and the
 * directory's own compare-and-append decides between creators, forks and erasures of the same thread.
 */
export async function createLog(store: FileStore, append: Append): Promise<AppendResult> {
  const { log, requires } = append
  const again = attempts('the thread')
  for (;;) {
    const thread = await findThreadOf(store, log.tenant, log.thread)
    const taken = thread?.record.logs.some((other) => other.branch === log.branch)
    if (taken) {
      const state = await findLog(store, log)
      if (state !== undefined) return { status: 'conflict', head: await headOf(store, state) }
    } else if (requires !== undefined && !isListed(thread, requires)) {
      return { status: 'conflict', head: undefined }
    } else {
      const name = `${encodeName(log.branch)}~${store.disk.unique()}`
      const first = await (thread === undefined
        ? createThread(store, append, name)
        : addBranch(store, append, thread, name))
      if (first !== undefined) {
        const folder = join(threadFolder(store, log.tenant, log.thread), name)
        const { log: key } = first.record
        const state = { key, folder, newest: first, slots: [first.record.slot], anchored: true }
        store.logs.set(logName(log), state)
        return { status: 'appended' }
      }
    }
    await again()
  }
}

// The thread's folder is built elsewhere and moved into place, which fails if one already exists: so a new thread
// appears with its first log or not at all.
async function createThread(store: FileStore, append: Append, name: string): Promise<ChainLink<LogRecord> | undefined> {
  const { disk } = store
  const { tenant, thread, branch } = append.log
  const parent = join(tenantFolder(store, tenant), 'threads')
  const folder = threadFolder(store, tenant, thread)
  const aside = disk.temporary()
  await disk.ensureFolder(parent)
  await disk.makeFolder(aside)
  try {
    const first = await beginLog(store, append, join(aside, name))
    const logs = [{ branch, incarnation: append.incarnation, folder: name }]
    const directory = await beginThread(store, aside, tenant, thread, { logs, tombstone: null, removed: [] })
    await disk.flushFolder(aside)
    await disk.rename(aside, folder)
    store.threads.set(folder, directory)
    await flushOrDoubt(store, parent)
    return first
  } catch (error) {
    await disk.removeTree(aside).catch(() => undefined)
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST') && !(process.platform === 'win32' && hasCode(error, 'EPERM')))
      throw error
    // In the way is a thread that another process created first, or what is left of one that was erased.
    await sweepThread(store, folder)
    return undefined
  }
}

async function addBranch(
  store: FileStore,
  append: Append,
  thread: ThreadLink,
  name: string,
): Promise<ChainLink<LogRecord> | undefined> {
  const { disk } = store
  const folder = threadFolder(store, append.log.tenant, append.log.thread)
  const own = join(folder, name)
  const { logs, removed } = thread.record
  try {
    const first = await beginLog(store, append, own)
    const added = { branch: append.log.branch, incarnation: append.incarnation, folder: name }
    const names = new Set(removed.length > 0 ? await disk.list(folder) : [])
    const change = { logs: [...logs, added], tombstone: null, removed: removed.filter((old) => names.has(old)) }
    if ((await changeThread(store, folder, thread, change)) !== undefined) return first
    await disk.removeTree(own)
    return undefined
  } catch (error) {
    // Not one of the system's own: the directory may name the folder by now.
    if (toStorageError(error, 'nothing') === error) throw error
    await disk.removeTree(own).catch(() => undefined)
    // The thread was erased, and its folder with it.
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function beginLog(store: FileStore, append: Append, folder: string): Promise<ChainLink<LogRecord>> {
  const { entries, log } = append
  await store.disk.makeFolder(folder)
  // Slots count on from the first entry: 0, but for a copied log whose beginning was pruned.
  const slot = entries[0]?.seq ?? 0
  const record: LogRecord = {
    kind: 'append',
    slot,
    next: slot + entries.length,
    prev: null,
    log: { tenant: log.tenant, thread: log.thread, branch: log.branch },
    row: rowAfter(store, append, null, slot),
    entries: describeEntries(entries),
  }
  const first = await begin(store.disk, folder, record, entries)
  await store.disk.flushFolder(folder)
  return first
}

async function flushOrDoubt(store: FileStore, folder: string): Promise<void> {
  try {
    await store.disk.flushFolder(folder)
  } catch (error) {
    throw toStorageError(error, 'unknown')
  }
}
