import type { Context } from '../../../runtime/step/context.js'
import { internalsOf } from '../../../runtime/step/call/internals.js'
import { spaceOf } from '../../../runtime/step/record/step-store.js'
import { costOf, type PriceTable } from './cost.js'
import type { ModelRef } from '../../messages/message.js'
import { addUsage, NO_USAGE, type Usage } from './usage.js'

/** What model calls used in total. */
export type Tally = Usage & {
  readonly calls: number
  /** For the calls whose price is known. */
  readonly cost: number
  /** Calls whose price is not known. */
  readonly unpriced: number
}

export const EMPTY_TALLY: Tally = { ...NO_USAGE, calls: 0, cost: 0, unpriced: 0 }

/** The tally of one call. */
export function tallyOf(usage: Usage, model: ModelRef, prices: PriceTable): Tally {
  const cost = costOf(usage, model, prices)
  return tally(usage, 1, cost ?? 0, cost === undefined ? 1 : 0)
}

export function addTally(...tallies: readonly Tally[]): Tally {
  let [calls, cost, unpriced] = [0, 0, 0]
  for (const each of tallies) {
    calls += each.calls
    cost += each.cost
    unpriced += each.unpriced
  }
  return tally(addUsage(...tallies), calls, cost, unpriced)
}

function tally(usage: Usage, calls: number, cost: number, unpriced: number): Tally {
  const { input, cachedInput, cacheWrite, output, reasoning, total, basis } = usage
  return { input, cachedInput, cacheWrite, output, reasoning, total, basis, calls, cost, unpriced }
}

/** What one branch of a thread has used, as kept in the tenant's store. */
export type ThreadUsage = {
  readonly thread: string
  readonly branch: string
  readonly program: string
  readonly tally: Tally
}

const USAGE_SCOPE = { holdfast: 'usage' } as const
const USAGE_COLLECTION = 'threads'
const USAGE_SPACE = spaceOf(USAGE_SCOPE, USAGE_COLLECTION)

/**
 * Writes what a branch has used so far together with the record of this step: a crash can't count a call twice or lose
 * it.
 */
export function writeTally(context: Context, id: string, usage: ThreadUsage): void {
  internalsOf(context).put(USAGE_SPACE, id, usage)
}

interface ListedUsage {
  readonly items: readonly { readonly value: ThreadUsage }[]
  readonly cursor?: string
}

/** The part of a store that is read; `hf.store` matches. */
interface UsageStore {
  scope(scope: Readonly<Record<string, string>>): {
    collection<Item>(name: string): {
      list(query: {
        readonly limit: number
        readonly cursor?: string
      }): Promise<ListedUsage & { readonly items: readonly { readonly value: Item }[] }>
    }
  }
}

/**
 * What all agents of a tenant have used, including on forks and on threads that were erased since: exactly the calls
 * that are recorded.
 */
export async function tenantUsage(tenant: { readonly store: UsageStore }): Promise<Tally> {
  const collection = tenant.store.scope(USAGE_SCOPE).collection<ThreadUsage>(USAGE_COLLECTION)
  let sum = EMPTY_TALLY
  let cursor: string | undefined
  do {
    const page = await collection.list({ limit: 500, ...(cursor === undefined ? {} : { cursor }) })
    sum = addTally(sum, ...page.items.map(({ value }) => value.tally))
    cursor = page.cursor
  } while (cursor !== undefined)
  return sum
}
