import type { Append, AppendResult, EraseRequest, Expect, Head, LogKey, StoredEntry } from '../../log/contract.js'
import { forgetDue, setIndex } from './due.js'
import { carryWrite } from './item-writes.js'
import { dropIfEmpty, ensureThread, findLog, findThread, type MemoryLog, type MemoryStore } from './memory-store.js'

/** Compare-and-append of one log. Synchronous from the check to the write, which is all the atomicity it needs. */
export function appendToLog(store: MemoryStore, append: Append): AppendResult {
  const log = findLog(store, append.log)
  if (!isAsExpected(log, append.expect) || !isRequirementMet(store, append)) {
    return { status: 'conflict', head: log && headOf(store, log) }
  }
  // Only now: a claim that lost its acknowledgment and comes again must see the conflict with itself, not its own
  // lease.
  if (log !== undefined && append.lease.kind === 'claim' && !append.lease.force) {
    const head = headOf(store, log)
    if (head.lease !== null) return { status: 'held', head }
  }
  const written = log ?? createLog(store, append)
  for (const entry of append.entries) written.entries.push(copyEntry(entry))
  written.epoch = append.epoch
  setIndex(store, written, append.index)
  changeLease(store, written, append)
  for (const write of append.carried ?? []) carryWrite(store, append.log.tenant, append.incarnation, write)
  return { status: 'appended' }
}

function createLog(store: MemoryStore, append: Append): MemoryLog {
  const thread = ensureThread(store, append.log.tenant, append.log.thread)
  thread.tombstone = undefined
  const log: MemoryLog = {
    key: copyKey(append.log),
    incarnation: append.incarnation,
    entries: [],
    epoch: append.epoch,
    owner: null,
    leaseEnd: Number.NEGATIVE_INFINITY,
    index: append.index,
    applied: -1,
  }
  thread.branches.set(append.log.branch, log)
  return log
}

function changeLease(store: MemoryStore, log: MemoryLog, { lease }: Append): void {
  const now = store.clock.monotonic()
  switch (lease.kind) {
    case 'keep':
      return
    case 'claim':
      log.owner = lease.owner
      log.leaseEnd = now + lease.ms
      return
    case 'extend':
      log.leaseEnd = now + lease.ms
      return
    case 'release':
      log.leaseEnd = now
      return
  }
}

export function isAsExpected(log: MemoryLog | undefined, expect: Expect | null): boolean {
  if (log === undefined || expect === null) return log === undefined && expect === null
  const last = lastEntry(log)
  return (
    log.incarnation === expect.incarnation &&
    last.seq === expect.seq &&
    last.hash === expect.hash &&
    log.epoch === expect.epoch
  )
}

function isRequirementMet(store: MemoryStore, { log, requires }: Append): boolean {
  if (requires === undefined) return true
  const source = findLog(store, { tenant: log.tenant, thread: log.thread, branch: requires.branch })
  return source?.incarnation === requires.incarnation
}

export function headOf(store: MemoryStore, log: MemoryLog, now = store.clock.monotonic()): Head {
  const last = lastEntry(log)
  const first = firstEntry(log)
  const remainingMs = log.leaseEnd - now
  return {
    log: log.key,
    incarnation: log.incarnation,
    seq: last.seq,
    hash: last.hash,
    epoch: log.epoch,
    base: { seq: first.seq, hash: first.hash },
    lease: log.owner !== null && remainingMs > 0 ? { owner: log.owner, remainingMs } : null,
    index: log.index,
    ...(log.applied < 0 ? {} : { applied: log.applied }),
  }
}

/** Entries from `from` up to but without `end`, as far as they are kept. */
export function entriesBetween(log: MemoryLog, from: number, end: number): StoredEntry[] {
  const base = firstEntry(log).seq
  return log.entries.slice(Math.max(0, from - base), Math.max(0, end - base))
}

export function pruneLog(
  log: MemoryLog,
  seq: number,
  standIn: StoredEntry | undefined,
): { readonly removed: number } | 'conflict' {
  const offset = seq - firstEntry(log).seq
  if (offset <= 0) return { removed: 0 }
  const entry = log.entries[offset]
  if (standIn === undefined ? entry?.keyframe !== seq : entry?.hash !== standIn.hash) return 'conflict'
  if (standIn) log.entries[offset] = copyEntry(standIn)
  log.entries.splice(0, offset)
  return { removed: offset }
}

export function eraseLogs(store: MemoryStore, request: EraseRequest): { readonly erased: number } | 'conflict' {
  const { tenant, thread: id, branch, expect, tombstone } = request
  const thread = findThread(store, tenant, id)
  const logs = [...(thread?.branches.values() ?? [])].filter((log) => branch === undefined || log.key.branch === branch)
  if (expect !== undefined && !areExactly(logs, expect)) return 'conflict'
  if (thread === undefined) return { erased: 0 }
  for (const log of logs) {
    thread.branches.delete(log.key.branch)
    forgetDue(store, log)
  }
  if (thread.branches.size === 0) {
    if (tombstone === null) thread.tombstone = undefined
    else if (logs.length > 0) thread.tombstone = { ...tombstone }
    dropIfEmpty(store, tenant, id)
  }
  return { erased: logs.length }
}

function areExactly(logs: readonly MemoryLog[], expect: NonNullable<EraseRequest['expect']>): boolean {
  if (logs.length !== expect.length) return false
  return logs.every((log) =>
    expect.some(
      ({ branch, incarnation, seq }) =>
        branch === log.key.branch && incarnation === log.incarnation && seq === lastEntry(log).seq,
    ),
  )
}

export function copyEntry(entry: StoredEntry): StoredEntry {
  return { ...entry, header: new Uint8Array(entry.header), body: new Uint8Array(entry.body) }
}

function copyKey({ tenant, thread, branch }: LogKey): LogKey {
  return Object.freeze({ tenant, thread, branch })
}

function firstEntry(log: MemoryLog): StoredEntry {
  return log.entries[0] as StoredEntry
}

export function lastEntry(log: MemoryLog): StoredEntry {
  return log.entries.at(-1) as StoredEntry
}
