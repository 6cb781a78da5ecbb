import type { BranchId, TenantId, ThreadId } from '../../../core/ids.js'
import type { Head, HeadPage, HeadQuery, LogKey, Position } from '../../../log/contract.js'
import { type CursorPosition, cursorAfter, parseCursor, sortValue } from '../../shared/cursor.js'
import { matchesQuery } from '../../shared/head-query.js'
import { takeSmallest } from '../../shared/take-smallest.js'
import type { Reply } from '../client.js'
import { checkBucket, fromBytes, type Plan, readIndex, walkIndex } from './index-walk.js'
import { choosePlan } from './label-index.js'
import { readBranches } from '../logs.js'
import { readHeadRow } from '../server/generations.js'
import { minuteOf, sortable } from '../rows/rows.js'
import { checkLost, type Store } from '../store.js'

const HEADS_AT_ONCE = 100
const TIME_DIGITS = 16

/** A log that the index speaks of, and the time by which it is found there. */
interface Candidate {
  readonly time: string
  readonly log: LogKey
}

/** One page of the thread index: names from the buckets' sorted sets, everything else from the heads themselves. */
export async function queryHeads(store: Store, asked: HeadQuery): Promise<HeadPage> {
  // The index compares with the server's clock; of one thread the heads are read without it.
  const isOfThread = asked.tenant !== undefined && asked.thread !== undefined
  const isNow = asked.wakeBefore === 'now' && isOfThread
  const query = isNow ? { ...asked, wakeBefore: await readTime(store) } : asked
  const after = query.cursor === undefined ? undefined : parseCursor(query.cursor)
  const wanted = query.limit + 1
  const compare = comparison(query)
  const fits = (head: Head): boolean => matchesQuery(head, query) && (after === undefined || compare(head, after) > 0)

  let heads: Head[] = []
  if (query.tenant !== undefined && query.thread !== undefined) {
    const logs = await threadLogs(store, query.tenant, query.thread, query.branch)
    heads = (await readHeads(store, logs)).filter((head) => head !== undefined).filter(fits)
    heads.sort((a, b) => compare(a, positionOf(b, query)))
  } else {
    const plan = await choosePlan(store, query)
    if (plan.order === 'none') heads = await gatherHeads(store, plan, query, fits, wanted)
    else heads = await walkHeads(store, plan, query, after, fits, wanted)
  }

  const page = heads.slice(0, query.limit)
  const last = page.at(-1)
  if (heads.length <= query.limit || last === undefined) return { heads: page }
  return { heads: page, cursor: cursorAfter(last, query) }
}

