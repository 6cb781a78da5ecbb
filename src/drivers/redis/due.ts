import type { BranchId, TenantId, ThreadId } from '../../core/ids.js'
import { DUE, type DuePage, type DueQuery, type Head, type LogKey, PROGRAM_LABEL } from '../../log/contract.js'
import type { Reply } from './client.js'
import { readHeadRow } from './generations.js'
import { readHeads } from './heads.js'
import { fromBytes, readIndex } from './index-walk.js'
import { reindexLog } from './logs.js'
import { escapeControls } from './rows.js'
import { checkLost, type Store } from './store.js'

const TIME_DIGITS = 16
const AT_ONCE = 500

/** What is due of some programs, reserved for who asks: one script, on a cluster one for each bucket. */
export async function takeDue(store: Store, query: DueQuery): Promise<DuePage> {
  const { keys, scripts, connection, marker } = store
  const { tenant = '', now, limit, reserveMs } = query
  const programs = [...new Set(query.programs)].map(escapeControls)
  const buckets = keys.buckets.map((_, bucket) => keys.index(bucket))
  const isCluster = connection.client.isCluster ?? false
  // A little of each, since threads lie evenly in them; what one has more of comes with the next call.
  const most = isCluster ? limit : 1 + 2 * Math.ceil(limit / buckets.length)
  const pages: DuePage[] = []
  // One after the other on a cluster: what is taken is reserved, so no more may be taken than was asked for.
  const groups = isCluster ? shuffled(buckets).map((bucket) => [bucket]) : [buckets]
  let left = limit
  for (const group of groups) {
    if (left <= 0) return merge([...pages, { heads: [], more: true, nextMs: null }])
    const asked = now === 'now' ? '' : String(now)
    const args = [marker, asked, String(left), String(reserveMs), tenant, String(most), ...programs]
    const reply = await connection.write({ script: scripts['take-due'], keys: group, args })
    const page = readPage(store, checkLost(store, reply) as readonly Reply[])
    left -= page.heads.length
    pages.push(page)
  }
  return merge(pages)
}

function readPage(store: Store, [more, nextMs, ...found]: readonly Reply[]): DuePage {
  const heads: Head[] = []
  for (let i = 0; i < found.length; i += 2) {
    const row = found[i + 1] as readonly Reply[] | null
    if (row) heads.push(readHeadRow(store, logOf(String(found[i])), row))
  }
  return { heads, more: more === 1, nextMs: nextMs === '' ? null : Math.max(0, Number(nextMs)) }
}

function sinceOf({ index: { wakeAt, updatedAt } }: Head): number {
  return wakeAt === null || wakeAt === DUE ? updatedAt : wakeAt
}

function merge(pages: readonly DuePage[]): DuePage {
  const times = pages.flatMap(({ nextMs }) => (nextMs === null ? [] : [nextMs]))
  return {
    heads: pages.flatMap(({ heads }) => heads).sort((a, b) => sinceOf(a) - sinceOf(b)),
    more: pages.some(({ more }) => more),
    nextMs: times.length === 0 ? null : Math.min(...times),
  }
}

/**
 * Gives logs that an older version wrote their rows in the index of what is due by program. Others may write meanwhile:
 * whatever this version writes has them by itself.
 */
export async function indexDue(store: Store): Promise<void> {
  const positions = await readIndex(store, { prefixes: ['w\0'], namesTenant: true, order: 'none' })
  const logs = positions.map((position) => logOf(fromBytes(position.slice(TIME_DIGITS + 1))))
  for (let i = 0; i < logs.length; i += AT_ONCE) {
    const heads = await readHeads(store, logs.slice(i, i + AT_ONCE))
    const lacking = heads.filter((head) => head?.index.metadata[PROGRAM_LABEL] !== undefined) as Head[]
    await Promise.all(lacking.map((head) => reindexLog(store, head.log, head, head.index)))
  }
}

function logOf(name: string): LogKey {
  const [tenant, thread, branch] = name.split('\0')
  return { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId }
}

// Not always from the same end: those in the last ones would wait for ever where work never runs out.
function shuffled<Item>(items: readonly Item[]): Item[] {
  const start = Math.floor(Math.random() * items.length)
  return [...items.slice(start), ...items.slice(0, start)]
}
