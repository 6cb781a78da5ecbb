import { encodeParts, type TenantId } from '../core/ids.js'
import type { ItemDriver, ItemWrite, NewItem, StoredItem } from '../log/store-contract.js'
import { METRICS_SCOPE } from '../telemetry/process-metrics.js'
import type { Tally } from './copy-report.js'

const PAGE = 100

/**
 * Where processes report their metrics and note what is left to clear: of the store that they work on, not of its data.
 */
export const HOUSEKEEPING_TENANT = 'holdfast.metrics' as TenantId
const HOUSEKEEPING = encodeParts('scope', METRICS_SCOPE, 1024)

/** The version of an item of which only the time of its creation is written yet. */
const UNFINISHED = 'copying~'

/** Both sides of a copy of items. */
export interface ItemSides {
  readonly from: ItemDriver
  readonly to: ItemDriver
  readonly tally: Tally
  readonly since: number | undefined
  readonly deleteMissing: boolean
  /** Decides what has expired. */
  readonly now: () => number
  readonly signal: AbortSignal | undefined
}

/** Brings the items of a tenant over, with versions, times and fields as they are. */
export async function copyItems(sides: ItemSides, tenant: TenantId): Promise<void> {
  for await (const space of spacesOf(sides.from, tenant)) {
    for await (const items of pagesOf(sides, sides.from, tenant, space)) {
      if (sides.signal?.aborted) return
      await copyPage(sides, tenant, space, items)
    }
  }
  if (sides.deleteMissing) await removeMissing(sides, tenant)
}

async function copyPage(
  { to, tally, since, now }: ItemSides,
  tenant: TenantId,
  space: string,
  items: readonly StoredItem[],
): Promise<void> {
  const wanted = since === undefined ? items : items.filter(({ updatedAt }) => updatedAt > since)
  const keys = wanted.map(({ key }) => key)
  const there = new Map((await to.readItems(tenant, space, keys, { now: now() })).map((item) => [item.key, item]))
  const writes: ItemWrite[] = []
  const refuse = (key: string): void =>
    tally.refuse({
      tenant,
      item: { space, key },
      reason: 'exists',
      message: `The destination has another item ${JSON.stringify(key)} in ${JSON.stringify(space)}. Delete it there.`,
    })
  for (const item of wanted) {
    const found = there.get(item.key)
    if (found !== undefined && isSame(item, found)) continue
    if (found !== undefined && !mayReplace(item, found, since)) refuse(item.key)
    else writes.push({ space, key: item.key, item: newItem(item), expect: found?.version ?? null })
  }
  // Deleted in the source and made again since: only a new item gets a new time of creation.
  const remade = writes.filter(({ key }) => there.has(key) && there.get(key)?.createdAt !== createdAt(items, key))
  const removed = await send(
    to,
    tenant,
    remade.map((write) => ({ ...write, item: null })),
    now(),
  )
  for (const [key, isGone] of removed) if (isGone) there.delete(key)
  for (const write of writes.splice(0)) writes.push(there.has(write.key) ? write : { ...write, expect: null })
  // An item keeps the time of its creation only through overwriting: it is written as of then, and then as it is.
  const firsts = writes.filter(({ key, item }) => !there.has(key) && createdAt(items, key) !== item?.at)
  const begun = await send(
    to,
    tenant,
    firsts.map((write) => asOfCreation(write, createdAt(items, write.key))),
    now(),
  )
  const lost = new Set([...begun].filter(([, written]) => !written).map(([key]) => key))
  const rest = writes
    .filter(({ key }) => !lost.has(key))
    .map((write) => (begun.has(write.key) ? { ...write, expect: unfinished(write) } : write))
  const done = await send(to, tenant, rest, now())
  for (const key of [...lost, ...[...done].filter(([, written]) => !written).map(([name]) => name)]) refuse(key)
  const written = rest.filter(({ key }) => done.get(key) === true)
  tally.add({
    items: written.length,
    bytes: written.reduce((sum, { item }) => sum + (item?.value.length ?? 0), 0),
  })
}

/** By key, whether it was written. */
async function send(
  to: ItemDriver,
  tenant: TenantId,
  writes: readonly ItemWrite[],
  now: number,
): Promise<ReadonlyMap<string, boolean>> {
  if (writes.length === 0) return new Map()
  const results = await to.writeItems(tenant, writes, now)
  return new Map(writes.map(({ key }, i) => [key, results[i]?.status === 'written']))
}

function isSame(item: StoredItem, found: StoredItem): boolean {
  return (
    item.version === found.version &&
    item.expiresAt === found.expiresAt &&
    Buffer.compare(item.value, found.value) === 0
  )
}

function mayReplace(item: StoredItem, found: StoredItem, since: number | undefined): boolean {
  if (found.version === item.version || found.version === `${UNFINISHED}${item.version}`.slice(0, 64)) return true
  return since !== undefined && found.updatedAt < item.updatedAt
}

function newItem({ value, version, updatedAt, expiresAt, fields = [] }: StoredItem): NewItem {
  return { value, version, at: updatedAt, expiresAt, fields }
}

function asOfCreation(write: ItemWrite, at: number): ItemWrite {
  return { ...write, item: write.item && { ...write.item, at, version: unfinished(write) } }
}

function unfinished({ item }: ItemWrite): string {
  return `${UNFINISHED}${item?.version ?? ''}`.slice(0, 64)
}

function createdAt(items: readonly StoredItem[], key: string): number {
  return items.find((item) => item.key === key)?.createdAt ?? 0
}

/** What the destination has and the source has not: deleted there since the last pass. */
async function removeMissing(sides: ItemSides, tenant: TenantId): Promise<void> {
  const { from, to, tally, now } = sides
  for await (const space of spacesOf(to, tenant)) {
    for await (const items of pagesOf(sides, to, tenant, space)) {
      if (sides.signal?.aborted) return
      const keys = items.map(({ key }) => key)
      const kept = new Set((await from.readItems(tenant, space, keys, { now: now() })).map(({ key }) => key))
      const gone = items.filter(({ key }) => !kept.has(key))
      const writes = gone.map(({ key, version }) => ({ space, key, item: null, expect: version }))
      const done = await send(to, tenant, writes, now())
      tally.add({ removed: [...done.values()].filter(Boolean).length })
    }
  }
}

async function* spacesOf(driver: ItemDriver, tenant: TenantId): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const names = await driver.listSpaces(tenant, { limit: PAGE, ...(after === undefined ? {} : { after }) })
    yield* names.filter((name) => !name.startsWith(HOUSEKEEPING))
    after = names.at(-1)
    if (names.length < PAGE) return
  }
}

async function* pagesOf(
  { now }: ItemSides,
  driver: ItemDriver,
  tenant: TenantId,
  space: string,
): AsyncGenerator<readonly StoredItem[]> {
  for (let after: string | undefined; ; ) {
    const scan = { limit: PAGE, fields: true, ...(after === undefined ? {} : { after }) }
    const items = await driver.scanItems(tenant, space, scan, now())
    if (items.length > 0) yield items
    after = items.at(-1)?.key
    if (items.length < PAGE) return
  }
}
