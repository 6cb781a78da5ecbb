import type { AppendTask, EntryTask, LeaseTask } from './parcel/append-parcel.js'
import type { Connection } from './connection/connection.js'
import { createLog } from './create-log.js'
import type { Row } from './connection/engine.js'
import { HEAD_COLUMNS, type PackedHead, packHead } from './rows/head-row.js'
import { carryItems } from './items/item-writes.js'
import type { Instant } from './rows/lease.js'
import { compareLog, type LeaseEnd, leaseEnd, NAMED, replaceLabels, updateLog } from './rows/log-row.js'

/** The id of the head row, if it landed. */
export type PackedResult =
  | number
  | { readonly status: 'conflict'; readonly head: PackedHead | null }
  | { readonly status: 'held'; readonly head: PackedHead }

const INSERT_ENTRY = 'INSERT INTO entries (log, seq, keyframe, hash, header, body) VALUES (?, ?, ?, unhex(?), ?, ?)'
const HAS_LEASE = 'SELECT 1 FROM logs WHERE id = ? AND lease_boot = ? AND lease_until > ?'

/**
 * One append, inside the transaction of its batch: compare, then head row, lease, labels, entries and the items they
 * carry. A conflict has written nothing, so it needs no rollback and does not affect the other appends of the batch.
 */
export function appendOne(db: Connection, task: AppendTask, now: Instant): PackedResult {
  const { expect, index, labels, entries } = task
  const lease = leaseAfter(task.lease, now)
  const log = compareLog(db, task, expect, index, lease === null ? null : lease.boot)
  const asExpected = log === undefined ? expect === null : log.asExpected
  if (!asExpected || !isRequirementMet(db, task)) {
    return { status: 'conflict', head: log === undefined ? null : readHead(db, task, now) }
  }
  if (log !== undefined && task.lease.kind === 'claim' && !task.lease.force && mayBeHeld(db, log.id, now)) {
    const head = readHead(db, task, now)
    if (head.remainingMs > 0) return { status: 'held', head }
  }
  const id = log === undefined ? createLog(db, task, lease) : log.id
  if (log !== undefined) {
    const { seq, hash } = entries.at(-1) as EntryTask
    updateLog(db, log, { end: { seq, hash, epoch: task.epoch }, index, labels, lease })
  }
  if (labels !== null) replaceLabels(db, id, labels, log === undefined)
  for (const { seq, keyframe, hash, header, body } of entries) {
    db.run(INSERT_ENTRY, id, seq, keyframe, hash, header, body)
  }
  carryItems(db, task.tenant, task.carried)
  return id
}

// Fetching the whole head costs as much as the rest of a claim, and most logs were released.
function mayBeHeld(db: Connection, id: number, now: Instant): boolean {
  return db.get(HAS_LEASE, id, now.bootId, now.monotonic) !== undefined
}

/** The lease that the append leaves, or null to leave it as it is. */
function leaseAfter(lease: LeaseTask, now: Instant): LeaseEnd | null {
  switch (lease.kind) {
    case 'keep':
      return null
    case 'claim':
      return { ...leaseEnd(lease.ms, now), owner: lease.owner }
    case 'extend':
      return leaseEnd(lease.ms, now)
    case 'release':
      return leaseEnd(0, now)
  }
}

function isRequirementMet(db: Connection, { tenant, thread, requires }: AppendTask): boolean {
  if (requires === null) return true
  const source = db.get(`SELECT incarnation FROM logs WHERE ${NAMED}`, tenant, thread, requires.branch)
  return source?.['incarnation'] === requires.incarnation
}

function readHead(db: Connection, { tenant, thread, branch }: AppendTask, now: Instant): PackedHead {
  return packHead(db.get(`SELECT ${HEAD_COLUMNS} FROM logs WHERE ${NAMED}`, tenant, thread, branch) as Row, now)
}
