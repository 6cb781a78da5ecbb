import { join } from 'node:path'
import { StorageError } from '../../../core/errors.js'
import type { Expect, LogKey, StoredEntry } from '../../../log/contract.js'
import {
  type ChainLink,
  commit,
  follow,
  hasPredecessor,
  listSlots,
  missingRecord,
  readLink,
  removeBefore,
  settle,
} from './chain.js'
import { hasCode } from '../disk/disk.js'
import { slotName } from './names.js'
import { damaged, describeEntries, type EntryLine, type HeadRow, type LogRecord, type Seal } from './record.js'
import { type FileStore, isAlive, type LogState, logName, pause } from '../store.js'
import { changeThread, findThreadOf, threadFolder } from './threads.js'

/** How long a writer leaves alone an erasure in progress in a process that is still running: it seals log by log. */
const ERASURE_MS = 250
const ERASURE_MS_PER_LOG = 20
const MAX_DOUBTS = 3

/** The log as it is now. Undefined if there is none. An erasure that has not committed does not count. */
export async function findLog(store: FileStore, key: LogKey): Promise<LogState | undefined> {
  for (;;) {
    const state = (await followKnown(store, key)) ?? (await loadLog(store, key))
    if (state === undefined) return undefined
    if (state.newest.record.kind !== 'seal') return state
    if ((await sealState(store, state)) !== 'erased') return state
    // Another log of this name may have begun since, in another folder.
    store.logs.delete(logName(key))
  }
}

/** The log as it is now, with no erasure in progress: a writer waits for it, or stops it if it makes no progress. */
export async function findLogForWriting(store: FileStore, key: LogKey): Promise<LogState | undefined> {
  const start = Date.now()
  for (;;) {
    const state = await findLog(store, key)
    const seal = state?.newest.record.seal
    if (state === undefined || seal === undefined || (await sealState(store, state)) === 'void') return state
    const thread = await findThreadOf(store, key.tenant, key.thread)
    const patience = ERASURE_MS + ERASURE_MS_PER_LOG * (thread?.record.logs.length ?? 0)
    if (isUnderWay(store, seal) && Date.now() - start < patience) await pause(2)
    else await stopErasure(store, key, seal)
  }
}

function isUnderWay(store: FileStore, seal: Seal): boolean {
  return seal.bootId === store.disk.bootId && isAlive(seal.pid)
}

// Takes the slot in which the erasure would commit, with the directory as it is.
async function stopErasure(store: FileStore, key: LogKey, seal: Seal): Promise<void> {
  const thread = await findThreadOf(store, key.tenant, key.thread)
  if (thread === undefined || thread.record.slot >= seal.threadSlot) return
  await changeThread(store, threadFolder(store, key.tenant, key.thread), thread, thread.record)
}

async function sealState(store: FileStore, state: LogState): Promise<'pending' | 'void' | 'erased'> {
  const { tenant, thread } = state.key
  const directory = await findThreadOf(store, tenant, thread)
  const threadSlot = state.newest.record.seal?.threadSlot ?? 0
  if (directory === undefined) return 'erased'
  const folders = directory.record.logs.map((log) => join(threadFolder(store, tenant, thread), log.folder))
  if (!folders.includes(state.folder)) return 'erased'
  return directory.record.slot < threadSlot ? 'pending' : 'void'
}

async function followKnown(store: FileStore, key: LogKey): Promise<LogState | undefined> {
  const state = store.logs.get(logName(key))
  if (state === undefined) return undefined
  const passed: ChainLink<LogRecord>[] = []
  const from = state.newest
  const newest = await follow(store.disk, state.folder, from, (link) => passed.push(link))
  if (newest === undefined) {
    store.logs.delete(logName(key))
    return undefined
  }
  // Another call may have moved the state on in the meantime, perhaps further than this one.
  if (state.newest === from) for (const link of passed) moveTo(state, link)
  return state
}

async function loadLog(store: FileStore, key: LogKey): Promise<LogState | undefined> {
  let listed: string | undefined
  for (let doubts = 0; ; ) {
    const thread = await findThreadOf(store, key.tenant, key.thread)
    const entry = thread?.record.logs.find((log) => log.branch === key.branch)
    if (entry === undefined) return undefined
    const folder = join(threadFolder(store, key.tenant, key.thread), entry.folder)
    const slots = await listSlots(store.disk, folder)
    const state = await loadState(store, key, folder, slots)
    if (state !== undefined) {
      store.logs.set(logName(key), state)
      return state
    }
    // Changed while it was read, or damaged. Only what stays so while the directory names the same folder is damage.
    if (listed === entry.folder && ++doubts > MAX_DOUBTS) throw await explainDamage(store, folder)
    listed = entry.folder
  }
}

