import type { Redactor } from '../../codec/secret/redactor.js'
import type { TenantId } from '../../core/ids.js'
import type { StoreRetentionPolicy, SweepReport } from '../../core/retention.js'
import type { LogStore } from '../../log/log-store.js'
import type { StoreClock } from '../../log/store-clock.js'
import type { Store } from '../../store/store.js'
import type { Observer } from '../../telemetry/observer.js'
import type { Attempts } from '../step/attempt/attempt.js'
import type { Company } from '../worker/company.js'
import type { WorkerSigns } from '../worker/presence.js'

/** What threads need of the open store. */
export interface RuntimeEnvironment {
  readonly logs: LogStore
  readonly clock: StoreClock
  readonly randomId: () => string
  readonly random: () => number
  /** Identifies this process to people. */
  readonly owner: string
  readonly observer: Observer
  /** Who runs in this process. */
  readonly company: Company
  /** Effects of this process that are in progress. */
  readonly attempts: Attempts
  /** Removes from values what must not be kept; undefined if everything may be. */
  readonly redactor: Redactor | undefined
  /** Those that must stop before the store is closed. */
  readonly workers: LiveWorkers
  /** Where workers report that they are there; undefined if nothing is reported. */
  readonly signs?: WorkerSigns | undefined
  /** How long threads are kept. */
  readonly retention: StoreRetentionPolicy
  store(tenant: TenantId): Store
  /** Starts removing what the policy no longer keeps, for one tenant or for all. */
  sweep(tenant: TenantId | undefined): Sweep
}

/** One pass over what has expired, in small pieces. */
export interface Sweep {
  /** The next piece, and what it removed. `more`: the pass is not over. */
  step(): Promise<{ readonly more: boolean; readonly swept: SweepReport }>
}

/** The workers of one open store, of all tenants. */
export interface LiveWorkers {
  readonly running: Set<{ stop(): Promise<void> }>
  /** From now on none is started. */
  closing: boolean
}
