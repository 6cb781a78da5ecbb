import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { ClosedError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { nameLog } from '../../core/log-name.js'
import { onProcessSignal } from '../../core/async/on-process-signal.js'
import type { ProgramPlan } from '../program/program.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkLease } from '../run/request/run-options.js'
import { DueRuns } from './due-runs.js'
import { DueSearch, POLL_MS } from './due-search.js'
import { type DueKey, isDue, parseDue, workedOf } from './due-thread.js'
import { Limits } from './limits.js'
import { Places } from './places.js'
import { Presence } from './presence.js'
import {
  checkCount,
  readPrograms,
  type Worked,
  type WorkerEvent,
  type WorkerOptions,
  type WorkerStatus,
} from './worker-options.js'
import { WorkerRests } from './worker-rests.js'
import { WorkerSweep } from './worker-sweep.js'

/** A look that takes so long hangs: a store that is away is given up long before. */
const STUCK_MS = 300_000
/** How long the places of a worker that died count as taken, unless it says otherwise. */
const DEFAULT_LEASE_MS = 10_000

/**
 * Picks up whatever is due, across any number of threads: runs that were interrupted, sleeping runs, expired questions,
 * answers, signals and waiting input. Is notified of them where possible, and takes them with one query of the index of
 * what is due; threads at rest, and those of other programs, cost nothing.
 */
export class Worker {
  readonly #environment: RuntimeEnvironment
  readonly #tenant: TenantId | undefined
  readonly #options: WorkerOptions
  readonly #plans: ReadonlyMap<string, ProgramPlan>
  readonly #concurrency: number
  readonly #drain = new AbortController()
  readonly #abort = new AbortController()
  readonly #runs: DueRuns
  readonly #places: Places
  readonly #search: DueSearch
  readonly #sweep: WorkerSweep
  readonly #presence: Presence | undefined
  readonly #limits: Limits | undefined
  readonly #onOpen = () => this.nudge()
  /** Hears how a thread ended that another engine brought. */
  readonly #awaited = new Map<string, (event: WorkerEvent) => void>()
  #leaveSignals = () => {}

  constructor(environment: RuntimeEnvironment, tenant: TenantId | undefined, options: WorkerOptions) {
    this.#environment = environment
    this.#tenant = tenant
    this.#options = options
    const plans = readPrograms(options)
    this.#plans = plans
    this.#concurrency = checkCount('concurrency', options.concurrency ?? 10, 10_000)
    const pollMs = options.pollMs === undefined ? undefined : checkCount('pollMs', options.pollMs, 3_600_000)
    const rests = new WorkerRests(environment, pollMs ?? POLL_MS)
    checkCount('maxCrashes', options.maxCrashes ?? 5, 1_000_000)
    checkLease(options.leaseMs)
    // 0: steps in progress are cut off at once.
    if (options.graceMs !== 0) checkCount('graceMs', options.graceMs ?? 30_000, 2 ** 31 - 1)
    const limits = this.#readLimits(options)
    this.#limits = limits
    if (environment.workers.closing) throw new ClosedError('This Holdfast')
    environment.workers.running.add(this)
    environment.company.onOpen.add(this.#onOpen)
    // Each thread that runs here listens; Node warns of a leak at the eleventh.
    setMaxListeners(0, this.#abort.signal)
    if (options.handleSignals ?? true) {
      this.#leaveSignals = onProcessSignal(() => void this.stop())
    }
    const { signs, clock, randomId } = environment
    const owner = this.#owner
    const drain = this.#drain.signal
    const tell = (event: WorkerEvent) => this.#tell(event)
    this.#sweep = new WorkerSweep(environment, tenant, drain, tell)
    const runs = new DueRuns(environment, { options, plans, owner, rests, drain, abort: this.#abort.signal, tell })
    this.#runs = runs
    const places = new Places(environment, {
      count: this.#concurrency,
      runs,
      rests,
      limits,
      drain,
      tell,
      onRefused: (log) => this.#awaited.get(log)?.({ type: 'stopped', log }),
      wantMore: () => this.nudge(),
    })
    this.#places = places
    if (signs) this.#presence = new Presence(signs, randomId(), clock, () => this.#describe())
    this.#search = new DueSearch(environment, {
      tenant,
      plans,
      owner,
      pollMs,
      looks: options.looks ?? true,
      places,
      runs,
      rests,
      limits,
      drain,
      tell,
      onLooked: () => this.#sweep.begin(),
      onClosed: () => void this.stop(),
    })
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#places.busy
  }

  /** What it is doing now, for monitoring. */
  get status(): WorkerStatus {
    const isDraining = this.#drain.signal.aborted
    const isStuck = this.#environment.clock.monotonic() - this.#search.looksSince > STUCK_MS
    const { name, programs, places, busy } = this.#describe()
    return { state: isDraining ? 'draining' : isStuck ? 'stuck' : 'running', name, programs, places, busy }
  }

  /**
   * For other engines, which learn from `hf.dispatch` what is due: runs a thread here if it is due. However many workers
   * were given it, and however often, the claim decides who runs it. Resolves when the thread is released.
   */
  async work(due: DueKey): Promise<Worked> {
    const key = parseDue(due)
    const log = nameLog(key)
    if (this.#drain.signal.aborted || this.#environment.company.isClosed) return { status: 'stopped' }
    if (this.#places.has(log)) return { status: 'held' }
    const head = await this.#environment.logs.head(key)
    const isOurs = this.#tenant === undefined || key.tenant === this.#tenant
    if (head === undefined || !isDue(head, this.#environment.clock.now())) return { status: 'idle' }
    if (head.lease !== null || this.#places.has(log)) return { status: 'held' }
    if (!isOurs || !this.#runs.fits(head)) return { status: 'unfit' }
    if (this.#drain.signal.aborted) return { status: 'stopped' }
    let worked: Worked = { status: 'idle' }
    this.#awaited.set(log, (event) => {
      worked = workedOf(event) ?? worked
    })
    try {
      await this.#places.take(head)
    } finally {
      this.#awaited.delete(log)
    }
    return worked
  }

  /** Looks for work now instead of at the next interval. */
  nudge(): void {
    this.#search.nudge()
  }

  /**
   * Starts nothing new, lets steps finish within the grace period, records them, releases all threads. What did not end
   * in time is picked up by another worker as after a crash, but without waiting for a lease.
   */
  async stop(): Promise<void> {
    const { clock } = this.#environment
    if (!this.#drain.signal.aborted) {
      this.#leaveSignals()
      this.#drain.abort()
      this.#presence?.tell()
      this.nudge()
      const graceOver = new AbortController()
      const grace = clock.sleep(this.#options.graceMs ?? 30_000, graceOver.signal).then(
        () => this.#abort.abort(),
        () => {},
      )
      await this.#search.ended
      await this.#places.empty()
      graceOver.abort()
      await grace
    }
    await this.#search.ended
    await this.#places.empty()
    await this.#sweep.ended()
    await this.#limits?.close()
    this.#search.close()
    await this.#presence?.close()
    this.#environment.workers.running.delete(this)
    this.#environment.company.onOpen.delete(this.#onOpen)
  }

  /** Resolves when the worker has stopped, by a signal or by `stop`. */
  async done(): Promise<void> {
    await this.#search.ended
    await this.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** By which people know it, and claims are made. */
  get #owner(): string {
    return this.#options.name ?? this.#environment.owner
  }

  #describe() {
    return {
      name: this.#owner,
      host: hostname(),
      pid: process.pid,
      ...(this.#tenant === undefined ? {} : { tenant: this.#tenant }),
      programs: [...this.#plans.values()].map(({ name, version }) => ({ name, version })),
      places: this.#concurrency,
      busy: this.#places.busy,
      draining: this.#drain.signal.aborted,
    }
  }

  #readLimits({ limits, leaseMs = DEFAULT_LEASE_MS }: WorkerOptions): Limits | undefined {
    if (limits === undefined) return undefined
    const programs = [...this.#plans.keys()]
    return new Limits(this.#environment, { limits, programs, leaseMs, onOpen: () => this.nudge() })
  }

  // A listener that throws must not end the worker.
  #tell(event: WorkerEvent): void {
    if (event.log !== undefined) this.#awaited.get(event.log)?.(event)
    try {
      this.#options.onEvent?.(event)
    } catch {}
  }
}
