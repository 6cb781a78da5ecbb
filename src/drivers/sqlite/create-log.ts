import type { AppendTask, EntryTask } from './parcel/append-parcel.js'
import type { Connection } from './connection/connection.js'
import type { LeaseEnd } from './rows/log-row.js'

const INSERT_LOG = `INSERT INTO logs (tenant, thread, branch, incarnation, seq, hash, epoch, base_seq, base_hash,
  lease_owner, lease_boot, lease_until, lease_ms, status, created_at, updated_at, expires_at, wake_at, tags, metadata,
  origin, updated_minute) VALUES (?, ?, ?, ?, ?, unhex(?), ?, ?, unhex(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
  CAST(? / 60000.0 AS INTEGER)) RETURNING id`

/** The head row of a log that this append begins. A thread that is begun again is no longer one that was removed. */
export function createLog(db: Connection, task: AppendTask, lease: LeaseEnd | null): number {
  const { index, labels, entries } = task
  const first = entries[0] as EntryTask
  const last = entries.at(-1) as EntryTask
  const row = db.get(
    INSERT_LOG,
    task.tenant,
    task.thread,
    task.branch,
    task.incarnation,
    last.seq,
    last.hash,
    task.epoch,
    first.seq,
    first.hash,
    lease?.owner === undefined ? null : JSON.stringify(lease.owner),
    lease?.boot ?? null,
    lease?.until ?? null,
    lease?.ms ?? null,
    index.status,
    index.createdAt,
    index.updatedAt,
    index.expiresAt,
    index.wakeAt,
    labels?.tags ?? '[]',
    labels?.metadata ?? '[]',
    index.origin,
    index.updatedAt,
  )
  db.run('DELETE FROM tombstones WHERE tenant = ? AND thread = ?', task.tenant, task.thread)
  return row?.['id'] as number
}
