import { isHoldfastError } from '../../core/errors.js'
import type { BranchId, TenantId, ThreadId } from '../../core/ids.js'
import { nameLog } from '../../core/log-name.js'
import type { Anchor } from './anchors.js'
import { itemDriver } from '../items/carried-writes.js'
import type { Head, LogKey } from '../contract.js'
import type { LogEnvironment } from '../log-environment.js'

/** What a comparison of the store with anchors found. */
export interface AnchorReport {
  readonly ok: boolean
  /** How many branches and items were compared. */
  readonly checked: number
  /** What the store no longer holds as it was anchored, in plain words. */
  readonly problems: readonly string[]
}

type LogAnchor = Extract<Anchor, { log: unknown }>
type ItemAnchor = Extract<Anchor, { item: unknown }>

/**
 * Compares the store with anchors, which may come from several processes and so are in no particular order. A branch
 * must still hold each entry that was anchored, unless it was pruned or erased; an item must not be older than it was.
 */
export async function verifyAnchors(environment: LogEnvironment, anchors: Iterable<Anchor>): Promise<AnchorReport> {
  const logs = new Map<string, LogAnchor[]>()
  const items = new Map<string, ItemAnchor>()
  const erased = new Set<string>()
  for (const anchor of anchors) {
    if ('log' in anchor) {
      const name = JSON.stringify(anchor.log)
      logs.set(name, [...(logs.get(name) ?? []), anchor])
    } else if ('item' in anchor) {
      const name = JSON.stringify(anchor.item)
      const before = items.get(name)
      if (before === undefined || before.at <= anchor.at) items.set(name, anchor)
    } else erased.add(JSON.stringify(anchor.erased))
  }
  const problems: string[] = []
  for (const claims of logs.values()) {
    const [tenant, thread, branch] = (claims[0] as LogAnchor).log
    const wasErased =
      erased.has(JSON.stringify([tenant, thread])) || erased.has(JSON.stringify([tenant, thread, branch]))
    const log = { tenant: tenant as TenantId, thread: thread as ThreadId, branch: branch as BranchId }
    problems.push(...(await checkLog(environment, log, claims, wasErased)))
  }
  for (const claim of items.values()) problems.push(...(await checkItem(environment, claim)))
  return { ok: problems.length === 0, checked: logs.size + items.size, problems }
}

async function checkLog(
  { driver }: LogEnvironment,
  log: LogKey,
  claims: readonly LogAnchor[],
  wasErased: boolean,
): Promise<readonly string[]> {
  const head = await driver.head(log).catch((error: unknown) => {
    if (isHoldfastError(error, 'corrupt')) return error.message
    throw error
  })
  const name = `${nameLog(log)} of tenant ${JSON.stringify(log.tenant)}`
  if (typeof head === 'string') return [`${name} can't be read: ${head}`]
  const found = new Set<string>()
  for (const claim of claims) {
    const problem = head === undefined || head.incarnation !== claim.incarnation ? 'gone' : await compare(claim, head)
    if (problem === 'gone' && !wasErased) {
      const now = head === undefined ? 'it is gone' : 'another log has its name'
      found.add(`${name} held entry ${claim.seq} when it was anchored; now ${now}.`)
    } else if (problem !== undefined && problem !== 'gone') found.add(`${name} ${problem}`)
  }
  return [...found]

  async function compare({ seq, hash }: LogAnchor, head: Head): Promise<string | undefined> {
    if (seq > head.seq) {
      return `held entry ${seq} when it was anchored; now it ends with entry ${head.seq}: it was put back.`
    }
    if (seq < head.base.seq) return undefined
    const [entry] = await driver.read(log, seq, 1)
    return entry?.seq === seq && entry.hash === hash
      ? undefined
      : `holds another entry ${seq} than when it was anchored: it was put back and written to since.`
  }
}

async function checkItem(environment: LogEnvironment, claim: ItemAnchor): Promise<readonly string[]> {
  if (environment.driver.readItems === undefined) return []
  const [tenant, space, key] = claim.item
  const now = environment.clock.now()
  const name = `Item ${JSON.stringify(key)} of ${JSON.stringify(space)} of tenant ${JSON.stringify(tenant)}`
  const [item] = await itemDriver(environment.driver).readItems(tenant as TenantId, space, [key], { now })
  if (item === undefined) {
    const mayBeGone = claim.version === null || (claim.until !== undefined && claim.until <= now)
    return mayBeGone ? [] : [`${name} was there when it was anchored; now it is gone.`]
  }
  if (item.version === claim.version || item.updatedAt >= claim.at) return []
  return [`${name} is older than when it was anchored: it was put back.`]
}
