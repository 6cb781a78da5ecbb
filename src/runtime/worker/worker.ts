import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { ClosedError } from '../../core/errors.js'
import { checkWhole } from '../../core/wording/choices.js'
import type { TenantId } from '../../core/ids.js'
import { nameLog } from '../../core/log-name.js'
import { onProcessSignal } from '../../core/async/on-process-signal.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkLease } from '../run/request/run-options.js'
import { DueRuns } from './due-runs.js'
import { DueSearch, POLL_MS } from './due-search.js'
import {
  type DueKey,
  isDue,
  parseDue,
  readPrograms,
  type Worked,
  workedOf,
  type WorkerEvent,
  type WorkerOptions,
  type WorkerParts,
  type WorkerStatus,
} from './worker-options.js'
import { Limits } from './limits.js'
import { Places } from './places.js'
import { Presence } from './presence.js'
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
  readonly #parts: WorkerParts
  readonly #drain = new AbortController()
  readonly #abort = new AbortController()
  readonly #runs: DueRuns
  readonly #places: Places
  readonly #search: DueSearch
  readonly #sweep: WorkerSweep
  readonly #presence: Presence | undefined
  /** Hears how a thread ended that another engine brought. */
  readonly #awaited = new Map<string, (event: WorkerEvent) => void>()
  #leaveSignals = () => {}

  constructor(environment: RuntimeEnvironment, tenant: TenantId | undefined, options: WorkerOptions) {
    const plans = readPrograms(options)
    checkWhole('concurrency', options.concurrency ?? 10, 10_000)
    const pollMs = checkWhole('pollMs', options.pollMs ?? POLL_MS, 3_600_000)
    checkWhole('maxCrashes', options.maxCrashes ?? 5, 1_000_000)
    checkLease(options.leaseMs)
    // 0: steps in progress are cut off at once.
    if (options.graceMs !== 0) checkWhole('graceMs', options.graceMs ?? 30_000, 2 ** 31 - 1)
    const nudge = () => this.nudge()
    const { limits, leaseMs = DEFAULT_LEASE_MS } = options
    const programs = [...plans.keys()]
    this.#parts = {
      environment,
      tenant,
      options,
      plans,
      owner: options.name ?? environment.owner,
      rests: new WorkerRests(environment, pollMs),
      limits: limits && new Limits(environment, { limits, programs, leaseMs, onOpen: nudge }),
      drain: this.#drain.signal,
      abort: this.#abort.signal,
      tell: (event) => this.#tell(event),
      nudge,
    }
    if (environment.workers.closing) throw new ClosedError('This Holdfast')
    environment.workers.running.add(this)
    environment.company.onOpen.add(nudge)
    // Each thread that runs here listens; Node warns of a leak at the eleventh.
    setMaxListeners(0, this.#abort.signal)
    if (options.handleSignals ?? true) {
      this.#leaveSignals = onProcessSignal(() => void this.stop())
    }
    const { signs, clock, randomId } = environment
    this.#sweep = new WorkerSweep(this.#parts)
    this.#runs = new DueRuns(this.#parts)
    this.#places = new Places(this.#parts, this.#runs, (log) => this.#awaited.get(log)?.({ type: 'stopped', log }))
    if (signs) this.#presence = new Presence(signs, randomId(), clock, () => this.#describe())
    this.#search = new DueSearch(this.#parts, this.#runs, this.#places, {
      looked: () => this.#sweep.begin(),
      closed: () => void this.stop(),
    })
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#places.busy
  }

  /** What it is doing now, for monitoring. */
  get status(): WorkerStatus {
    const isDraining = this.#drain.signal.aborted
    const isStuck = this.#parts.environment.clock.monotonic() - this.#search.looksSince > STUCK_MS
    const { name, programs, places, busy } = this.#describe()
    return { state: isDraining ? 'draining' : isStuck ? 'stuck' : 'running', name, programs, places, busy }
  }

  /**
   * For other engines, which learn from `hf.dispatch` what is due: runs a thread here if it is due. However many workers
   * were given it, and however often, the claim decides who runs it. Resolves when the thread is released.
   */
  async work(due: DueKey): Promise<Worked> {
    const { environment, tenant, drain } = this.#parts
    const key = parseDue(due)
    const log = nameLog(key)
    if (drain.aborted || environment.company.isClosed) return { status: 'stopped' }
    if (this.#places.has(log)) return { status: 'held' }
    const head = await environment.logs.head(key)
    const isOurs = tenant === undefined || key.tenant === tenant
    if (head === undefined || !isDue(head, environment.clock.now())) return { status: 'idle' }
    if (head.lease !== null || this.#places.has(log)) return { status: 'held' }
    if (!isOurs || !this.#runs.fits(head)) return { status: 'unfit' }
    if (drain.aborted) return { status: 'stopped' }
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
    const { environment, options, limits, nudge } = this.#parts
    if (!this.#drain.signal.aborted) {
      this.#leaveSignals()
      this.#drain.abort()
      this.#presence?.tell()
      nudge()
      const graceOver = new AbortController()
      const grace = environment.clock.sleep(options.graceMs ?? 30_000, graceOver.signal).then(
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
    await limits?.close()
    this.#search.close()
    await this.#presence?.close()
    environment.workers.running.delete(this)
    environment.company.onOpen.delete(nudge)
  }

  /** Resolves when the worker has stopped, by a signal or by `stop`. */
  async done(): Promise<void> {
    await this.#search.ended
    await this.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #describe() {
    const { tenant, options, plans, owner, drain } = this.#parts
    return {
      name: owner,
      host: hostname(),
      pid: process.pid,
      ...(tenant === undefined ? {} : { tenant }),
      programs: [...plans.values()].map(({ name, version }) => ({ name, version })),
      places: options.concurrency ?? 10,
      busy: this.#places.busy,
      draining: drain.aborted,
    }
  }

  // A listener that throws must not end the worker.
  #tell(event: WorkerEvent): void {
    if (event.log !== undefined) this.#awaited.get(event.log)?.(event)
    try {
      this.#parts.options.onEvent?.(event)
    } catch {}
  }
}
