import type { TenantId } from '../../core/ids.js'
import { DUE, type Head, PROGRAM_LABEL } from '../../log/contract.js'
import type { LogStore } from '../../log/log-store.js'

/** How much is waiting for a worker, and for how long. */
export interface QueueAge {
  /** Threads that are due and that nobody holds. */
  readonly due: number
  /** There are more than were counted. */
  readonly more: boolean
  /** How long the oldest of them has been due, in milliseconds; 0 if there are none. */
  readonly oldestMs: number
}

const PAGE = 200
const MOST_PAGES = 10

/**
 * Looks at what is due for some programs, or for all. Exact for the oldest as long as it is among the first 2,000 by
 * their last change: pages are read until no later one can hold anything older.
 */
export async function measureQueue(
  logs: Pick<LogStore, 'list' | 'clock'>,
  { programs, tenant }: { readonly programs?: readonly string[] | undefined; readonly tenant?: TenantId | undefined },
): Promise<QueueAge> {
  const names: readonly (string | undefined)[] = programs ?? [undefined]
  const parts = await Promise.all([...new Set(names)].map((program) => measure(logs, program, tenant)))
  return {
    due: parts.reduce((sum, { due }) => sum + due, 0),
    more: parts.some(({ more }) => more),
    oldestMs: Math.max(0, ...parts.map(({ oldestMs }) => oldestMs)),
  }
}

async function measure(
  logs: Pick<LogStore, 'list' | 'clock'>,
  program: string | undefined,
  tenant: TenantId | undefined,
): Promise<QueueAge> {
  let since = Number.POSITIVE_INFINITY
  let due = 0
  let cursor: string | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const found = await logs.list({
      wakeBefore: logs.clock.canBeWrong ? 'now' : logs.clock.now(),
      lease: 'free',
      order: 'updated',
      direction: 'asc',
      limit: PAGE,
      ...(program === undefined ? {} : { metadata: { [PROGRAM_LABEL]: program } }),
      ...(tenant === undefined ? {} : { tenant }),
      ...(cursor === undefined ? {} : { cursor }),
    })
    since = found.heads.reduce((first, head) => Math.min(first, dueSince(head)), since)
    due += found.heads.length
    cursor = found.cursor
    // No thread has been due for longer than since its last change.
    if (cursor === undefined || (found.heads.at(-1)?.index.updatedAt ?? 0) >= since) break
  }
  const oldestMs = Number.isFinite(since) ? Math.max(0, logs.clock.now() - since) : 0
  return { due, more: cursor !== undefined, oldestMs }
}

/** Since when a thread has been due. One that is marked as due has been since that was written. */
export function dueSince({ index: { wakeAt, updatedAt } }: Head): number {
  return wakeAt === null || wakeAt === DUE ? updatedAt : wakeAt
}
