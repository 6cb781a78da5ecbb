import { InvalidOptionError, isHoldfastError, MissingKeyError } from '../core/errors.js'
import { parseTenantId, type TenantId, threadIdInput } from '../core/ids.js'
import { systemClock } from '../core/time/system-clock.js'
import type { Driver, Head, HeadQuery, LogKey } from '../log/contract.js'
import type { CopyDriver } from '../log/copy-contract.js'
import { isReservedThread, KEY_THREAD } from '../log/keys/keys.js'
import { LogStore } from '../log/log-store.js'
import type { ItemDriver } from '../log/store-contract.js'
import { GroupCommit } from '../log/write/group-commit.js'
import { copyItems, HOUSEKEEPING_TENANT } from './copy-items.js'
import { copyLog, type Sides } from './copy-log.js'
import { type CopyOptions, type CopyReport, Tally } from './copy-report.js'
import { copyTombstones } from './copy-tombstones.js'

const PAGE = 200
const AT_ONCE = 16

type WholeDriver = Driver & ItemDriver & CopyDriver

/**
 * Copies everything from one backend to another: data keys first, then threads with their blobs, then the store, then
 * tombstones. Stored bytes, and so hashes, stay as they are. Whatever stops it, the next call continues.
 */
export async function copyDrivers(source: Driver, target: Driver, options: CopyOptions = {}): Promise<CopyReport> {
  const [from, to] = [whole(source, 'from'), whole(target, 'to')]
  const { signal, concurrency = AT_ONCE, deleteMissing = false } = options
  if (!(Number.isSafeInteger(concurrency) && concurrency >= 1 && concurrency <= 1000))
    throw new InvalidOptionError('concurrency', `is ${String(concurrency)}`, 'Pass a whole number from 1 to 1000.')
  const since = sinceOf(options.since)
  const tally = new Tally(options.onProgress)
  const tenants = await tenantsOf(from, to, options.tenant, deleteMissing)
  const commit = new GroupCommit(to)
  const sides: Sides = { from, to, commit, tally, deleteMissing }
  const finishing = new LogStore(from, { ...(options.keys ? { keys: options.keys } : {}), cacheBytes: 0 })
  const checking = options.keys && new LogStore(to, { keys: options.keys, cacheBytes: 0 })
  const clock = systemClock()
  const refused = new Set<TenantId>()
  for (const tenant of tenants) {
    if (signal?.aborted) break
    tally.add({ tenants: 1 })
    if (!(await copyKeys(sides, tenant))) {
      refused.add(tenant)
      continue
    }
    const query = { tenant, ...(since === undefined ? {} : { updatedAfter: since }) }
    await eachHead(from, query, concurrency, signal, async ({ log }) => {
      if (isReservedThread(log.thread)) return
      if (!from.capabilities.storeAtomic) await finishWrites(finishing, log)
      await copyLog(sides, log)
      if (checking) await check(checking, log, tally)
    })
    const now = () => clock.now()
    if (!signal?.aborted) await copyItems({ from, to, tally, since, deleteMissing, now, signal }, tenant)
    if (deleteMissing && !signal?.aborted) await removeMissing(sides, tenant, concurrency, signal)
  }
  const left = new Set(tenants.filter((tenant) => !refused.has(tenant)))
  if (!signal?.aborted) await copyTombstones(from, to, left, { deleteMissing, tally, signal })
  await commit.close()
  return tally.report(signal?.aborted !== true)
}

function whole(driver: Driver, side: 'from' | 'to'): WholeDriver {
  if (driver.listTenants && driver.writeItems) return driver as WholeDriver
  throw new InvalidOptionError(
    side,
    `is a ${driver.name} store, whose driver can't be copied`,
    'Its driver needs the methods of CopyDriver and ItemDriver.',
  )
}

function sinceOf(since: Date | undefined): number | undefined {
  if (since === undefined) return undefined
  if (since instanceof Date && !Number.isNaN(since.getTime())) return since.getTime()
  throw new InvalidOptionError('since', 'is not a valid Date', 'Pass a Date.')
}

