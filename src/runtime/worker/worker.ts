import { setMaxListeners } from 'node:events'
import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { addReports, hasSwept, type SweepReport } from '../../core/retention.js'
import { nameLog } from '../../core/log-name.js'
import { onProcessSignal } from '../../core/on-process-signal.js'
import type { Head } from '../../log/contract.js'
import type { LogNews } from '../../log/news/messages.js'
import type { DueWatch } from '../../log/news/news.js'
import { unheard } from '../events/event-feed.js'
import { PROGRAM, VERSION } from '../run/labels.js'
import { isCompatible } from '../upgrade/migration.js'
import type { ProgramPlan } from '../program/program.js'
import { StoppedError } from '../run/run.js'
import { NotNowError, type RuntimeEnvironment, runThread } from '../run/run-thread.js'
import { checkCount, readPrograms, type WorkerEvent, type WorkerOptions } from './worker-options.js'
import { WorkerRests } from './worker-rests.js'

const PAGE = 100
/** A thread is never passed over for one that stands this many places behind it. */
const SPREAD = 25
const SWEEP_EVERY_MS = 60_000
/** A sweep that takes long, because a backend has to look at every item, is followed by a rest this many times as long. */
const SWEEP_REST = 20
const MOST_BREATH_MS = 1000
/** The part of the places in use at which the worker looks for more before its time. */
const REFILL_BELOW = 0.75

/**
 * Takes up whatever is due, of any number of threads: runs that were interrupted, sleepers, expired questions,
 * answers, signals and waiting input. Looks for them by one query of the thread index; threads at rest cost nothing.
 */
export class Worker {
  readonly #environment: RuntimeEnvironment
  readonly #tenant: TenantId | undefined
  readonly #options: WorkerOptions
  readonly #plans: ReadonlyMap<string, ProgramPlan>
  readonly #concurrency: number
  readonly #drain = new AbortController()
  readonly #abort = new AbortController()
  readonly #running = new Map<string, Promise<void>>()
  readonly #pollMs: number
  readonly #rests: WorkerRests
  readonly #polling: Promise<void>
  readonly #onOpen = () => this.nudge()
  readonly #due: DueWatch
  #leaveSignals = () => {}
  #wake = new AbortController()
  #sweepAt: number
  #sweeping: Promise<void> | undefined

