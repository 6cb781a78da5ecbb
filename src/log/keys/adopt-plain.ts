import { itemKeyId } from '../../codec/item.js'
import { encodeValue } from '../../codec/value.js'
import { decodeHeader } from '../../codec/header.js'
import { isHoldfastError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { nameLog } from '../../core/log-name.js'
import { itemDriver } from '../items/carried-writes.js'
import type { Head, HeadQuery } from '../contract.js'
import { isReservedThread } from './keys.js'
import { Log } from '../log.js'
import type { LogEnvironment } from '../log-environment.js'
import { allHeads } from '../read/heads.js'
import type { StoredItem } from '../store-contract.js'

/** What `adopt` put under a key. */
export interface Adopted {
  /** Branches whose newest entry had no key. Their history is authenticated by the entry that was added. */
  readonly branches: number
  /** Items of the store that were sealed again, in place. */
  readonly items: number
  /** Plain data that was refused, by name: dated later than `writtenBefore`, or damaged. */
  readonly refused: readonly string[]
}

const PAGE = 200

/**
 * Puts a key on everything that a tenant wrote without one, as far as `adoptPlain` accepts it: one keyframe on top of
 * each branch, which chains over everything below it, and every plain item sealed as it is. What is accepted now can't
 * be distinguished from what somebody planted before; what comes later can.
 */
export async function adoptPlain(environment: LogEnvironment, tenant: TenantId): Promise<Adopted> {
  let branches = 0
  const refused: string[] = []
  const query: HeadQuery = { tenant, order: 'created', direction: 'asc', limit: PAGE }
  for await (const head of allHeads((page) => environment.driver.heads(page), query)) {
    if (await orRefused(adoptLog(environment, head), nameLog(head.log), refused)) branches++
  }
  return { branches, items: await adoptItems(environment, tenant, refused), refused }
}

// Somebody who plants one bad thread must not keep the others from being adopted.
async function orRefused(adopting: Promise<boolean>, name: string, refused: string[]): Promise<boolean> {
  try {
    return await adopting
  } catch (error) {
    if (!isHoldfastError(error, 'corrupt')) throw error
    refused.push(name)
    return false
  }
}

async function adoptLog(environment: LogEnvironment, { log: key }: Head): Promise<boolean> {
  if (isReservedThread(key.thread)) return false
  const [newest] = await environment.driver.headers(key, { limit: 1 })
  if (newest === undefined || decodeHeader(newest.header).key !== null) return false
  const log = await Log.open(environment, key)
  // Another process may have written with a key by now.
  const { entries } = await log.update(({ key }) => (key === null ? [{ kind: 'adopt', keyframe: true }] : undefined))
  return entries.length > 0
}

async function adoptItems(environment: LogEnvironment, tenant: TenantId, refused: string[]): Promise<number> {
  if (environment.driver.writeItems === undefined) return 0
  const driver = itemDriver(environment.driver)
  const now = environment.clock.now()
  let count = 0
  for (let after: string | undefined; ; ) {
    const spaces = await driver.listSpaces(tenant, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const space of spaces) {
      for (let key: string | undefined; ; ) {
        const page = await driver.scanItems(
          tenant,
          space,
          { limit: PAGE, ...(key === undefined ? {} : { after: key }) },
          now,
        )
        for (const stored of page) {
          const name = `item ${JSON.stringify(stored.key)} of ${JSON.stringify(space)}`
          if (await orRefused(adoptItem(environment, tenant, space, stored), name, refused)) count++
        }
        key = page.at(-1)?.key
        if (page.length < PAGE) break
      }
    }
    after = spaces.at(-1)
    if (spaces.length < PAGE) return count
  }
}

// Version and times stay, so that a caller that holds the version can still overwrite it. Names of indexed fields are
// dropped: they were made without a key, and a scan finds an item without them as well.
async function adoptItem(
  environment: LogEnvironment,
  tenant: TenantId,
  space: string,
  stored: StoredItem,
): Promise<boolean> {
  if (itemKeyId({ tenant, space, key: stored.key }, stored.value) !== null) return false
  const { key, version, updatedAt: at, expiresAt } = stored
  const { vector, read } = await environment.items.open(tenant, space, stored)
  const content = encodeValue(await read(), environment.limits)
  const item = await environment.items.seal(tenant, {
    space,
    key,
    content,
    expiresAt,
    // The writer did not say.
    renewable: true,
    vector,
    version,
    at,
  })
  const [result] = await itemDriver(environment.driver).writeItems(
    tenant,
    [{ space, key, item, expect: version }],
    environment.clock.now(),
  )
  return result?.status === 'written'
}
