import type { BranchId, TenantId, ThreadId } from '../../../core/ids.js'
import { inDueOrder } from '../../../core/due-order.js'
import {
  DUE,
  type DuePage,
  type DueQuery,
  type Head,
  type LogKey,
  PRIORITY_LABEL,
  PROGRAM_LABEL,
} from '../../../log/contract.js'
import type { Reply } from '../client.js'
import { readHeadRow } from '../server/generations.js'
import { readHeads } from './heads.js'
import { fromBytes, readIndex } from './index-walk.js'
import { reindexLog } from '../logs.js'
import { escapeControls } from '../rows/rows.js'
import { checkLost, type Store } from '../store.js'

const TIME_DIGITS = 16
const AT_ONCE = 500

/** What is due of some programs, reserved for who asks: one script, which on a cluster can't see all buckets. */
export async function takeDue(store: Store, query: DueQuery): Promise<DuePage> {
  const { keys, connection } = store
  const buckets = keys.buckets.map((_, bucket) => keys.index(bucket))
  // A little of each, since threads lie evenly in them; what one has more of comes with the next call.
  const most = 1 + 2 * Math.ceil(query.limit / buckets.length)
  if (connection.client.isCluster ?? false) return takeFromEach(store, query, buckets, most)
  return look(store, query, buckets, most, String(query.reserveMs))
}

/** Looks into all buckets, then reserves those whose turn it is where they lie. Another may have been faster with some. */
async function takeFromEach(store: Store, query: DueQuery, buckets: readonly string[], most: number): Promise<DuePage> {
  const { keys, scripts, connection, marker } = store
  const pages = await Promise.all(buckets.map((bucket) => look(store, query, [bucket], most, '')))
  const found = merge(pages, query.after ?? '')
  const wanted = found.heads.slice(0, query.limit)
  const byBucket = new Map<string, Head[]>()
  for (const head of wanted) {
    const index = keys.index(keys.bucketOf(head.log.tenant, head.log.thread))
    byBucket.set(index, [...(byBucket.get(index) ?? []), head])
  }
  const taken = new Set<Head>()
  await Promise.all(
    [...byBucket].map(async ([index, heads]) => {
      const names = heads.flatMap(({ log, seq }) => [`${log.tenant}\0${log.thread}\0${log.branch}`, String(seq)])
      const args = [marker, String(query.reserveMs), ...names]
      const reply = await connection.write({ script: scripts['reserve-due'], keys: [index], args })
      for (const [i, isTaken] of (checkLost(store, reply) as readonly Reply[]).entries()) {
        if (isTaken === 1) taken.add(heads[i] as Head)
      }
    }),
  )
  const more = found.more || found.heads.length > taken.size
  return { heads: wanted.filter((head) => taken.has(head)), more, nextMs: found.nextMs }
}

async function look(
  store: Store,
  query: DueQuery,
  indexes: readonly string[],
  most: number,
  reserveMs: string,
): Promise<DuePage> {
  const { scripts, connection, marker } = store
  const { tenant = '', now, limit, after = '', except = [], warm } = query
  const programs = [...new Set(query.programs)].map(escapeControls)
  const passed = except.map(({ program, tenant: owner, key }) =>
    [escapeControls(program), owner, ...(key === undefined ? [] : [escapeControls(key)])].join('\0'),
  )
  const asked = now === 'now' ? '' : String(now)
  const counted = [String(limit), reserveMs, tenant, String(most), after, String(programs.length)]
  const preferred = warm === undefined ? ['', '0'] : [warm.owner, String(warm.ms)]
  const args = [marker, asked, ...counted, ...preferred, ...programs, ...passed]
  const reply = await connection.write({ script: scripts['take-due'], keys: indexes, args })
  return readPage(store, checkLost(store, reply) as readonly Reply[])
}

function readPage(store: Store, [more, nextMs, ...found]: readonly Reply[]): DuePage {
  const heads: Head[] = []
  for (let i = 0; i < found.length; i += 2) {
    const row = found[i + 1] as readonly Reply[] | null
    if (row) heads.push(readHeadRow(store, logOf(String(found[i])), row))
  }
  return { heads, more: more === 1, nextMs: nextMs === '' ? null : Math.max(0, Number(nextMs)) }
}

function merge(pages: readonly DuePage[], after: string): DuePage {
  const times = pages.flatMap(({ nextMs }) => (nextMs === null ? [] : [nextMs]))
  const places = pages.flatMap(({ heads }) =>
    heads.map((head) => {
      const { metadata, wakeAt, updatedAt } = head.index
      const since = wakeAt === null || wakeAt === DUE ? updatedAt : wakeAt
      return { head, tenant: head.log.tenant, priority: Number(metadata[PRIORITY_LABEL] ?? 0), since }
    }),
  )
  return {
    heads: inDueOrder(places, after).map(({ head }) => head),
    more: pages.some(({ more }) => more),
    nextMs: times.length === 0 ? null : Math.min(...times),
  }
}

/**
 * Gives logs that an older version wrote their rows in the index of what is due by program. Others may write in the
 * meantime: whatever this version writes has them by itself.
 */
export async function indexDue(store: Store): Promise<void> {
  const positions = await readIndex(store, { ranges: [{ prefix: 'w\0' }], namesTenant: true, order: 'none' })
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