async function tenantsOf(
  from: CopyDriver,
  to: CopyDriver,
  tenant: string | undefined,
  deleteMissing: boolean,
): Promise<readonly TenantId[]> {
  if (tenant !== undefined) return [parseTenantId(tenant)]
  const all = new Set(await from.listTenants())
  if (deleteMissing) for (const one of await to.listTenants()) all.add(one)
  all.delete(HOUSEKEEPING_TENANT)
  return [...all].sort()
}

/**
 * The wrapped data keys of a tenant. Two sides with different keys, or keys on one side and plain threads on the other,
 * can't be joined: what was copied could not be read, or would count as forged.
 */
async function copyKeys(sides: Sides, tenant: TenantId): Promise<boolean> {
  const { from, to, tally } = sides
  const refuse = (message: string): false => {
    tally.refuse({ tenant, reason: 'keys', message })
    return false
  }
  const key = { tenant, thread: KEY_THREAD, branch: 'main' } as LogKey
  const [source, target] = await Promise.all([from.head(key), to.head(key)])
  if (source === undefined && target === undefined) return true
  if (source === undefined) {
    if (!(await hasAnything(from, tenant))) return true
    return refuse(
      `The destination has data keys for tenant "${tenant}" and the source has none. Copy to another store.`,
    )
  }
  if (target === undefined && (await hasAnything(to, tenant))) {
    return refuse(`The source has data keys for tenant "${tenant}" and the destination has plain threads of it.`)
  }
  const before = tally.refused.length
  await copyLog(sides, key)
  return tally.refused.length === before
}

async function hasAnything(driver: Driver, tenant: TenantId): Promise<boolean> {
  return (await driver.heads({ tenant, limit: 1 })).heads.length > 0
}

/**
 * Where entries and items are not written in one step, a crash may have left the second undone. Opening completes it.
 */
async function finishWrites(store: LogStore, log: LogKey): Promise<void> {
  try {
    await store.open(log)
  } catch (error) {
    // Told with the branch itself, when its entries are looked at.
    if (isHoldfastError(error, 'corrupt')) return
    if (!isHoldfastError(error, 'missing-key')) throw error
    throw new MissingKeyError(
      'The source is encrypted, and its backend may hold writes to the store that a crashed process left undone.',
      { log },
    )
  }
}

/** With keys: every HMAC, body, blob and keyframe, as `verify` does it. */
async function check(store: LogStore, log: LogKey, tally: Tally): Promise<void> {
  const found = await store.verify(log)
  if (found === undefined) return
  tally.add({ verified: found.entries })
  const { tenant, branch } = log
  const thread = threadIdInput(log.thread)
  if (!found.ok) tally.refuse({ tenant, thread, branch, reason: 'damaged', message: found.problems.join(' ') })
}

/** Threads and branches that the source no longer has. */
async function removeMissing(
  { from, to, tally }: Sides,
  tenant: TenantId,
  concurrency: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  await eachHead(to, { tenant }, concurrency, signal, async ({ log, incarnation, seq }) => {
    if (isReservedThread(log.thread) || (await from.head(log)) !== undefined) return
    const tombstone = (await from.tombstone(tenant, log.thread)) ?? null
    const expect = [{ branch: log.branch, incarnation, seq }]
    const result = await to.erase({ tenant, thread: log.thread, branch: log.branch, expect, tombstone })
    if (result !== 'conflict') tally.add({ removed: result.erased })
  })
}

/** Every branch of a query, some at a time, oldest first. */
async function eachHead(
  driver: Driver,
  query: Omit<HeadQuery, 'limit'>,
  concurrency: number,
  signal: AbortSignal | undefined,
  work: (head: Head) => Promise<void>,
): Promise<void> {
  for (let cursor: string | undefined; ; ) {
    const position = cursor === undefined ? {} : { cursor }
    const page = await driver.heads({ ...query, order: 'created', direction: 'asc', limit: PAGE, ...position })
    let next = 0
    const walk = async (): Promise<void> => {
      while (next < page.heads.length && !signal?.aborted) await work(page.heads[next++] as Head)
    }
    // All are awaited before a failure is reported: a page that continues after its copy ended would write unseen.
    const ended = await Promise.allSettled(Array.from({ length: concurrency }, walk))
    const failed = ended.find((one) => one.status === 'rejected')
    if (failed) throw failed.reason
    cursor = page.cursor
    if (cursor === undefined || signal?.aborted) return
  }
}