  constructor(environment: RuntimeEnvironment, tenant: TenantId | undefined, options: WorkerOptions) {
    this.#environment = environment
    this.#tenant = tenant
    this.#options = options
    this.#plans = readPrograms(options)
    this.#concurrency = checkCount('concurrency', options.concurrency ?? 10, 10_000)
    this.#pollMs = checkCount('pollMs', options.pollMs ?? 500, 3_600_000)
    this.#rests = new WorkerRests(environment, this.#pollMs)
    checkCount('maxCrashes', options.maxCrashes ?? 5, 1_000_000)
    this.#sweepAt = environment.clock.monotonic() + SWEEP_EVERY_MS
    if (environment.workers.closing) throw new ClosedError('This Holdfast')
    environment.workers.running.add(this)
    environment.company.onOpen.add(this.#onOpen)
    // Each thread that runs here listens; Node warns of a leak from the eleventh on.
    setMaxListeners(0, this.#abort.signal)
    if (options.handleSignals ?? true) {
      this.#leaveSignals = onProcessSignal(() => void this.stop())
    }
    this.#due = environment.logs.news.onDue((news) => this.#hear(news))
    this.#polling = this.#poll()
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#running.size
  }

  /** Looks for work now and does not wait for the next time. */
  nudge(): void {
    this.#wake.abort()
  }

  /**
   * Starts nothing new, lets steps end within the grace period, records them, lets go of all threads. What did not end
   * in time is taken up by another worker as after a crash, but without waiting for a lease.
   */
  async stop(): Promise<void> {
    const { clock } = this.#environment
    if (!this.#drain.signal.aborted) {
      this.#leaveSignals()
      this.#drain.abort()
      this.nudge()
      const graceOver = new AbortController()
      const grace = clock.sleep(this.#options.graceMs ?? 30_000, graceOver.signal).then(
        () => this.#abort.abort(),
        () => {},
      )
      await this.#polling
      await Promise.all(this.#running.values())
      graceOver.abort()
      await grace
    }
    await this.#polling
    await Promise.all(this.#running.values())
    await this.#sweeping
    this.#due.close()
    this.#environment.workers.running.delete(this)
    this.#environment.company.onOpen.delete(this.#onOpen)
  }

  /** Resolves when the worker has stopped, by a signal or by `stop`. */
  async done(): Promise<void> {
    await this.#polling
    await this.stop()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  /** Something is due, as far as is known: of one of these programs, or nobody knows of which. */
  #hear(news: LogNews | undefined): void {
    if (news !== undefined) {
      const isOurs = this.#tenant === undefined || news.log.tenant === this.#tenant
      if (!isOurs || !this.#plans.has(news.program) || (news.wakeAt ?? 0) > this.#environment.clock.now()) return
    }
    this.nudge()
  }

  async #poll(): Promise<void> {
    while (!this.#drain.signal.aborted) {
      let more = false
      try {
        more = await this.#takeDue()
        this.#sweep()
      } catch (error) {
        // Nothing can be done any more with a store that was closed under the worker.
        if (isHoldfastError(error, 'closed')) return void this.stop()
        this.#rests.storeFailed(error)
        this.#tell({ type: 'error', error })
      }
      if (more && this.#running.size < this.#concurrency) continue
      // Not in step with other workers, which would all ask for the same threads at the same moment.
      const pollMs = this.#pollMs * (0.75 + 0.5 * this.#environment.random())
      await this.#sleep(this.#rests.storeRestMs || pollMs)
    }
  }

  async #sleep(ms: number): Promise<void> {
    await this.#environment.clock.sleep(ms, this.#wake.signal).catch(() => {})
    this.#wake = this.#wake.signal.aborted ? new AbortController() : this.#wake
  }

  /** Takes up to the free places' worth of due threads. True when there may be more. */
  async #takeDue(): Promise<boolean> {
    const { clock } = this.#environment
    let cursor: string | undefined
    do {
      if (this.#rests.storeRestMs > 0 || this.#environment.company.isClosed) return false
      const free = this.#concurrency - this.#running.size
      if (free <= 0) return false
      const page = await this.#environment.logs.list({
        wakeBefore: clock.canBeWrong ? 'now' : clock.now(),
        lease: 'free',
        order: 'updated',
        direction: 'asc',
        limit: PAGE,
        ...(this.#tenant === undefined ? {} : { tenant: this.#tenant }),
        ...(cursor === undefined ? {} : { cursor }),
      })
      const mine = page.heads.filter((head) => !this.#running.has(nameLog(head.log)) && this.#fits(head))
      for (const head of spread(mine, this.#environment.random).slice(0, free)) this.#take(head)
      if (mine.length > free) return false
      cursor = page.cursor
    } while (cursor !== undefined && !this.#drain.signal.aborted)
    return false
  }

  #fits(head: Head): boolean {
    const plan = this.#plans.get(String(head.index.metadata[PROGRAM] ?? ''))
    const log = nameLog(head.log)
    if (plan === undefined || this.#rests.has(log, head.seq)) return false
    const version = String(head.index.metadata[VERSION] ?? '')
    if (isCompatible(version, plan)) return true
    this.#rests.skip(log, head.seq)
    const reason = `It was begun by ${plan.name} ${version}, which version ${plan.version} does not continue.`
    this.#tell({ type: 'skipped', log, reason })
    return false
  }

  #take(head: Head): void {
    const log = nameLog(head.log)
    const running = this.#run(head, log).finally(() => {
      this.#running.delete(log)
      // Places are free, and perhaps others waited for them. Not for each one: with many threads waiting, a look at the
      // index costs more than a thread.
      if (this.#running.size === Math.floor(this.#concurrency * REFILL_BELOW)) this.nudge()
    })
    this.#running.set(log, running)
  }

  async #run(head: Head, log: string): Promise<void> {
    const { clock, owner } = this.#environment
    const { leaseMs: lease, durability, frequency, maxCrashes = 5, context, name } = this.#options
    const { tenant, thread, branch } = head.log
    this.#tell({ type: 'taken', log, idleMs: clock.now() - head.index.updatedAt })
    let makesRoom = false
    try {
      const outcome = await runThread(
        this.#environment,
        this.#plans.get(String(head.index.metadata[PROGRAM])) as ProgramPlan,
        head.log,
        {
          hasInput: false,
          atLeast: head.seq,
          emit: this.#options.onEvent ? (event) => this.#tell({ type: 'event', log, event }) : unheard,
          signal: this.#abort.signal,
          isDraining: () => this.#drain.signal.aborted || makesRoom,
          makeRoom: () => {
            makesRoom = true
          },
          maxClaims: maxCrashes,
          owner: name ?? owner,
          context: await context?.({ tenant, thread, branch }),
          ...(lease === undefined ? {} : { leaseMs: lease }),
          ...(durability === undefined ? {} : { durability }),
          ...(frequency === undefined ? {} : { frequency }),
        },
      )
      // It is still due, and would be taken up again at once and for ever.
      if (outcome.status === 'incompatible') this.#rests.skip(log, head.seq)
      this.#rests.worked(log)
      this.#tell({ type: 'ended', log, outcome })
    } catch (error) {
      const stopped =
        error instanceof NotNowError ||
        error instanceof StoppedError ||
        isHoldfastError(error, 'fenced') ||
        isHoldfastError(error, 'closed')
      // It is due as before: others have their turn first, and nobody's log is flooded.
      if (!stopped) this.#rests.failed(log, error)
      this.#tell(stopped ? { type: 'stopped', log } : { type: 'error', log, error })
    }
  }

  // Beside the polling: where many items expired, or each must be looked at, threads would wait for it.
  #sweep(): void {
    if (this.#sweeping !== undefined || this.#environment.clock.monotonic() < this.#sweepAt) return
    this.#sweeping = this.#sweepSome().finally(() => {
      this.#sweeping = undefined
    })
  }

  async #sweepSome(): Promise<void> {
    const { clock } = this.#environment
    const sweep = this.#environment.sweep(this.#tenant)
    let looked = 0
    let all: SweepReport | undefined
    try {
      for (let more = true; more && !this.#drain.signal.aborted; ) {
        const began = clock.monotonic()
        const piece = await sweep.step()
        const took = clock.monotonic() - began
        more = piece.more
        all = all ? addReports(all, piece.swept) : piece.swept
        if (!hasSwept(piece.swept)) looked += took
        // Every other moment belongs to those who append.
        if (more && took > 0) await clock.sleep(Math.min(took, MOST_BREATH_MS), this.#drain.signal).catch(() => {})
      }
    } catch (error) {
      this.#tell({ type: 'error', error })
    }
    if (all && hasSwept(all)) this.#tell({ type: 'swept', swept: all })
    this.#sweepAt = clock.monotonic() + Math.max(SWEEP_EVERY_MS, looked * SWEEP_REST)
  }

  // A listener that throws must not end the worker.
  #tell(event: WorkerEvent): void {
    try {
      this.#options.onEvent?.(event)
    } catch {}
  }
}

// Not in strict order: workers that look at the same moment would all go for the same threads. Not by chance alone: where
// work never runs out, a thread whose worker died could be passed over again and again.
function spread<Item>(items: readonly Item[], random: () => number): readonly Item[] {
  return items
    .map((item, i) => ({ item, at: i + SPREAD * random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}
