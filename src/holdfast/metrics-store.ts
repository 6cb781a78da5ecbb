import { hostname } from 'node:os'
import { DEFAULT_TENANT, type TenantId } from '../core/ids.js'
import type { LogStore } from '../log/log-store.js'
import type { Collection } from '../store/collection.js'
import { type Scope, Store } from '../store/store.js'
import {
  isProcessMetrics,
  METRICS_COLLECTION,
  METRICS_SCOPE,
  type ProcessMetrics,
} from '../telemetry/process-metrics.js'
import type { Telemetry } from '../telemetry/telemetry.js'

/**
 * Where metrics are kept if there are keys: sealed like everything else, without creating a key for any of the user's
 * tenants.
 */
const METRICS_TENANT = 'holdfast.metrics' as TenantId

/** A report that has not been renewed for this long belongs to a process that is gone. */
const TTL_MS = 24 * 60 * 60 * 1000

/** Where processes leave what they say of themselves. It is of the process and not of one tenant. */
export function housekeepingOf(store: LogStore): Scope {
  const tenant = store.hasKeys ? METRICS_TENANT : DEFAULT_TENANT
  return new Store(store.items, tenant).scope(METRICS_SCOPE)
}

/** Where the processes that use a store keep their metrics. */
function metricsOf(store: LogStore): Collection<ProcessMetrics> {
  return housekeepingOf(store).collection(METRICS_COLLECTION, { ttlMs: TTL_MS })
}

/** Reports at regular intervals, under a key of this open store: several in one process add up. */
export function reportMetrics(store: LogStore, telemetry: Telemetry, everyMs: number): void {
  const owner = `${hostname()}:${process.pid}`
  const key = `${owner}:${store.randomId()}`
  const reports = metricsOf(store)
  const write = async (metrics: ProcessMetrics) => {
    await reports.put(key, metrics)
  }
  telemetry.reportTo(write, { everyMs, process: owner, now: () => store.clock.now() })
}

/** What each process that opened the store has counted, in the last day. */
export async function listMetrics(store: LogStore): Promise<readonly ProcessMetrics[]> {
  await store.observer.flush()
  const reports = metricsOf(store)
  const all: ProcessMetrics[] = []
  let cursor: string | undefined
  do {
    const page = await reports.list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) })
    for (const { value } of page.items) if (isProcessMetrics(value)) all.push(value)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}
