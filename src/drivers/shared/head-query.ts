import type { Head, HeadPage, HeadQuery, LogKey } from '../../log/contract.js'
import { cursorAfter, parseCursor, sortValue } from './cursor.js'
import { takeSmallest } from './take-smallest.js'

/**
 * One page of the heads that a driver walks through, for drivers without an index of their own. The order is
 * 'created' unless asked otherwise. Memory stays within a few pages, however many heads there are.
 */
export function selectHeads(heads: Iterable<Head>, asked: HeadQuery, now: number): HeadPage {
  const query = asked.wakeBefore === 'now' ? { ...asked, wakeBefore: now } : asked
  const sign = query.direction === 'asc' ? 1 : -1
  const after = query.cursor === undefined ? undefined : parseCursor(query.cursor)
  // One more than the page tells whether another page follows.
  const best = takeSmallest(candidates(), query.limit + 1, (a, b) => compare(a, sortValue(b, query), b.log))
  const page = best.slice(0, query.limit)
  const last = page.at(-1)
  if (best.length <= query.limit || last === undefined) return { heads: page }
  return { heads: page, cursor: cursorAfter(last, query) }

  function* candidates(): Generator<Head> {
    for (const head of heads) {
      if (!matchesQuery(head, query)) continue
      if (after === undefined || compare(head, after.value, after.log) > 0) yield head
    }
  }

  // The direction turns the tie-break around as well, so that 'asc' is exactly 'desc' read backwards.
  function compare(head: Head, value: number, log: LogKey): number {
    return sign * (sortValue(head, query) - value || compareLogs(head.log, log))
  }
}

/** Whether a head fits every filter of the query. Cursor, order and limit play no part. */
export function matchesQuery(head: Head, query: HeadQuery): boolean {
  const { log, index } = head
  if (query.tenant !== undefined && log.tenant !== query.tenant) return false
  if (query.thread !== undefined && log.thread !== query.thread) return false
  if (query.parts?.some((part) => !hasPart(log.thread, part))) return false
  if (query.branch !== undefined && log.branch !== query.branch) return false
  if (query.status !== undefined && !query.status.includes(index.status)) return false
  if (query.tags?.some((tag) => !index.tags.includes(tag))) return false
  if (query.metadata !== undefined && !hasMetadata(index.metadata, query.metadata)) return false
  if (query.updatedBefore !== undefined && index.updatedAt >= query.updatedBefore) return false
  if (query.updatedAfter !== undefined && index.updatedAt <= query.updatedAfter) return false
  if (query.wakeBefore !== undefined && !isDue(index.wakeAt, query.wakeBefore)) return false
  if (query.expiresBefore !== undefined && !isDue(index.expiresAt, query.expiresBefore)) return false
  if (query.lease !== undefined && (head.lease === null) !== (query.lease === 'free')) return false
  return true
}

/** Whether a structured id has this part. Separators are escaped inside of parts, so none is found across two. */
function hasPart(thread: string, part: string): boolean {
  return thread.startsWith('{') && `,${thread.slice(1, -1)},`.includes(`,${part},`)
}

// Own properties only: a filter on 'constructor' must not find every object.
function hasMetadata(actual: Head['index']['metadata'], wanted: Head['index']['metadata']): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(actual, key) && actual[key] === value)
}

function isDue(time: number | null, limit: number | 'now'): boolean {
  // Whoever leaves 'now' in a query had the store itself compare.
  return time !== null && (limit === 'now' || time <= limit)
}

/** By tenant, thread and branch, by code unit. */
function compareLogs(a: LogKey, b: LogKey): number {
  return compareText(a.tenant, b.tenant) || compareText(a.thread, b.thread) || compareText(a.branch, b.branch)
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}
