import type { OptionNames } from '../core/wording/option-names.js'
import { type TenantId, type ThreadIdInput, threadIdInput } from '../core/ids.js'
import { parseStoreRetention, type StoreRetention, type SweepReport } from '../core/retention.js'
import type { MetadataValue } from '../log/contract.js'
import type { LogStore } from '../log/log-store.js'
import type { SweptToArchive } from '../archive/swept-archive.js'
import { Sweeper } from '../retention/sweeper.js'
import type { SweptThread } from '../retention/sweep-options.js'
import type { RuntimeEnvironment } from '../runtime/run/environment.js'
import { type HoldfastPlaces, missingArchive, sweptArchive } from './places.js'

/**
 * How often a process looks for large values that nothing points to: as often as they become old enough to be removed.
 */
const COLLECT_EVERY_MS = 60 * 60 * 1000
/** How often a process looks for branches with more checkpoints than are kept. */
const CUT_EVERY_MS = 10 * 60 * 1000

/** What a sweep looks at, and whether it only counts. */
export interface SweepThreadsOptions {
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean
  /** Instead of the policy that the store was opened with. */
  readonly retention?: StoreRetention
  /** Only threads with these labels. */
  readonly metadata?: Readonly<Record<string, MetadataValue>>
  /** How long a large value is spared after it was last written or pointed to, in milliseconds. Default 1 hour. */
  readonly graceMs?: number
  readonly signal?: AbortSignal
  /** Called with each thread from which something was removed. */
  readonly onSwept?: (swept: Swept) => void
}

export const SWEEP_OPTIONS: OptionNames<SweepThreadsOptions> = {
  dryRun: true,
  retention: true,
  metadata: true,
  graceMs: true,
  signal: true,
  onSwept: true,
}

/** What a sweep removed from one thread. */
export interface Swept extends Omit<SweptThread, 'thread'> {
  readonly thread: ThreadIdInput
}

/**
 * The sweeps of this process. Not every sweep does everything: looking for large values starts with a walk over all
 * tenants, and trimming with one over all branches that changed.
 */
export function sweeps(store: LogStore, archive: SweptToArchive | undefined): RuntimeEnvironment['sweep'] {
  let collected = store.clock.monotonic()
  const cutAt = new Map<TenantId | undefined, { readonly monotonic: number; readonly now: number }>()
  return (tenant) => {
    const [monotonic, now] = [store.clock.monotonic(), store.clock.now()]
    const collect = monotonic - collected >= COLLECT_EVERY_MS
    if (collect) collected = monotonic
    const last = cutAt.get(tenant)
    if (last && monotonic - last.monotonic < CUT_EVERY_MS) {
      return new Sweeper(store, store.retention, { tenant, collect, archive, changedSince: 'never' })
    }
    const since = last ? { changedSince: last.now } : {}
    const sweeper = new Sweeper(store, store.retention, { tenant, collect, archive, ...since })
    return {
      async step() {
        const done = await sweeper.step()
        // Not before its end: what a sweep that failed did not come to is not looked at again otherwise.
        if (!done.more) cutAt.set(tenant, { monotonic, now })
        return done
      },
    }
  }
}

/** One sweep of everything, as users ask for it. */
export async function sweepNow(
  store: LogStore,
  places: HoldfastPlaces,
  tenant: TenantId | undefined,
  { retention, onSwept, ...rest }: SweepThreadsOptions,
): Promise<SweepReport> {
  const policy = retention === undefined ? store.retention : parseStoreRetention(retention)
  if ((policy.archive || policy.archiveForMs !== undefined) && places.archive === undefined)
    throw missingArchive('retention.archive')
  const sweeper = new Sweeper(store, policy, {
    ...rest,
    archive: sweptArchive(places),
    tenant,
    ...(onSwept === undefined
      ? {}
      : { onSwept: (swept) => onSwept({ ...swept, thread: threadIdInput(swept.thread) }) }),
  })
  return sweeper.run()
}
