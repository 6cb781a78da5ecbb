import type { HeadQuery } from '../../../log/contract.js'
import type { CursorPosition } from '../../shared/cursor.js'
import type { Reply } from '../client.js'
import { beforeAllTimes, escapeControls, minuteOf, sortable } from '../rows/rows.js'
import { checkLost, type Store } from '../store.js'

/**
 * Strings here hold one byte per character (latin1), because that is the order in which Redis keeps the index. A
 * position is what follows the prefix of a range: a time in its sortable form, a zero byte, and the log's name.
 */
export interface Plan {
  /** The ranges in which the wanted logs are. */
  readonly ranges: readonly Range[]
  /** Whether names in these ranges begin with the tenant; 'first': it comes before the time. */
  readonly namesTenant: boolean | 'first'
  /** How positions relate to the order of the query: the same, the same by the minute, or not at all. */
  readonly order: 'exact' | 'minute' | 'none'
}

/** A part of the index: what begins with a prefix, which ends in a zero byte, and lies between two positions. */
export interface Range {
  readonly prefix: string
  readonly from?: string
  /** 'now': the time of the server when it looks. */
  readonly to?: string
}

const MAX_CHUNK = 1000

/** Where times begin: what index rows say of an expiry lies before, see `markedExpiry`. */
export const EARLIEST = sortable(-5e16)

/** The part of the index that holds every log the query can mean, by what each version of a store has rows for. */
export function planQuery(query: HeadQuery): Plan {
  if (query.wakeBefore !== undefined) {
    const to = query.wakeBefore === 'now' ? query.wakeBefore : sortable(query.wakeBefore)
    return { ranges: [{ prefix: 'w\0', to }], namesTenant: true, order: 'none' }
  }
  if (query.expiresBefore !== undefined) {
    const ranges = [
      { prefix: 'e\0', to: sortable(beforeAllTimes(query.expiresBefore)) },
      { prefix: 'e\0', from: EARLIEST, to: sortable(query.expiresBefore) },
    ]
    return { ranges, namesTenant: true, order: 'none' }
  }
  return query.status === undefined ? planWalk(query) : planStatus(query, query.status)
}

export function planStatus(query: HeadQuery, statuses: readonly string[]): Plan {
  const kinds = [...new Set(statuses)].map((status) => `s\0${escapeControls(status)}\0`)
  return ofTenant(query, kinds, query.order === 'updated' ? 'none' : 'exact')
}

/** All logs, in the order of the query. */
export function planWalk(query: HeadQuery): Plan {
  if (query.order !== 'updated') return ofTenant(query, ['c\0'], 'exact')
  return ofTenant(query, ['u\0'], 'minute', {
    ...(query.updatedAfter !== undefined && { from: sortable(minuteOf(query.updatedAfter)) }),
    ...(query.updatedBefore !== undefined && { to: sortable(minuteOf(query.updatedBefore)) }),
  })
}

function ofTenant(
  { tenant }: HeadQuery,
  kinds: readonly string[],
  order: Plan['order'],
  bounds: Omit<Range, 'prefix'> = {},
): Plan {
  const start = tenant === undefined ? '' : `t\0${tenant}\0`
  const ranges = kinds.map((kind) => ({ prefix: toBytes(start + kind), ...bounds }))
  return { ranges, namesTenant: tenant === undefined, order }
}

/** Where a read begins: a bound as ZRANGEBYLEX takes it, without the prefix. */
interface WalkStart {
  readonly bracket: '[' | '('
  readonly position: string
}

interface BucketWalk {
  readonly bucket: number
  /** Positions that were read and not handed out yet, in the order of the walk. */
  rows: string[]
  next: WalkStart | undefined
  isDone: boolean
}

/**
 * The positions of a plan from all buckets, merged into the order of the query, in batches. Each bucket's part of a
 * batch is read in one script, so a log that changes its status in the meantime is neither missed nor met twice.
 */
export function walkIndex(
  store: Store,
  plan: Plan,
  query: HeadQuery,
  after: CursorPosition | undefined,
): AsyncGenerator<string[]> {
  const descending = query.direction !== 'asc'
  return walkRows(store, plan, { descending, limit: query.limit }, after && startAfter(plan, after, descending))
}

/** As `walkIndex`, for rows of any kind. `limit` is about how many will be wanted. */
export async function* walkRows(
  store: Store,
  plan: Plan,
  { descending, limit: wanted }: { readonly descending: boolean; readonly limit: number },
  next?: WalkStart,
): AsyncGenerator<string[]> {
  const comesBefore = (a: string, b: string): boolean => (descending ? a > b : a < b)
  const walks = store.keys.buckets.map((_, bucket): BucketWalk => ({ bucket, rows: [], next, isDone: false }))
  let chunk = Math.min(MAX_CHUNK, 2 + Math.ceil((2 * wanted) / walks.length))
  for (;;) {
    const empty = walks.filter(({ rows, isDone }) => rows.length === 0 && !isDone)
    if (empty.length > 0) await fillWalks(store, plan, empty, descending, chunk)
    chunk = Math.min(MAX_CHUNK, chunk * 2)
    // Up to the first place where some bucket may hold more than was read of it.
    const limits = walks.flatMap(({ rows, isDone }) => (isDone ? [] : [rows.at(-1) ?? '']))
    const limit = limits.reduce<string | undefined>((a, b) => (a === undefined || comesBefore(b, a) ? b : a), undefined)
    const batch: string[] = []
    for (const walk of walks) {
      const end = limit === undefined ? walk.rows.length : countUpTo(walk.rows, limit, comesBefore)
      batch.push(...walk.rows.splice(0, end))
    }
    batch.sort((a, b) => (comesBefore(a, b) ? -1 : 1))
    if (batch.length > 0) yield batch
    if (walks.every(({ rows, isDone }) => isDone && rows.length === 0)) return
  }
}

