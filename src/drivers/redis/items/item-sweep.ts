import type { TenantId } from '../../../core/ids.js'
import { toDriverError } from '../server/errors.js'
import { fromBytes, walkRows } from '../index/index-walk.js'
import { REMEMBER_MS } from './item-writes.js'
import { sortable } from '../rows/rows.js'
import type { Store } from '../store.js'

/** How many items one call sweeps at most, so that it does not keep others waiting. */
const MAX_SWEEP = 256

/**
 * How many removed items a sweep forgets at least, if there are as many, however small its limit is. A worker sweeps
 * once a minute if nothing expires: with fewer, notes would pile up at a hundred removals per second.
 */
const MIN_FORGET = 10_000

/** Removes what has expired, found by its rows in the index, and forgets what was removed more than a day ago. */
export async function sweepItems(store: Store, now: number, limit: number): Promise<number> {
  let removed = 0
  if (limit > 0) {
    for await (const rows of dueRows(store, 'x', now, limit)) {
      // What was written again since its row was read does not count, so the next ones take its place.
      while (rows.length > 0 && removed < limit) removed += await sweepDue(store, rows.splice(0, limit - removed), now)
      if (removed >= limit) break
    }
  }
  let left = Math.max(limit, MIN_FORGET)
  for await (const rows of dueRows(store, 'r', now, left)) {
    await sweepDue(store, rows.slice(0, left), now)
    left -= rows.length
    if (left <= 0) break
  }
  return removed
}

/** The rows of items that have expired ('x') or are to be forgotten ('r') by now, the oldest first. */
function dueRows(store: Store, kind: 'x' | 'r', now: number, limit: number): AsyncGenerator<string[]> {
  const plan = { ranges: [{ prefix: `${kind}\0`, to: sortable(now) }], namesTenant: true, order: 'exact' } as const
  return walkRows(store, plan, { descending: false, limit })
}

async function sweepDue(store: Store, rows: readonly string[], now: number): Promise<number> {
  const spaces = new Map<string, { tenant: TenantId; space: string; keys: string[] }>()
  for (const row of rows) {
    const [, tenant, space, key] = fromBytes(row).split('\0') as [string, TenantId, string, string]
    const name = `${tenant}\0${space}`
    const known = spaces.get(name)
    if (known === undefined) spaces.set(name, { tenant, space, keys: [key] })
    else known.keys.push(key)
  }
  const calls = []
  for (const { tenant, space, keys } of spaces.values()) {
    for (let i = 0; i < keys.length; i += MAX_SWEEP) {
      const args = [String(now), String(now + REMEMBER_MS), ...keys.slice(i, i + MAX_SWEEP)]
      calls.push({ script: store.scripts['sweep-items'], keys: store.keys.space(tenant, space), args })
    }
  }
  let removed = 0
  for (const outcome of await store.connection.flush(calls, true)) {
    if ('error' in outcome) throw toDriverError(outcome.error, true)
    removed += outcome.reply as number
  }
  return removed
}
