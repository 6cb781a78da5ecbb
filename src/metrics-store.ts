import { hostname } from 'node:os'
import { DEFAULT_TENANT, type TenantId } from './core/ids.js'
import type { LogStore } from './log/log-store.js'
import type { Collection } from './store/collection.js'
import { type Scope, Store } from './store/store.js'
import { METRICS_COLLECTION, METRICS_SCOPE, type ProcessMetrics } from './telemetry/process-metrics.js'
import type { Telemetry } from './telemetry/telemetry.js'

/** Where figures lie when there are keys: sealed as everything else, and no tenant of the user's gets a key by it. */
const METRICS_TENANT = 'holdfast.metrics' as TenantId

/** A report that was not renewed for so long is of a process long gone. */
const TTL_MS = 24 * 60 * 60 * 1000

/** Where processes leave what they say of themselves. It is of the process and not of one tenant. */
export function housekeepingOf(store: LogStore): Scope {
  const tenant = store.hasKeys ? METRICS_TENANT : DEFAULT_TENANT
  return new Store(store.items, tenant).scope(METRICS_SCOPE)
}

/** Where the processes that use a store leave their figures. */
export function metricsOf(store: LogStore): Collection<ProcessMetrics> {
  return housekeepingOf(store).collection(METRICS_COLLECTION, { ttlMs: TTL_MS })
}

/** Reports there every so often, under a key of this opening: what several count in one process adds up. */
export function reportMetrics(store: LogStore, telemetry: Telemetry, everyMs: number): void {
  const owner = `${hostname()}:${process.pid}`
  const key = `${owner}:${store.randomId()}`
  const reports = metricsOf(store)
  const write = async (metrics: ProcessMetrics) => {
    await reports.put(key, metrics)
  }
  telemetry.reportTo(write, { everyMs, process: owner, now: () => store.clock.now() })
}
