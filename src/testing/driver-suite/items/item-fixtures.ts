import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TenantId } from '../../../core/ids.js'
import type { Driver } from '../../../log/contract.js'
import type { CarriedWrite, ItemDriver, ItemScan, ItemWrite, NewItem, StoredItem } from '../../../log/store-contract.js'
import { assertBytes } from '../suite-context.js'

/** The wall-clock time of these tests. Drivers are told the time and never look at their own clock. */
export const NOW = 1_700_000_000_000
export const DAY_MS = 24 * 60 * 60 * 1000

export type ItemStore = Driver & ItemDriver

/** Why a test does not apply to a driver, if it doesn't. */
export function lacksItems(driver: Driver): string | undefined {
  return driver.writeItems === undefined ? 'this driver has no items yet' : undefined
}

export function lacksCarried(driver: Driver): string | undefined {
  return lacksItems(driver) ?? (driver.capabilities.storeAtomic ? undefined : 'its entries and items are not atomic')
}

export function lacksApply(driver: Driver): string | undefined {
  const isNeeded = driver.applyWrites !== undefined
  return lacksItems(driver) ?? (isNeeded ? undefined : 'its entries and items are atomic')
}

export function withItems(driver: Driver): ItemStore {
  assert.ok(driver.writeItems, 'the driver has items')
  return driver as ItemStore
}

/** Well-formed text that means something to some backend, shell, pattern or path. */
export const ODD_TEXTS: readonly string[] = [
  'plain',
  'Plain',
  'PLAIN',
  '/',
  '.',
  '..',
  '../..',
  '/etc/passwd',
  'a/../b',
  'a/b',
  'a%2Fb',
  'con',
  'trailing.',
  'trailing ',
  ' ',
  ':',
  'a:b',
  '{',
  '}',
  '{}',
  '{user=1}',
  '{tag}x',
  '%',
  '_',
  'a%',
  'a_',
  'ab',
  '*',
  'a*',
  '?',
  'a?',
  '[ab]',
  '[^a]',
  '\\',
  '\\*',
  "o'clock",
  '"quoted"',
  '`tick`',
  '$1',
  "'; DROP TABLE items; --",
  '$.a.b',
  '__proto__',
  'constructor',
  'hasOwnProperty',
  '-1',
  '0',
  '1',
  '10',
  'null',
  'e\u0301',
  '\u00e9',
  'ﬀ',
  'İ',
  'ß',
  '👩‍👩‍👧',
  '\u{10000}',
  '\uffff',
  '\u{10ffff}',
  '\u202e',
  'k'.repeat(1024),
  'é'.repeat(512),
]

export interface ItemOptions {
  readonly seed?: string
  readonly size?: number
  readonly value?: Uint8Array
  readonly version?: string
  readonly at?: number
  readonly expiresAt?: number | null
  readonly fields?: NewItem['fields']
}

export function makeItem(options: ItemOptions = {}): NewItem {
  const { seed = randomUUID(), at = NOW, expiresAt = null, fields = [] } = options
  return {
    value: options.value ?? Buffer.from(`value of ${seed}`),
    version: options.version ?? randomUUID(),
    at,
    expiresAt,
    fields,
  }
}

export function makeCarried(seq: number, space: string, key: string, item: NewItem | null, at = NOW): CarriedWrite {
  return { seq, space, key, item, at }
}

/** Writes one item and returns what the driver said. */
export async function writeOne(driver: ItemDriver, tenant: TenantId, write: ItemWrite, now = NOW) {
  const results = await driver.writeItems(tenant, [write], now)
  assert.equal(results.length, 1)
  return results[0]
}

/** Puts one item, whatever is there, and returns it. */
export async function putOne(
  driver: ItemDriver,
  tenant: TenantId,
  space: string,
  key: string,
  item = makeItem(),
  now = NOW,
) {
  assert.deepEqual(await writeOne(driver, tenant, { space, key, item }, now), { status: 'written' })
  return item
}

export async function readOne(
  driver: ItemDriver,
  tenant: TenantId,
  space: string,
  key: string,
  options: { readonly now?: number; readonly extendTo?: number } = {},
): Promise<StoredItem | undefined> {
  const found = await driver.readItems(tenant, space, [key], { now: NOW, ...options })
  assert.ok(found.length <= 1)
  return found[0]
}

/** Every item of a space, page by page. */
export async function scanAll(
  driver: ItemDriver,
  tenant: TenantId,
  space: string,
  scan: Omit<ItemScan, 'limit' | 'after'> = {},
  limit = 100,
  now = NOW,
): Promise<readonly StoredItem[]> {
  const found: StoredItem[] = []
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 1000, 'the pages come to an end')
    const after = found.at(-1)?.key
    const page = await driver.scanItems(
      tenant,
      space,
      { ...scan, limit, ...(after === undefined ? {} : { after }) },
      now,
    )
    assert.ok(page.length <= limit, 'a page is no longer than its limit')
    found.push(...page)
    if (page.length < limit) return found
  }
}

export function keysOf(items: readonly StoredItem[]): string[] {
  return items.map(({ key }) => key)
}

/** The order that every driver gives keys in. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** The item is exactly the one that was written. */
export function assertItem(
  actual: StoredItem | undefined,
  key: string,
  expected: NewItem,
  createdAt = expected.at,
): void {
  assert.ok(actual, `the item ${JSON.stringify(key)} is there`)
  const { value, ...rest } = actual
  const { version, at: updatedAt, expiresAt } = expected
  assert.deepEqual(rest, { key, version, createdAt, updatedAt, expiresAt })
  assertBytes(value, expected.value, `the value of ${JSON.stringify(key)}`)
}
