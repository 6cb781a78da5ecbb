import { type FieldPath, fieldAt } from '../../codec/item-field.js'
import type { Value } from '../../codec/value.js'
import type { TenantId } from '../../core/ids.js'
import { compareUtf8 } from '../../core/text-order.js'
import type { ItemStore, OpenItem } from '../../log/items/item-store.js'
import type { ItemScan } from '../../log/store-contract.js'
import { compareValues } from './compare.js'
import { decodeCursor, encodeCursor, type Order, type Position } from './cursor.js'
import { similarity } from './embedding.js'
import { type Condition, exactValues, matches } from './filter.js'
import { PageBudget } from './page-budget.js'
import { TopItems } from './top-items.js'

const PAGE = 100

/** Which items of which space; all checked. */
export interface SearchPlan {
  readonly tenant: TenantId
  readonly space: string
  readonly prefix: string | undefined
  readonly conditions: readonly Condition[]
  /** Fields that a driver may narrow a search by. */
  readonly index: readonly FieldPath[]
  readonly limit: number
}

/** An item with its value. */
export interface Found {
  readonly item: OpenItem
  readonly value: Value
  readonly score?: number
}

export interface FoundPage {
  readonly found: readonly Found[]
  readonly cursor?: string
}

/**
 * One page in an order. The filter and the order are applied here, to what a scan in key order returns, so that every
 * backend finds the same; a driver only leaves out what can't match. For ascending keys, the pages of the scan are
 * passed on; any other order walks the whole space, holding about one page at most.
 */
export async function searchOrdered(
  items: ItemStore,
  plan: SearchPlan,
  order: Order,
  cursor: unknown,
): Promise<FoundPage> {
  const start = cursor === undefined ? undefined : decodeCursor(order, cursor)
  const isByKey = order.field === undefined && !order.descending
  const budget = new PageBudget(items)
  const best = isByKey
    ? await takeFirst(matching(items, plan, budget, firstPart(plan, start)), plan.limit + 1)
    : await takeBest(matching(items, plan, budget), plan.limit + 1, order, start, budget)
  const found = best.slice(0, plan.limit)
  const last = found.at(-1)
  if (best.length <= plan.limit || last === undefined) return { found }
  return { found, cursor: encodeCursor(order, positionOf(last, order)) }
}

/** The items whose vectors point most nearly the same way, nearest first; ties go to the first key. */
export async function searchNearest(
  items: ItemStore,
  plan: SearchPlan,
  vector: Float32Array,
  minScore: number,
): Promise<FoundPage> {
  const best = new TopItems<{ readonly item: OpenItem; readonly score: number }>(
    plan.limit,
    (a, b) => b.score - a.score || compareUtf8(a.item.key, b.item.key),
  )
  for await (const page of scanPages(items, plan)) {
    for (const item of page) {
      if (item.vector?.length !== vector.length) continue
      const score = similarity(item.vector, vector)
      if (score < minScore) continue
      // Values are read if a filter needs them, and for the items returned.
      if (plan.conditions.length === 0 || matches(await item.read(), plan.conditions)) best.add({ item, score })
    }
  }
  const found: Found[] = []
  const budget = new PageBudget(items)
  for (const { item, score } of best.take()) {
    budget.take(item)
    found.push({ item, score, value: await item.read() })
  }
  return { found }
}

/** Where a scan begins, and how many items it reads at a time. */
interface ScanPart {
  readonly start?: string | undefined
  readonly size?: number
}

// Without a filter every item that is read is returned: read no more than requested, plus one to know whether others
// follow.
function firstPart({ limit, conditions }: SearchPlan, start: Position | undefined): ScanPart {
  return { start: start?.key, size: conditions.length === 0 ? Math.min(limit, PAGE) + 1 : PAGE + 1 }
}

/** All that match, in key order. What they take is charged to the budget. */
async function* matching(
  items: ItemStore,
  plan: SearchPlan,
  budget: PageBudget,
  part?: ScanPart,
): AsyncGenerator<Found> {
  for await (const page of scanPages(items, plan, part)) {
    for (const item of page) {
      budget.take(item)
      const value = await item.read()
      if (matches(value, plan.conditions)) yield { item, value }
      else budget.giveBack(item)
    }
  }
}

/** All that may match, in key order. */
async function* scanPages(
  items: ItemStore,
  { tenant, space, prefix, conditions, index }: SearchPlan,
  { start, size = PAGE }: ScanPart = {},
): AsyncGenerator<readonly OpenItem[]> {
  await items.clock.catchUp()
  const now = items.clock.now()
  const where = await narrow(items, tenant, space, conditions, index)
  let after = start
  for (;;) {
    const scan: ItemScan = {
      limit: size,
      ...(prefix === undefined ? {} : { prefix }),
      ...(after === undefined ? {} : { after }),
      ...(where.length === 0 ? {} : { where }),
    }
    const page = await items.scan(tenant, space, scan, now)
    yield page.filter(({ ended }) => !ended)
    after = page.at(-1)?.key
    if (page.length < size) return
  }
}

async function narrow(
  items: ItemStore,
  tenant: TenantId,
  space: string,
  conditions: readonly Condition[],
  index: readonly FieldPath[],
): Promise<NonNullable<ItemScan['where']>> {
  const indexed = new Set(index.map((path) => JSON.stringify(path)))
  const exact = conditions
    .map(exactValues)
    .filter((fields) => fields !== undefined)
    .filter(([path]) => indexed.has(JSON.stringify(path)))
  return exact.length === 0 ? [] : items.narrow(tenant, space, exact)
}

async function takeFirst(found: AsyncIterable<Found>, count: number): Promise<readonly Found[]> {
  const first: Found[] = []
  for await (const one of found) if (first.push(one) >= count) break
  return first
}

async function takeBest(
  found: AsyncIterable<Found>,
  count: number,
  order: Order,
  start: Position | undefined,
  budget: PageBudget,
): Promise<readonly Found[]> {
  const compare = (a: Position, b: Position): number => {
    // The direction reverses ties as well: one order is exactly the other read backwards.
    const ascending = compareValues(a.value, b.value) || compareUtf8(a.key, b.key)
    return order.descending ? -ascending : ascending
  }
  const best = new TopItems<{ found: Found; at: Position }>(
    count,
    (a, b) => compare(a.at, b.at),
    ({ found }) => budget.giveBack(found.item),
  )
  budget.makeRoom = () => best.trim()
  for await (const one of found) {
    const at = positionOf(one, order)
    if (start === undefined || compare(at, start) > 0) best.add({ found: one, at })
    else budget.giveBack(one.item)
  }
  return best.take().map(({ found }) => found)
}

function positionOf({ item, value }: Found, { field }: Order): Position {
  if (field === undefined) return { key: item.key }
  const at = fieldAt(value, field)
  // Values without an order of their own are equal, and need not be in a cursor as a whole.
  return { key: item.key, value: typeof at === 'object' && at !== null && !(at instanceof Date) ? [] : at }
}