/** Every position of a plan, in no order, each bucket's from one moment. */
export async function readIndex(store: Store, plan: Plan): Promise<string[]> {
  const walks = store.keys.buckets.map((_, bucket) => ({ bucket, next: undefined }))
  const ranges = await scanBuckets(store, plan, walks, false, -1)
  return ranges.flat(2)
}

/** Refuses if this bucket no longer is what the store put there. */
export async function checkBucket(store: Store, bucket: number): Promise<void> {
  await scanBuckets(store, { ranges: [], namesTenant: true, order: 'none' }, [{ bucket, next: undefined }], false, 0)
}

async function fillWalks(store: Store, plan: Plan, walks: BucketWalk[], descending: boolean, chunk: number) {
  const comesBefore = (a: string, b: string): boolean => (descending ? a > b : a < b)
  const found = await scanBuckets(store, plan, walks, descending, chunk)
  for (const [i, walk] of walks.entries()) {
    const ranges = found[i] ?? []
    const cut = ranges.filter((range) => range.length === chunk).map((range) => range.at(-1) as string)
    const limit = cut.reduce<string | undefined>((a, b) => (a === undefined || comesBefore(b, a) ? b : a), undefined)
    walk.rows = ranges.flat().sort((a, b) => (comesBefore(a, b) ? -1 : 1))
    walk.isDone = limit === undefined
    if (limit === undefined) continue
    walk.rows = walk.rows.slice(0, countUpTo(walk.rows, limit, comesBefore))
    walk.next = { bracket: '(', position: limit }
  }
}

function countUpTo(rows: readonly string[], limit: string, comesBefore: (a: string, b: string) => boolean): number {
  const end = rows.findIndex((row) => comesBefore(limit, row))
  return end < 0 ? rows.length : end
}

// By the minute the walk begins with the cursor's whole minute: the order inside it is known only from the heads.
function startAfter(plan: Plan, after: CursorPosition, descending: boolean): WalkStart {
  if (plan.order === 'minute') {
    const minute = sortable(minuteOf(after.value))
    return descending ? { bracket: '(', position: `${minute}\x01` } : { bracket: '[', position: minute }
  }
  const { tenant, thread, branch } = after.log
  const name = plan.namesTenant ? `${tenant}\0${thread}\0${branch}` : `${thread}\0${branch}`
  return { bracket: '(', position: `${sortable(after.value)}\0${toBytes(name)}` }
}

/** Positions by bucket and range. */
async function scanBuckets(
  store: Store,
  plan: Plan,
  walks: readonly Pick<BucketWalk, 'bucket' | 'next'>[],
  descending: boolean,
  limit: number,
): Promise<string[][][]> {
  const { scripts, keys, marker } = store
  const calls = sameStart(store, walks).map((group) => {
    const bounds = plan.ranges.flatMap((range) => rangeBounds(range, group[0]?.next, descending))
    return {
      script: scripts['scan-index'],
      keys: group.map(({ bucket }) => keys.index(bucket)),
      args: [
        marker,
        plan.ranges[0]?.to === 'now' ? 'due' : descending ? 'desc' : 'asc',
        String(limit),
        ...bounds.map((bound) => Buffer.from(bound, 'latin1')),
      ],
      binary: true,
    }
  })
  const replies = await store.connection.read(calls)
  const buckets = replies.flatMap((reply) => checkLost(store, reply) as Reply[][][])
  return buckets.map((ranges) =>
    ranges.map((members, range) => {
      const { length } = (plan.ranges[range] as Range).prefix
      return members.map((member) => (member as Buffer).toString('latin1', length))
    }),
  )
}

/** Outside a cluster the buckets that are read from the same place on share one call. */
function sameStart<Walk extends Pick<BucketWalk, 'bucket' | 'next'>>(store: Store, walks: readonly Walk[]): Walk[][] {
  const [first] = walks
  const canShare = !store.connection.client.isCluster && walks.every(({ next }) => next === first?.next)
  return canShare ? [[...walks]] : walks.map((walk) => [walk])
}

function rangeBounds(range: Range, next: WalkStart | undefined, descending: boolean): [string, string] {
  const { prefix, from = '', to } = range
  const continued = next && `${next.bracket}${prefix}${next.position}`
  const lower = `[${prefix}${from}`
  if (to === 'now') return [lower, `(${prefix}`]
  const upper = to === undefined ? `(${prefix.slice(0, -1)}\x01` : `(${prefix}${to}\x01`
  return descending ? [lower, continued ?? upper] : [continued ?? lower, upper]
}

/** How many rows each of these ranges has, by bucket. */
export async function countRows(store: Store, ranges: readonly Range[]): Promise<readonly (readonly number[])[]> {
  const { scripts, keys, marker } = store
  const bounds = ranges.flatMap((range) => rangeBounds(range, undefined, false))
  const walks = keys.buckets.map((_, bucket) => ({ bucket, next: undefined }))
  const calls = sameStart(store, walks).map((group) => ({
    script: scripts['count-index'],
    keys: group.map(({ bucket }) => keys.index(bucket)),
    args: [marker, ...bounds.map((bound) => Buffer.from(bound, 'latin1'))],
  }))
  const replies = await store.connection.read(calls)
  return replies.flatMap((reply) => checkLost(store, reply) as unknown as number[][])
}

export function toBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}

export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}
