import type { Expect } from '../../../log/contract.js'
import type { IndexTask, Labels } from '../parcel/append-parcel.js'
import type { Connection } from '../connection/connection.js'
import type { Row, SqlValue } from '../connection/engine.js'
import type { Instant } from './lease.js'

export const NAMED = 'tenant = ? AND thread = ? AND branch = ?'

/** A log compared with what a writer expects and is about to write. */
export interface FoundLog {
  readonly id: number
  /** It ends where the writer last saw it. */
  readonly asExpected: boolean
  /** Its indexed columns already hold what the writer would put there. */
  readonly sameIndex: boolean
  readonly sameBoot: boolean
}

// Compared in SQL and answered in one number: fetching a dozen columns costs more than all else in an append.
const COMPARE_LOG = `SELECT id * 8
  + 4 * (incarnation = ? AND seq = ? AND hash IS unhex(?) AND epoch = ?)
  + 2 * (status = ? AND created_at = ? AND expires_at IS ? AND wake_at IS ?)
  + (lease_boot IS ?) AS found FROM logs WHERE ${NAMED}`

export interface LogName {
  readonly tenant: string
  readonly thread: string
  readonly branch: string
}

export function compareLog(
  db: Connection,
  { tenant, thread, branch }: LogName,
  expect: Expect | null,
  index: IndexTask,
  boot: string | null,
): FoundLog | undefined {
  const row = db.get(
    COMPARE_LOG,
    expect?.incarnation ?? '',
    expect?.seq ?? -1,
    expect?.hash ?? '',
    expect?.epoch ?? -1,
    index.status,
    index.createdAt,
    index.expiresAt,
    index.wakeAt,
    boot,
    tenant,
    thread,
    branch,
  )
  if (row === undefined) return undefined
  const found = row['found'] as number
  const flags = found % 8
  return {
    id: (found - flags) / 8,
    asExpected: (flags & 4) !== 0,
    sameIndex: (flags & 2) !== 0,
    sameBoot: (flags & 1) !== 0,
  }
}

/** The lease ends `ms` from now; the owner stays known, because a renewal may bring it back. */
export interface LeaseEnd {
  /** NULL when it ends at once: such a log is not in the index of leased ones. */
  readonly boot: string | null
  readonly until: number
  readonly ms: number
  /** Only for a claim. */
  readonly owner?: string
}

export function leaseEnd(ms: number, now: Instant): LeaseEnd {
  return { boot: ms > 0 ? now.bootId : null, until: now.monotonic + ms, ms }
}

/** What an UPDATE of a head row changes, in groups. */
export interface LogChange {
  readonly end?: { readonly seq: number; readonly hash: string; readonly epoch: number }
  readonly index?: IndexTask
  readonly labels?: Labels | null
  readonly lease?: LeaseEnd | null
}

/** Columns that change together. Bit i of a shape says whether group i is in the UPDATE. */
const GROUPS = [
  'seq = ?, hash = unhex(?), epoch = ?',
  'lease_until = ?, lease_ms = ?',
  'lease_boot = ?',
  'lease_owner = ?',
  'updated_at = ?, origin = ?',
  'status = ?, created_at = ?, expires_at = ?, wake_at = ?',
  'tags = ?, metadata = ?',
]

/** The UPDATE of every shape, so that none is put together while a commit waits. */
const UPDATES = Array.from({ length: 2 ** GROUPS.length }, (_, shape) => {
  const columns = GROUPS.filter((_, i) => (shape & (1 << i)) !== 0)
  return `UPDATE logs SET ${columns.join(', ')} WHERE id = ?`
})

/**
 * Names in the UPDATE only the columns that change, because one that names a column rewrites every index on it,
 * changed or not: most appends leave status, wake time and labels alone, and touch no index. The minute of the last change
 * has one, and is kept right by a trigger when it is another.
 */
export function updateLog(db: Connection, log: FoundLog, { end, index, labels, lease }: LogChange): void {
  const values: SqlValue[] = []
  let shape = 0
  const set = (group: number, ...bound: SqlValue[]): void => {
    shape |= 1 << group
    values.push(...bound)
  }
  if (end) set(0, end.seq, end.hash, end.epoch)
  if (lease) set(1, lease.until, lease.ms)
  if (lease && !log.sameBoot) set(2, lease.boot)
  if (lease?.owner !== undefined) set(3, JSON.stringify(lease.owner))
  if (index) set(4, index.updatedAt, index.origin)
  if (index && !log.sameIndex) set(5, index.status, index.createdAt, index.expiresAt, index.wakeAt)
  if (labels) set(6, labels.tags, labels.metadata)
  db.run(UPDATES[shape] as string, ...values, log.id)
}

export function replaceLabels(db: Connection, id: number, { rows }: Labels, isNew: boolean): void {
  if (!isNew) db.run('DELETE FROM labels WHERE log = ?', id)
  for (const { name, value } of rows) db.run('INSERT INTO labels (log, name, value) VALUES (?, ?, ?)', id, name, value)
}

/** The columns that decide about a lease or a prune. */
export function findLog(db: Connection, { tenant, thread, branch }: LogName): Row | undefined {
  return db.get(
    `SELECT id, incarnation, epoch, base_seq, lease_owner, lease_boot FROM logs WHERE ${NAMED}`,
    tenant,
    thread,
    branch,
  )
}