/** The time of the server's clock. */
export async function readTime({ connection }: Store): Promise<number> {
  const [reply] = await connection.read([{ command: 'TIME', args: [] }])
  const [seconds, micros] = reply as readonly [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000
}

async function threadLogs(store: Store, tenant: TenantId, thread: ThreadId, branch: BranchId | undefined) {
  const branches = branch === undefined ? await readBranches(store, tenant, thread) : [branch]
  // No branches is an answer only of a store that is still there; reading a head asks for that by itself.
  if (branches.length === 0) await checkBucket(store, store.keys.bucketOf(tenant, thread))
  return branches.map((name) => ({ tenant, thread, branch: name as BranchId }))
}

/** For ranges that are not in the order of the query: all of their heads, of which the first ones are kept. */
async function gatherHeads(
  store: Store,
  plan: Plan,
  query: HeadQuery,
  fits: (head: Head) => boolean,
  wanted: number,
): Promise<Head[]> {
  const compare = comparison(query)
  const named = namedCandidates(plan, query, await readIndex(store, plan))
  // A version without rows of labels leaves those of a log that it erased, and a new log may have its name.
  const candidates = [
    ...new Map(named.map((one) => [`${one.log.tenant}\0${one.log.thread}\0${one.log.branch}`, one])).values(),
  ]
  let best: Head[] = []
  for (let i = 0; i < candidates.length; i += 20 * HEADS_AT_ONCE) {
    const heads = await readHeads(
      store,
      candidates.slice(i, i + 20 * HEADS_AT_ONCE).map(({ log }) => log),
    )
    const fitting = heads.filter((head) => head !== undefined).filter(fits)
    best = takeSmallest([...best, ...fitting], wanted, (a, b) => compare(a, positionOf(b, query)))
  }
  return best
}

/** For ranges in the order of the query: only as many heads as it takes to fill the page. */
async function walkHeads(
  store: Store,
  plan: Plan,
  query: HeadQuery,
  after: CursorPosition | undefined,
  fits: (head: Head) => boolean,
  wanted: number,
): Promise<Head[]> {
  const compare = comparison(query)
  const found: Head[] = []
  for await (const positions of portions(plan, walkIndex(store, plan, query, after), () => wanted - found.length)) {
    const candidates = namedCandidates(plan, query, positions)
    const heads = await readHeads(
      store,
      candidates.map(({ log }) => log),
    )
    // A log that moved in the order since its name was read is dropped here, or the cursor would skip others. It
    // changed, and in ascending order it is met again.
    const inPlace = heads.filter((head, i) => head !== undefined && timeOf(plan, head, query) === candidates[i]?.time)
    const fitting = (inPlace as Head[]).filter(fits)
    found.push(...fitting.sort((a, b) => compare(a, positionOf(b, query))))
    if (found.length >= wanted) break
  }
  return found.slice(0, wanted)
}

/**
 * Positions in portions of which the heads are read: not many more than the page still needs. By the minute a portion is
 * whole minutes, because the order inside one is known only when all of its logs are.
 */
async function* portions(
  plan: Plan,
  batches: AsyncGenerator<string[]>,
  needed: () => number,
): AsyncGenerator<string[]> {
  const open: string[] = []
  for await (const batch of batches) {
    if (plan.order === 'exact') {
      while (batch.length > 0) yield batch.splice(0, Math.max(needed(), HEADS_AT_ONCE / 4))
      continue
    }
    open.push(...batch)
    const last = open.at(-1)?.slice(0, TIME_DIGITS)
    const start = open.findIndex((position) => position.slice(0, TIME_DIGITS) === last)
    if (start > 0) yield open.splice(0, start)
  }
  if (open.length > 0) yield open
}

/** What positions name, without the logs that can't match by their name alone. */
function namedCandidates(plan: Plan, query: HeadQuery, positions: readonly string[]): Candidate[] {
  return positions
    .map((position): Candidate => {
      const start = plan.namesTenant === 'first' ? position.indexOf('\0') + 1 : 0
      const time = position.slice(start, start + TIME_DIGITS)
      const parts = fromBytes(position.slice(start + TIME_DIGITS + 1)).split('\0')
      const owner = start > 0 ? fromBytes(position.slice(0, start - 1)) : query.tenant
      const [tenant, thread, branch] = plan.namesTenant === true ? parts : [owner, ...parts]
      return { time, log: { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId } }
    })
    .filter(({ log }) => {
      if (query.tenant !== undefined && log.tenant !== query.tenant) return false
      if (query.thread !== undefined && log.thread !== query.thread) return false
      return query.branch === undefined || log.branch === query.branch
    })
}

export async function readPositions(store: Store, logs: readonly LogKey[]): Promise<readonly (Position | undefined)[]> {
  return (await readHeads(store, logs)).map((head) => head && { incarnation: head.incarnation, seq: head.seq })
}

export async function readHeads(store: Store, logs: readonly LogKey[]): Promise<(Head | undefined)[]> {
  const { scripts, keys, marker, connection } = store
  const groups = new Map<string, number[]>()
  const seen = new Map<number, number>()
  for (const [i, log] of logs.entries()) {
    const bucket = connection.client.isCluster ? keys.bucketOf(log.tenant, log.thread) : 0
    const count = seen.get(bucket) ?? 0
    seen.set(bucket, count + 1)
    const group = `${bucket} ${Math.floor(count / HEADS_AT_ONCE)}`
    const members = groups.get(group)
    if (members === undefined) groups.set(group, [i])
    else members.push(i)
  }
  const calls = [...groups].map(([group, members]) => ({
    script: scripts.heads,
    keys: [keys.index(Number.parseInt(group, 10)), ...members.map((i) => keys.log(logs[i] as LogKey))],
    args: [marker],
  }))
  const heads: (Head | undefined)[] = logs.map(() => undefined)
  if (calls.length === 0) return heads
  const replies = await connection.read(calls)
  for (const [at, members] of [...groups.values()].entries()) {
    const rows = checkLost(store, replies[at] ?? null) as (readonly Reply[] | null)[]
    for (const [row, i] of members.entries()) {
      const found = rows[row]
      if (found) heads[i] = readHeadRow(store, logs[i] as LogKey, found)
    }
  }
  return heads
}

function timeOf(plan: Plan, head: Head, query: HeadQuery): string {
  const value = sortValue(head, query)
  return sortable(plan.order === 'minute' ? minuteOf(value) : value)
}

function positionOf(head: Head, query: HeadQuery): CursorPosition {
  return { value: sortValue(head, query), log: head.log }
}

// By bytes, as the index is sorted: a page must continue exactly where the one before ended.
function comparison(query: HeadQuery): (head: Head, other: CursorPosition) => number {
  const sign = query.direction === 'asc' ? 1 : -1
  return (head, other) =>
    sign * (sortValue(head, query) - other.value || Buffer.compare(nameBytes(head.log), nameBytes(other.log)))
}

function nameBytes({ tenant, thread, branch }: LogKey): Buffer {
  return Buffer.from(`${tenant}\0${thread}\0${branch}`)
}
