import { type TenantId, threadIdInput } from '../core/ids.js'
import type { Driver } from '../log/contract.js'
import type { CopyDriver, NamedTombstone } from '../log/copy-contract.js'
import type { Tally } from './copy-report.js'

/** Brings over what erased threads left behind, so that their next run says `restarted` there as well. */
export async function copyTombstones(
  from: CopyDriver,
  to: Driver & CopyDriver,
  tenants: ReadonlySet<TenantId>,
  options: { readonly deleteMissing: boolean; readonly tally: Tally; readonly signal: AbortSignal | undefined },
): Promise<void> {
  for (let cursor: string | undefined; ; ) {
    const page = await from.listTombstones(cursor === undefined ? {} : { cursor })
    for (const tombstone of page.tombstones) {
      if (options.signal?.aborted) return
      if (tenants.has(tombstone.tenant)) await copyOne(to, tombstone, options)
    }
    cursor = page.cursor
    if (cursor === undefined) return
  }
}

async function copyOne(
  to: Driver & CopyDriver,
  { tenant, thread, at, reason }: NamedTombstone,
  { deleteMissing, tally }: { readonly deleteMissing: boolean; readonly tally: Tally },
): Promise<void> {
  const there = await to.tombstone(tenant, thread)
  if (there !== undefined && there.at >= at) return
  if (await to.bury(tenant, thread, { at, reason })) {
    tally.add({ tombstones: 1 })
    return
  }
  if (deleteMissing) {
    const result = await to.erase({ tenant, thread, tombstone: { at, reason } })
    if (result !== 'conflict') tally.add({ removed: result.erased, tombstones: 1 })
    return
  }
  tally.refuse({
    tenant,
    thread: threadIdInput(thread),
    reason: 'exists',
    message: `Thread "${thread}" was erased in the source, and the destination has one of that name. Erase it there too.`,
  })
}