async function loadState(
  store: FileStore,
  key: LogKey,
  folder: string,
  slots: readonly number[],
): Promise<LogState | undefined> {
  const last = slots.at(-1)
  if (last === undefined) return undefined
  const link = await readLink<LogRecord>(store.disk, folder, last)
  if (link === undefined || !(await hasPredecessor(store.disk, folder, link.record))) return undefined
  if (logName(link.record.log) !== logName(key)) throw damaged(join(folder, slotName(last)), 'belongs to another log')
  const state: LogState = { key: link.record.log, folder, newest: link, slots: [...slots], anchored: false }
  const newest = await follow(store.disk, folder, link, (next) => moveTo(state, next))
  if (newest === undefined) return undefined
  const { base } = newest.record.row
  await removeBefore(store.disk, folder, slots, base.slot).catch(() => undefined)
  state.slots = state.slots.filter((slot) => slot >= base.slot)
  return state
}

async function explainDamage(store: FileStore, folder: string): Promise<Error> {
  const last = (await listSlots(store.disk, folder)).at(-1)
  const link = last === undefined ? undefined : await readLink<LogRecord>(store.disk, folder, last)
  return missingRecord(folder, link?.record.prev?.slot ?? 0)
}

function moveTo(state: LogState, link: ChainLink<LogRecord>): void {
  const { base } = link.record.row
  if (base.slot > state.newest.record.row.base.slot) state.slots = state.slots.filter((slot) => slot >= base.slot)
  state.newest = link
  state.slots.push(link.record.slot)
}

/** Whether the log ends where a writer expects it to. */
export function endsAt(row: HeadRow, expect: Expect): boolean {
  return (
    row.incarnation === expect.incarnation &&
    row.seq === expect.seq &&
    row.hash === expect.hash &&
    row.epoch === expect.epoch
  )
}

/**
 * Adds a record after the newest that `state` knows. False if another came first, or the log is gone: find it again and
 * decide again.
 */
export async function writeRecord(
  store: FileStore,
  state: LogState,
  change: Pick<LogRecord, 'kind' | 'row'> & { readonly seal?: Seal; readonly standIn?: EntryLine },
  entries: readonly StoredEntry[] = [],
  standIn: readonly StoredEntry[] = [],
): Promise<boolean> {
  const { newest, folder } = state
  const slot = newest.record.next
  const record: LogRecord = {
    ...change,
    slot,
    next: slot + Math.max(1, entries.length),
    prev: { slot: newest.record.slot, sum: newest.sum },
    log: state.key,
    entries: describeEntries(entries),
  }
  await anchor(store, state)
  const result = await commit<LogRecord>(store.disk, folder, newest, record, [...entries, ...standIn])
  if (result.status === 'taken') return false
  if (result.status === 'unsure') return isIn(store, state.key, folder, result.link)
  if (state.newest === newest) moveTo(state, result.link)
  return true
}

// Whoever created the folders may have been killed before it flushed their names; an acknowledged append must not
// depend on a name that a power loss takes away.
async function anchor(store: FileStore, state: LogState): Promise<void> {
  if (state.anchored) return
  const { tenant, thread } = state.key
  const folder = threadFolder(store, tenant, thread)
  try {
    await store.disk.flushFolder(folder)
    await store.disk.ensureFolder(join(folder, '..'))
    await store.disk.flushFolder(join(folder, '..'))
    state.anchored = true
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

/** Flushes every name that a log hangs from, for a writer whose own flush failed. */
export async function flushLog(store: FileStore, key: LogKey): Promise<void> {
  const state = await findLog(store, key)
  if (state === undefined) return
  await store.disk.flushFolder(state.folder)
  state.anchored = false
  await anchor(store, state)
}

async function isIn(store: FileStore, key: LogKey, folder: string, own: ChainLink<LogRecord>): Promise<boolean> {
  store.logs.delete(logName(key))
  const now = await findLog(store, key)
  // Erased: whether it came just before or too late, it is gone now, and nobody can have seen it since.
  if (now === undefined || now.folder !== folder) return false
  const place = await settle(store.disk, folder, own, now.newest)
  if (place !== 'unknown') return place === 'in'
  throw new StorageError(
    'The log was pruned past this append before it could be confirmed.',
    'Look for the append in the log before repeating it.',
    { reason: 'overtaken', written: 'unknown', retryable: true },
  )
}
