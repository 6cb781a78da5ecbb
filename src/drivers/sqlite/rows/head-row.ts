import { CorruptError } from '../../../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../../../core/ids.js'
import { nameLog } from '../../../core/log-name.js'
import type { Head, LogKey } from '../../../log/contract.js'
import type { Row } from '../connection/engine.js'
import { type Instant, leaseLeft } from './lease.js'
import { metadataFromText } from '../../shared/metadata-text.js'

/** What is read of the table `logs` to make a Head, and of a lease to know whether it runs. */
export const HEAD_COLUMNS = `tenant, thread, branch, incarnation, seq, lower(hex(hash)) AS hash, epoch, base_seq,
  lower(hex(base_hash)) AS base_hash, lease_owner, lease_boot, lease_until, lease_ms, status, created_at, updated_at,
  expires_at, wake_at, tags, metadata, origin`

/** A head on its way from the worker: JSON is parsed on the other side, off the thread that commits. */
export interface PackedHead {
  readonly tenant: string
  readonly thread: string
  readonly branch: string
  readonly incarnation: string
  readonly seq: number
  readonly hash: string
  readonly epoch: number
  readonly baseSeq: number
  readonly baseHash: string
  readonly owner: string | null
  readonly remainingMs: number
  readonly status: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number | null
  readonly wakeAt: number | null
  readonly tags: string
  readonly metadata: string
  readonly origin: string
}

export function packHead(row: Row, now: Instant): PackedHead {
  const remainingMs = leaseLeft(row, now)
  return {
    tenant: row['tenant'] as string,
    thread: row['thread'] as string,
    branch: row['branch'] as string,
    incarnation: row['incarnation'] as string,
    seq: row['seq'] as number,
    hash: row['hash'] as string,
    epoch: row['epoch'] as number,
    baseSeq: row['base_seq'] as number,
    baseHash: row['base_hash'] as string,
    owner: remainingMs > 0 ? (row['lease_owner'] as string) : null,
    remainingMs,
    status: row['status'] as string,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
    expiresAt: row['expires_at'] as number | null,
    wakeAt: row['wake_at'] as number | null,
    tags: row['tags'] as string,
    metadata: row['metadata'] as string,
    origin: row['origin'] as string,
  }
}

export function unpackHead(packed: PackedHead): Head {
  const { tenant, thread, branch } = packed
  const log = { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId }
  try {
    return unpackRow(log, packed)
  } catch (cause) {
    throw new CorruptError(`The head of ${nameLog(log)} can't be read.`, { log, reason: 'head' }, cause)
  }
}

function unpackRow(log: LogKey, packed: PackedHead): Head {
  return {
    log,
    incarnation: packed.incarnation,
    seq: packed.seq,
    hash: packed.hash,
    epoch: packed.epoch,
    base: { seq: packed.baseSeq, hash: packed.baseHash },
    lease: packed.owner === null ? null : { owner: JSON.parse(packed.owner), remainingMs: packed.remainingMs },
    index: {
      status: packed.status,
      createdAt: packed.createdAt,
      updatedAt: packed.updatedAt,
      expiresAt: packed.expiresAt,
      wakeAt: packed.wakeAt,
      tags: JSON.parse(packed.tags),
      metadata: metadataFromText(packed.metadata),
      origin: JSON.parse(packed.origin),
    },
  }
}
