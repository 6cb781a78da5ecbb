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
  /** Which of its indexed columns already hold what the writer would put there. */
  readonly same: Readonly<Record<'boot' | 'status' | 'createdAt' | 'expiresAt' | 'wakeAt', boolean>>
}

// Compared in SQL and answered in one number: fetching a dozen columns costs more than all else in an append.
const COMPARE_LOG = `SELECT id * 64
  + 32 * (incarnation = ? AND seq = ? AND hash IS unhex(?) AND epoch = ?)
  + 16 * (status = ?) + 8 * (created_at = ?) + 4 * (expires_at IS ?) + 2 * (wake_at IS ?)
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
  const flags = found % 64
  return {
    id: (found - flags) / 64,
    asExpected: (flags & 32) !== 0,
    same: {
      status: (flags & 16) !== 0,
      createdAt: (flags & 8) !== 0,
      expiresAt: (flags & 4) !== 0,
      wakeAt: (flags & 2) !== 0,
      boot: (flags & 1) !== 0,
    },
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
  'tags = ?, metadata = ?',
  'status = ?',
  'created_at = ?',
  'expires_at = ?',
  'wake_at = ?',
]

/** By shape, once it is needed. */
const UPDATES: string[] = []

function updateOf(shape: number): string {
  const columns = GROUPS.filter((_, i) => (shape & (1 << i)) !== 0)
  return `UPDATE logs SET ${columns.join(', ')} WHERE id = ?`
}

/**
 * Names in the UPDATE only the columns that change, because one that names a column rewrites every index on it, changed or
 * not: a step touches no index, or that of the status. The minute of the last change has two, and is kept right by a
 * trigger when it is another.
 */
export function updateLog(db: Connection, log: FoundLog, { end, index, labels, lease }: LogChange): void {
  const { same } = log
  const values: SqlValue[] = []
  let shape = 0
  const set = (group: number, ...bound: SqlValue[]): void => {
    shape |= 1 << group
    values.push(...bound)
  }
  if (end) set(0, end.seq, end.hash, end.epoch)
  if (lease) set(1, lease.until, lease.ms)
  if (lease && !same.boot) set(2, lease.boot)
  if (lease?.owner !== undefined) set(3, JSON.stringify(lease.owner))
  if (index) set(4, index.updatedAt, index.origin)
  if (labels) set(5, labels.tags, labels.metadata)
  if (index && !same.status) set(6, index.status)
  if (index && !same.createdAt) set(7, index.createdAt)
  if (index && !same.expiresAt) set(8, index.expiresAt)
  if (index && !same.wakeAt) set(9, index.wakeAt)
  const update = UPDATES[shape] ?? updateOf(shape)
  UPDATES[shape] = update
  db.run(update, ...values, log.id)
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
