import { CorruptError } from '../../../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../../../core/ids.js'
import { nameLog } from '../../../core/log-name.js'
import type { Head, IndexFields, LogKey, Origin } from '../../../log/contract.js'
import { fromText } from './text-form.js'
import { metadataFromText } from '../../shared/metadata-text.js'

/** What `head_json` writes (migrations/0002-head.sql). */
interface HeadJson {
  readonly tenant: TenantId
  readonly thread: ThreadId
  readonly branch: BranchId
  readonly incarnation: string
  readonly seq: number
  readonly hash: string
  readonly epoch: number
  readonly baseSeq: number
  readonly baseHash: string
  readonly owner: string | null
  readonly remaining: number | null
  readonly status: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number | null
  readonly wakeAt: number | null
  readonly tags: string
  readonly metadata: string
  readonly originBranch: BranchId | null
  readonly originIncarnation: string | null
  readonly originSeq: number | null
  readonly originHash: string | null
}

export function parseHead(json: string): Head {
  const row = JSON.parse(json) as HeadJson
  const { tenant, thread, branch } = row
  const log = { tenant, thread, branch }
  try {
    return readRow(log, row)
  } catch (cause) {
    throw new CorruptError(`The head of ${nameLog(log)} can't be read.`, { log, reason: 'head' }, cause)
  }
}

function readRow(log: LogKey, row: HeadJson): Head {
  const { owner, remaining } = row
  return {
    log,
    incarnation: fromText(row.incarnation),
    seq: row.seq,
    hash: row.hash,
    epoch: row.epoch,
    base: { seq: row.baseSeq, hash: row.baseHash },
    lease: owner !== null && remaining !== null ? { owner: fromText(owner), remainingMs: remaining } : null,
    index: {
      status: fromText(row.status),
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      expiresAt: row.expiresAt,
      wakeAt: row.wakeAt,
      tags: JSON.parse(row.tags) as IndexFields['tags'],
      metadata: metadataFromText(row.metadata),
      origin: readOrigin(row),
    },
  }
}

function readOrigin({ originBranch, originIncarnation, originSeq, originHash }: HeadJson): Origin | null {
  if (originBranch === null || originIncarnation === null || originSeq === null || originHash === null) return null
  return { branch: originBranch, incarnation: fromText(originIncarnation), seq: originSeq, hash: originHash }
}
