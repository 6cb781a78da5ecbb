import type { TenantId, ThreadId } from '../../core/ids.js'
import type { EraseRequest, Expect, LogKey, Tombstone } from '../../log/contract.js'
import type { NamedTombstone } from '../../log/copy-contract.js'
import type { IndexTask, Labels } from './parcel/append-parcel.js'
import type { Connection } from './connection/connection.js'
import type { Row } from './connection/engine.js'
import type { Instant } from './rows/lease.js'
import { compareLog, findLog, leaseEnd, replaceLabels, updateLog } from './rows/log-row.js'

export function renewLease(
  db: Connection,
  log: LogKey,
  incarnation: string,
  epoch: number,
  ms: number,
  now: () => Instant,
): boolean {
  return db.write(() => {
    const row = findLog(db, log)
    if (row?.['incarnation'] !== incarnation || row['lease_owner'] === null || row['epoch'] !== epoch) return false
    const lease = leaseEnd(ms, now())
    const found = {
      id: row['id'] as number,
      asExpected: true,
      same: { boot: row['lease_boot'] === lease.boot, status: true, createdAt: true, expiresAt: true, wakeAt: true },
    }
    updateLog(db, found, { lease })
    return true
  })
}

export interface StandIn {
  readonly hash: string
  readonly header: Uint8Array
  readonly body: Uint8Array
}

export function pruneLog(
  db: Connection,
  log: LogKey,
  incarnation: string,
  seq: number,
  standIn: StandIn | null,
): number | 'conflict' {
  return db.write(() => {
    const row = findLog(db, log)
    if (row?.['incarnation'] !== incarnation) return 'conflict'
    if (seq <= (row['base_seq'] as number)) return 0
    const id = row['id'] as number
    const base = db.get('SELECT keyframe, lower(hex(hash)) AS hash FROM entries WHERE log = ? AND seq = ?', id, seq)
    if (standIn === null ? base?.['keyframe'] !== seq : base?.['hash'] !== standIn.hash) return 'conflict'
    if (standIn) {
      const { header, body } = standIn
      db.run('UPDATE entries SET keyframe = seq, header = ?, body = ? WHERE log = ? AND seq = ?', header, body, id, seq)
    }
    db.run('UPDATE logs SET base_seq = ?, base_hash = unhex(?) WHERE id = ?', seq, base?.['hash'] as string, id)
    return db.run('DELETE FROM entries WHERE log = ? AND seq < ?', id, seq)
  })
}

export function eraseLogs(db: Connection, request: EraseRequest): number | 'conflict' {
  const { tenant, thread, branch, expect, tombstone } = request
  return db.write(() => {
    const all = db.all('SELECT id, branch, incarnation, seq FROM logs WHERE tenant = ? AND thread = ?', tenant, thread)
    const logs = branch === undefined ? all : all.filter((row) => row['branch'] === branch)
    if (expect !== undefined && !areExactly(logs, expect)) return 'conflict'
    for (const { id } of logs) {
      db.run('DELETE FROM entries WHERE log = ?', id as number)
      db.run('DELETE FROM labels WHERE log = ?', id as number)
      db.run('DELETE FROM logs WHERE id = ?', id as number)
    }
    if (logs.length === all.length) leaveTombstone(db, tenant, thread, tombstone, logs.length)
    return logs.length
  })
}

function leaveTombstone(
  db: Connection,
  tenant: string,
  thread: string,
  tombstone: Tombstone | null,
  erased: number,
): void {
  if (tombstone === null) {
    db.run('DELETE FROM tombstones WHERE tenant = ? AND thread = ?', tenant, thread)
  } else if (erased > 0) {
    const { at, reason } = tombstone
    db.run(
      'INSERT OR REPLACE INTO tombstones (tenant, thread, at, reason) VALUES (?, ?, ?, ?)',
      tenant,
      thread,
      at,
      JSON.stringify(reason),
    )
  }
}

function areExactly(logs: readonly Row[], expect: NonNullable<EraseRequest['expect']>): boolean {
  if (logs.length !== expect.length) return false
  return logs.every((log) =>
    expect.some(
      ({ branch, incarnation, seq }) =>
        branch === log['branch'] && incarnation === log['incarnation'] && seq === log['seq'],
    ),
  )
}

export function readTombstone(db: Connection, tenant: string, thread: string): Tombstone | null {
  const row = db.get('SELECT at, reason FROM tombstones WHERE tenant = ? AND thread = ?', tenant, thread)
  if (row === undefined) return null
  return { at: row['at'] as number, reason: JSON.parse(row['reason'] as string) }
}

export function reindexLog(db: Connection, log: LogKey, expect: Expect, index: IndexTask, labels: Labels): boolean {
  return db.write(() => {
    const found = compareLog(db, log, expect, index, null)
    if (!found?.asExpected) return false
    updateLog(db, found, { index, labels })
    replaceLabels(db, found.id, labels, false)
    return true
  })
}

/** How many tombstones one page holds. */
const PAGE = 1000

/** A page of all tombstones, in the order of tenant and thread. `after` is where the page before ended. */
export function listTombstones(db: Connection, after: readonly [string, string] | null): NamedTombstone[] {
  const rows = db.all(
    'SELECT tenant, thread, at, reason FROM tombstones WHERE (tenant, thread) > (?, ?) ORDER BY tenant, thread LIMIT ?',
    after?.[0] ?? '',
    after?.[1] ?? '',
    PAGE,
  )
  return rows.map((row) => ({
    tenant: row['tenant'] as TenantId,
    thread: row['thread'] as ThreadId,
    at: row['at'] as number,
    reason: JSON.parse(row['reason'] as string),
  }))
}

export function bury(db: Connection, tenant: string, thread: string, tombstone: Tombstone): boolean {
  return db.write(() => {
    if (db.get('SELECT 1 FROM logs WHERE tenant = ? AND thread = ? LIMIT 1', tenant, thread)) return false
    leaveTombstone(db, tenant, thread, tombstone, 1)
    return true
  })
}

/** One step in each index per tenant, however much each has. */
export function listTenants(db: Connection): string[] {
  const next = ['logs', 'tombstones', 'blobs', 'items'].map(
    (table) => `SELECT min(tenant) AS tenant FROM ${table} WHERE tenant > ?1`,
  )
  const sql = `SELECT min(tenant) AS tenant FROM (${next.join(' UNION ALL ')})`
  return db.read(() => {
    const tenants: string[] = []
    for (let last = ''; ; ) {
      const found = db.get(sql, last)?.['tenant']
      if (typeof found !== 'string') return tenants
      tenants.push(found)
      last = found
    }
  })
}
