import { InvalidOptionError } from '../../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../../core/ids.js'
import type { Head, HeadQuery, LogKey } from '../../log/contract.js'

/** The last head of a page: its place in the order, and its name to break ties. */
export interface CursorPosition {
  readonly value: number
  readonly log: LogKey
}

/** The value a head is sorted by. */
export function sortValue(head: Head, query: HeadQuery): number {
  return query.order === 'updated' ? head.index.updatedAt : head.index.createdAt
}

/** The cursor of the page that ends with this head. */
export function cursorAfter(last: Head, query: HeadQuery): string {
  return encodeCursor({ value: sortValue(last, query), log: last.log })
}

export function encodeCursor({ value, log }: CursorPosition): string {
  return Buffer.from(JSON.stringify([value, log.tenant, log.thread, log.branch])).toString('base64url')
}

/** Refuses what `encodeCursor` did not make: a cursor comes from outside, often through a URL. */
export function parseCursor(cursor: unknown): CursorPosition {
  const parts = decode(cursor)
  if (!Array.isArray(parts) || parts.length !== 4) throw invalidCursor(cursor)
  const [value, tenant, thread, branch] = parts as unknown[]
  if (typeof value !== 'number' || !isId(tenant) || !isId(thread) || !isId(branch)) throw invalidCursor(cursor)
  return { value, log: { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId } }
}

function decode(cursor: unknown): unknown {
  // Buffer skips characters that are not base64url, so garbage around a good cursor would pass unnoticed.
  if (typeof cursor !== 'string' || !/^[A-Za-z0-9_-]+$/.test(cursor)) return undefined
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

// NUL and lone surrogates are in no id, and some servers refuse them with an error of their own.
function isId(part: unknown): boolean {
  return typeof part === 'string' && part !== '' && !/[\0\p{Cs}]/u.test(part)
}

function invalidCursor(cursor: unknown): InvalidOptionError {
  return new InvalidOptionError(
    'cursor',
    'is not one that a page returned',
    'Pass the cursor of the page before, unchanged and with the same query, or none for the first page.',
    { cursor: typeof cursor === 'string' ? cursor.slice(0, 200) : typeof cursor },
  )
}
