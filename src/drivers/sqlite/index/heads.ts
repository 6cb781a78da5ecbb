import type { HeadQuery } from '../../../log/contract.js'
import type { CursorPosition } from '../../shared/cursor.js'
import { type LabelRow, metadataRow, tagRow } from '../parcel/append-parcel.js'
import type { Connection } from '../connection/connection.js'
import type { SqlValue } from '../connection/engine.js'
import { HEAD_COLUMNS, type PackedHead, packHead } from '../rows/head-row.js'
import { type Instant, LEASE_RUNS, leaseRunsValues } from '../rows/lease.js'

/** A query of the index without its page: that is given as a position and a count. */
export interface HeadsTask {
  readonly query: Omit<HeadQuery, 'limit' | 'cursor'>
  readonly after: CursorPosition | null
  readonly limit: number
}

export function findHeads(db: Connection, task: HeadsTask, now: Instant): PackedHead[] {
  const { sql, values } = buildHeadsQuery(task, now)
  return db.all(sql, ...values).map((row) => packHead(row, now))
}

/**
 * The SQL of a query. Its text depends on which filters there are; what they ask for is always bound. The index to
 * begin with is named, because without statistics SQLite may walk 100,000 idle threads in the order asked for when
 * an index would have led to the three that are due.
 */
export function buildHeadsQuery(task: HeadsTask, now: Instant): { readonly sql: string; readonly values: SqlValue[] } {
  const { query, after, limit } = task
  const times = query.order === 'updated' ? ['updated_minute', 'updated_at'] : ['created_at']
  const time = times.at(-1) as 'updated_at' | 'created_at'
  const direction = query.direction === 'asc' ? 'ASC' : 'DESC'
  const labels = labelsWanted(query)
  // A thread has few branches, and a label may be on every log there is.
  const byLabel = labels.length > 0 && !isNamed(query)
  const where: string[] = []
  const values: SqlValue[] = []
  const need = (condition: string, ...bound: SqlValue[]): void => {
    where.push(condition)
    values.push(...bound)
  }

  for (const [i, { name, value }] of labels.entries()) {
    if (i === 0 && byLabel) need('first_label.name = ? AND first_label.value = ?', name, value)
    else if (!byLabel) need(`EXISTS (${HAS_LABEL})`, name, value)
    else need('id IN (SELECT log FROM labels WHERE name = ? AND value = ?)', name, value)
  }
  if (query.tenant !== undefined) need('tenant = ?', query.tenant)
  if (query.thread !== undefined) need('thread = ?', query.thread)
  for (const part of query.parts ?? []) need(HAS_PART, `,${part},`)
  if (query.branch !== undefined) need('branch = ?', query.branch)
  if (query.status !== undefined) need(`status IN (${query.status.map(() => '?').join(', ')})`, ...query.status)
  // The index is on minutes (see migrations/0005-update-by-minute.ts), so a time is compared with both.
  const { updatedBefore, updatedAfter } = query
  if (updatedBefore !== undefined)
    need(`updated_at < ? AND updated_minute <= ${MINUTE_OF}`, updatedBefore, updatedBefore)
  if (updatedAfter !== undefined) need(`updated_at > ? AND updated_minute >= ${MINUTE_OF}`, updatedAfter, updatedAfter)
  if (query.wakeBefore !== undefined) need('wake_at <= ?', query.wakeBefore === 'now' ? now.wall : query.wakeBefore)
  if (query.expiresBefore !== undefined) need('expires_at <= ?', query.expiresBefore)
  if (query.lease === 'held') need(LEASE_RUNS, ...leaseRunsValues(now))
  // A lease that was never granted has no columns to compare: NULL is not true, and not false either.
  if (query.lease === 'free') need(`${LEASE_RUNS} IS NOT TRUE`, ...leaseRunsValues(now))
  if (after !== null) {
    const { value, log } = after
    const sign = direction === 'ASC' ? '>' : '<'
    // The first condition says no more than the second, but lets an index skip the pages before.
    need(query.order === 'updated' ? `updated_minute ${sign}= ${MINUTE_OF}` : `created_at ${sign}= ?`, value)
    need(`(${time}, tenant, thread, branch) ${sign} (?, ?, ?, ?)`, value, log.tenant, log.thread, log.branch)
  }

  const sql = [
    `SELECT ${HEAD_COLUMNS} FROM ${byLabel ? LABELLED : `logs${indexHint(query, time)}`}`,
    where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`,
    `ORDER BY ${[...times, 'tenant', 'thread', 'branch'].map((column) => `${column} ${direction}`).join(', ')}`,
    'LIMIT ?',
  ].join(' ')
  return { sql, values: [...values, limit] }
}

const MINUTE_OF = 'CAST(? / 60000.0 AS INTEGER)'

// CROSS JOIN keeps SQLite from turning the two around.
const LABELLED = 'labels AS first_label CROSS JOIN logs ON logs.id = first_label.log'

const HAS_PART = "(substr(thread, 1, 1) = '{' AND instr(',' || substr(thread, 2, length(thread) - 2) || ',', ?) > 0)"

const HAS_LABEL = 'SELECT 1 FROM labels WHERE labels.log = logs.id AND labels.name = ? AND labels.value = ?'

function isNamed({ tenant, thread }: HeadsTask['query']): boolean {
  return tenant !== undefined && thread !== undefined
}

function labelsWanted(query: HeadsTask['query']): LabelRow[] {
  const metadata = Object.entries(query.metadata ?? {}).map(([key, value]) => metadataRow(key, value))
  return [...(query.tags ?? []).map(tagRow), ...metadata]
}

/** The narrowest first: a name, then what few logs have, then the order that is asked for. */
function indexHint(query: HeadsTask['query'], time: 'created_at' | 'updated_at'): string {
  if (isNamed(query)) return ' INDEXED BY logs_name'
  if (query.lease === 'held') return ' INDEXED BY logs_leased'
  if (query.wakeBefore !== undefined) return ' INDEXED BY logs_wake'
  if (query.expiresBefore !== undefined) return ' INDEXED BY logs_expiry'
  if (query.status !== undefined && query.status.length > 0) return ' INDEXED BY logs_status'
  if (query.tenant !== undefined) {
    return ` INDEXED BY ${time === 'updated_at' ? 'logs_tenant_updated' : 'logs_tenant_created'}`
  }
  return time === 'created_at' ? ' INDEXED BY logs_created' : ''
}
