import { join } from 'node:path'
import type { Head, Lease, LogKey } from '../../../log/contract.js'
import { writeTemporary } from './chain.js'
import { hasCode } from '../disk/disk.js'
import { copyIndex } from './head-row.js'
import { findLog, writeRecord } from './logs.js'
import type { HeadRow } from './record.js'
import { attempts, type FileStore, type LogState, logName } from '../store.js'

/** A renewal. It counts while its epoch is the log's and no later record changed the lease. */
interface Renewal {
  readonly bootId: string
  readonly ends: number
  readonly ms: number
  /** The newest record when it was written. */
  readonly after: number
}

/** The head of a log, with the lease as it runs now. */
export async function headOf(store: FileStore, state: LogState): Promise<Head> {
  // The row first: it is what the renewal is compared with, and must not change in between.
  const { row, log } = state.newest.record
  const { incarnation, seq, hash, epoch, base, index, applied } = row
  return {
    log: { ...log },
    incarnation,
    seq,
    hash,
    epoch,
    base: { seq: base.seq, hash: base.hash },
    lease: await leaseOf(store, state.folder, row),
    index: copyIndex(index),
    ...(applied === undefined ? {} : { applied }),
  }
}

/** The lease that runs now, by the clock of this boot. */
async function leaseOf(store: FileStore, folder: string, row: HeadRow): Promise<Lease | null> {
  if (row.lease === null) return null
  const renewal = await readRenewal(store, folder, row.epoch)
  const { bootId, ends, ms } = renewal !== undefined && renewal.after >= row.lease.slot ? renewal : row.lease
  const remainingMs = ends - store.clock.monotonic()
  // Times of another boot can't be compared. More left than was granted means the same where boots have no id.
  if (bootId !== store.clock.bootId || remainingMs <= 0 || remainingMs > ms) return null
  return { owner: row.lease.owner, remainingMs }
}

/**
 * A renewal is a small file next to the log, one per epoch, so that a late owner can't overwrite its successor's. It is
 * written first and the log is looked at afterwards, while a claim announces itself in the log first and looks at the
 * renewal afterwards: whatever the order, one of the two sees the other.
 */
export async function renewLease(
  store: FileStore,
  key: LogKey,
  incarnation: string,
  epoch: number,
  ms: number,
): Promise<boolean> {
  const again = attempts('the log')
  let written: string | undefined
  for (;;) {
    const state = await findLog(store, key)
    if (state === undefined) return false
    const { record } = state.newest
    const { row } = record
    if (row.incarnation !== incarnation || row.epoch !== epoch || row.lease === null) return false
    if (written !== state.folder) {
      if (await writeRenewal(store, state.folder, epoch, ms, record.slot)) written = state.folder
      else store.logs.delete(logName(key))
    } else if (record.kind !== 'intent') {
      return true
    } else if (await writeRecord(store, state, { kind: 'note', row: record.row })) {
      // The announced claim may have looked before the renewal came; this record takes the slot it needs.
      return true
    }
    await again()
  }
}

/** Announces a claim in the log, so that a renewal that comes after this either is seen or stops it. */
export function announceClaim(store: FileStore, state: LogState): Promise<boolean> {
  return writeRecord(store, state, { kind: 'intent', row: state.newest.record.row })
}

/** Removes the renewal of an epoch that is over. */
export async function forgetRenewal(store: FileStore, folder: string, epoch: number): Promise<void> {
  if (epoch > 0) await store.disk.remove(renewalPath(folder, epoch)).catch(() => undefined)
}

function renewalPath(folder: string, epoch: number): string {
  return join(folder, `lease-${epoch}.json`)
}

// Not flushed: after a crash of the system no lease of that boot counts.
async function writeRenewal(
  store: FileStore,
  folder: string,
  epoch: number,
  ms: number,
  after: number,
): Promise<boolean> {
  const { disk, clock } = store
  const renewal: Renewal = { bootId: clock.bootId, ends: clock.monotonic() + ms, ms, after }
  const temporary = disk.temporary()
  await writeTemporary(disk, temporary, Buffer.from(JSON.stringify(renewal)), { flush: false })
  try {
    await disk.rename(temporary, renewalPath(folder, epoch))
    return true
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

async function readRenewal(store: FileStore, folder: string, epoch: number): Promise<Renewal | undefined> {
  const bytes = await store.disk.read(renewalPath(folder, epoch))
  if (bytes === undefined) return undefined
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    // Torn by a crash of the system, which ended the lease.
    return undefined
  }
}
