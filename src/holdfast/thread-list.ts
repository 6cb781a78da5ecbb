import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import {
  type BranchId,
  encodeParts,
  MAX_ID_BYTES,
  parseBranchId,
  parseThreadId,
  type TenantId,
  type ThreadId,
  threadIdInput,
  type ThreadIdInput,
} from '../core/ids.js'
import { DUE, type Head, type HeadQuery, type MetadataValue } from '../log/contract.js'
import { formatCheckpointId } from '../log/entry/checkpoint-id.js'
import type { RecordedError } from '../runtime/errors.js'
import { PARENT } from '../runtime/run/state/labels.js'

/** What `threads` filters by. */
export interface ThreadQuery {
  readonly thread?: ThreadIdInput
  /** Only threads whose ids have these parts, among others: `{ user: 'user-42' }` finds all sessions of that user. */
  readonly parts?: Readonly<Record<string, string>>
  readonly branch?: string
  /** Only threads that runs of this one started with `ctx.run`. */
  readonly parent?: ThreadIdInput
  readonly status?: string | readonly string[]
  readonly tags?: readonly string[]
  readonly metadata?: Readonly<Record<string, MetadataValue>>
  readonly updatedBefore?: Date
  readonly updatedAfter?: Date
  /** Only those that a worker holds now, or only those that none holds, by the store's clock. */
  readonly lease?: 'free' | 'held'
  /** Only those that are waiting for a worker now, by the store's clock. */
  readonly due?: true
  /** Also return why failed threads failed, for which the newest entries of each are read. */
  readonly errors?: boolean
  readonly order?: 'created' | 'updated'
  readonly direction?: 'asc' | 'desc'
  /** Default 100. */
  readonly limit?: number
  readonly cursor?: string
}

const QUERY: OptionNames<ThreadQuery> = {
  thread: true,
  parts: true,
  branch: true,
  parent: true,
  status: true,
  tags: true,
  metadata: true,
  updatedBefore: true,
  updatedAfter: true,
  lease: true,
  due: true,
  errors: true,
  order: true,
  direction: true,
  limit: true,
  cursor: true,
}

/** One branch of a thread, as the index shows it. */
export interface ThreadSummary {
  /** As it was given when the thread was created. */
  readonly thread: ThreadIdInput
  readonly branch: string
  /** The thread whose run started this one with `ctx.run`. */
  readonly parent?: ThreadIdInput
  readonly status: string
  /** How many entries are kept: what was pruned or archived is not counted. */
  readonly entries: number
  /** Why its run failed or is no longer compatible with its program, if requested. */
  readonly error?: RecordedError
  /** The checkpoint id of its newest entry. */
  readonly checkpoint: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly expiresAt: Date | null
  readonly wakeAt: Date | null
  readonly tags: readonly string[]
  readonly metadata: Readonly<Record<string, MetadataValue>>
  readonly claimedBy: string | null
  /** How long it stays claimed without another heartbeat, in milliseconds by the store's clock. */
  readonly leaseMs: number | null
}

/** One page of the thread index. */
export interface ThreadPage {
  readonly threads: readonly ThreadSummary[]
  /** Present when more may follow. */
  readonly cursor?: string
}

/**
 * What is looked for, as a driver looks for it. `owner` is whose query it is, for messages: a misspelled filter would
 * find every thread.
 */
export function headQuery(owner: string, tenant: TenantId, query: ThreadQuery): HeadQuery {
  checkOptionNames(owner, query, QUERY)
  const { thread, parts, branch, status, updatedBefore, updatedAfter, due, limit = 100, errors: _, ...others } = query
  const { parent, metadata, ...rest } = others
  const labels = { ...metadata, ...(parent === undefined ? {} : { [PARENT]: parseThreadId(parent) }) }
  return {
    ...rest,
    tenant,
    limit,
    ...(thread === undefined ? {} : { thread: parseThreadId(thread) }),
    ...(metadata === undefined && parent === undefined ? {} : { metadata: labels }),
    ...(parts === undefined ? {} : { parts: partsOf(parts) }),
    ...(branch === undefined ? {} : { branch: parseBranchId(branch) as BranchId }),
    ...(status === undefined ? {} : { status: typeof status === 'string' ? [status] : status }),
    ...(updatedBefore === undefined ? {} : { updatedBefore: time('updatedBefore', updatedBefore) }),
    ...(updatedAfter === undefined ? {} : { updatedAfter: time('updatedAfter', updatedAfter) }),
    ...(due ? { wakeBefore: 'now' } : {}),
  }
}

function partsOf(parts: Readonly<Record<string, string>>): readonly string[] {
  return encodeParts('parts', parts, MAX_ID_BYTES).slice(1, -1).split(',')
}

/** A thread as people are shown it. */
export function summarize({ log, seq, hash, base, index, lease }: Head): ThreadSummary {
  const { [PARENT]: parent } = index.metadata
  return {
    thread: threadIdInput(log.thread),
    branch: log.branch,
    ...(typeof parent === 'string' ? { parent: threadIdInput(parent as ThreadId) } : {}),
    status: index.status,
    entries: seq - base.seq + 1,
    checkpoint: formatCheckpointId(log.branch, seq, hash),
    createdAt: new Date(index.createdAt),
    updatedAt: new Date(index.updatedAt),
    expiresAt: index.expiresAt === null ? null : new Date(index.expiresAt),
    // What is due is so since it was written.
    wakeAt: index.wakeAt === null ? null : new Date(index.wakeAt === DUE ? index.updatedAt : index.wakeAt),
    tags: index.tags,
    metadata: index.metadata,
    claimedBy: lease?.owner ?? null,
    leaseMs: lease?.remainingMs ?? null,
  }
}

function time(field: string, date: Date): number {
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) {
    throw new InvalidOptionError(field, 'is not a valid Date', 'Pass a Date.')
  }
  return date.getTime()
}
