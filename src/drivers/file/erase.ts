import { join } from 'node:path'
import type { EraseRequest, LogKey } from '../../log/contract.js'
import { findLog, findLogForWriting, writeRecord } from './records/logs.js'
import { attempts, type FileStore, type LogState, logName } from './store.js'
import {
  changeThread,
  findThreadOf,
  removeLogFolder,
  sweepThread,
  type ThreadLink,
  threadFolder,
} from './records/threads.js'

/**
 * Erases logs in one step: each is sealed, so that nothing can be appended after what was checked, and then the
 * thread's directory commits without them. A seal counts only if the directory commits in the slot it names; an erasure
 * that stops halfway is undone by the next writer that takes this slot.
 */
export async function eraseLogs(
  store: FileStore,
  request: EraseRequest,
): Promise<{ readonly erased: number } | 'conflict'> {
  const { tenant, thread: id, branch, expect, tombstone } = request
  const folder = threadFolder(store, tenant, id)
  const again = attempts('the thread')
  for (;;) {
    const thread = await findThreadOf(store, tenant, id)
    const targets = (thread?.record.logs ?? []).filter((log) => branch === undefined || log.branch === branch)
    if (expect !== undefined && targets.length !== expect.length) return 'conflict'
    if (thread === undefined) return { erased: 0 }
    const keys = targets.map((log): LogKey => ({ tenant, thread: id, branch: log.branch }))
    const outcome = await checkAll(store, keys, expect)
    if (outcome === 'conflict') return 'conflict'
    if (outcome === 'ready' && !(await sealAll(store, keys, thread, expect))) {
      // Takes the slot the seals name, so that nobody waits for an erasure that will not come.
      await changeThread(store, folder, thread, thread.record)
    } else if (outcome === 'ready') {
      const logs = thread.record.logs.filter((log) => !targets.includes(log))
      const isLast = logs.length === 0
      const left = isLast && (targets.length > 0 || tombstone === null) ? tombstone : thread.record.tombstone
      if (targets.length === 0 && left === thread.record.tombstone) return { erased: 0 }
      const removed = [...(await stillThere(store, folder, thread)), ...targets.map((log) => log.folder)]
      if (
        (await changeThread(store, folder, thread, { logs, tombstone: left && { ...left }, removed })) !== undefined
      ) {
        for (const key of keys) store.logs.delete(logName(key))
        for (const target of targets) await removeLogFolder(store, join(folder, target.folder))
        if (isLast) await sweepThread(store, folder)
        return { erased: targets.length }
      }
    }
    await again()
  }
}

type Expected = EraseRequest['expect']

// Before anything is sealed: an existing conflict should cost the writers of these logs nothing.
async function checkAll(
  store: FileStore,
  keys: readonly LogKey[],
  expect: Expected,
): Promise<'ready' | 'conflict' | 'again'> {
  if (expect === undefined) return 'ready'
  for (const key of keys) {
    const state = await findLog(store, key)
    if (state === undefined) return 'again'
    if (!isExpected(state, expect)) return 'conflict'
  }
  return 'ready'
}

async function sealAll(
  store: FileStore,
  keys: readonly LogKey[],
  thread: ThreadLink,
  expect: Expected,
): Promise<boolean> {
  const seal = { threadSlot: thread.record.next, pid: process.pid, bootId: store.disk.bootId }
  for (const key of keys) {
    const again = attempts('the log')
    for (;;) {
      const state = await findLogForWriting(store, key)
      if (state === undefined || (expect !== undefined && !isExpected(state, expect))) return false
      if (await writeRecord(store, state, { kind: 'seal', row: state.newest.record.row, seal })) break
      await again()
    }
  }
  return true
}

function isExpected(state: LogState, expect: NonNullable<Expected>): boolean {
  const { row, log } = state.newest.record
  return expect.some(
    ({ branch, incarnation, seq }) => branch === log.branch && incarnation === row.incarnation && seq === row.seq,
  )
}

async function stillThere(store: FileStore, folder: string, thread: ThreadLink): Promise<string[]> {
  if (thread.record.removed.length === 0) return []
  const names = new Set(await store.disk.list(folder))
  return thread.record.removed.filter((name) => names.has(name))
}
