import { setMaxListeners } from 'node:events'
import { hostname } from 'node:os'
import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { addReports, hasSwept, type SweepReport } from '../../core/retention.js'
import { nameLog } from '../../core/log-name.js'
import { onProcessSignal } from '../../core/on-process-signal.js'
import type { DueQuery, Head } from '../../log/contract.js'
import type { LogNews } from '../../log/news/messages.js'
import type { DueWatch } from '../../log/news/news.js'
import { unheard } from '../events/event-feed.js'
import { PROGRAM, VERSION } from '../run/labels.js'
import { isScheduleLabel, programOfLabel, scheduleLabel } from '../schedule/schedule-state.js'
import { startOccurrences } from '../schedule/start-occurrences.js'
import { isCompatible } from '../upgrade/migration.js'
import type { ProgramPlan } from '../program/program.js'
import { checkLease } from '../run/run-options.js'
import { StoppedError } from '../run/stop-in-time.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { NotNowError } from '../run/admit.js'
import { runThread } from '../run/run-thread.js'
import { type DueKey, isDue, parseDue, workedOf } from './due-thread.js'
import { Presence } from './presence.js'
import { dueSince } from './queue-age.js'
import { type Admission, Limits } from './limits.js'
import {
  checkCount,
  readPrograms,
  type Worked,
  type WorkerEvent,
  type WorkerOptions,
  type WorkerStatus,
} from './worker-options.js'
import { WorkerRests } from './worker-rests.js'

/** How often to look for work without being notified: where news arrives, and where it doesn't. */
const SAFETY_POLL_MS = 5000
const POLL_MS = 500
/** For this long, what a worker was given is reserved for it, until it has claimed it. */
const RESERVE_MS = 1000
/** How much longer than others a worker waits for what it did not run. */
const OTHERS_FIRST_MS = 100
/**
 * How long a thread that becomes due is left to whoever ran it last and has its state in memory: about as long as the news of
 * it takes, where it arrives by message, and where processes look for changes.
 */
const LEAVE_MS = 20
const LEAVE_UNTOLD_MS = 75
/** Where nothing can be reserved, threads that are left alone come before the others at every look. */
const LEFT_ALONE = 100
const SWEEP_EVERY_MS = 60_000
/**
 * A sweep that takes long, because a backend has to look at every item, is followed by a rest this many times as long.
 */
const SWEEP_REST = 20
const MOST_BREATH_MS = 1000
/** The part of the places in use at which the worker looks for more before its time. */
const REFILL_BELOW = 0.75
/**
 * What is taken ahead: as many as ended in this time. So short threads don't wait for the next look, nor others behind
 * long ones.
 */
const AHEAD_MS = 250
const MOST_AHEAD = 200
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
  /** What it asks the index for: threads of its programs, and their schedules. */
  readonly #labels: readonly string[]
  readonly #concurrency: number
  readonly #drain = new AbortController()
  readonly #abort = new AbortController()
  readonly #running = new Map<string, Promise<void>>()
  /** How often to look, if specified. */
  readonly #pollMs: number | undefined
  readonly #rests: WorkerRests
  readonly #polling: Promise<void>
  readonly #onOpen = () => this.nudge()
  readonly #due: DueWatch
  readonly #presence: Presence | undefined
  readonly #limits: Limits | undefined
  /** More may be due than there were places for. */
  #hasMore = false
  /** The tenant whose turn was last. */
  #turn: TenantId | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  /** Hears how a thread ended that another engine brought. */
  readonly #awaited = new Map<string, (event: WorkerEvent) => void>()
  /** Since when it looks for work; while it sleeps, never. */
  #looksSince = Number.POSITIVE_INFINITY
  /** Until when what it left alone is reserved for it. */
  #leftUntil = Number.NEGATIVE_INFINITY
  /** Reserved for this worker, and waiting for a place. */
  #ahead: { readonly head: Head; readonly until: number }[] = []
  /** Reserved for this worker, and refused by a limit that is reached. */
  #blocked: { readonly head: Head; readonly until: number }[] = []
  /** When the last threads ended, by the monotonic clock. */
  readonly #ends: number[] = []
  #leaveSignals = () => {}
  #wake = new AbortController()
  #sweepAt: number
  #sweeping: Promise<void> | undefined

  constructor(environment: RuntimeEnvironment, tenant: TenantId | undefined, options: WorkerOptions) {
    this.#environment = environment
    this.#tenant = tenant
    this.#options = options
    this.#plans = readPrograms(options)
    this.#labels = [...this.#plans.keys()].flatMap((name) => [name, scheduleLabel(name)])
    this.#concurrency = checkCount('concurrency', options.concurrency ?? 10, 10_000)
    this.#pollMs = options.pollMs === undefined ? undefined : checkCount('pollMs', options.pollMs, 3_600_000)
    this.#rests = new WorkerRests(environment, this.#pollMs ?? POLL_MS)
    checkCount('maxCrashes', options.maxCrashes ?? 5, 1_000_000)
    checkLease(options.leaseMs)
    // 0: steps in progress are cut off at once.
    if (options.graceMs !== 0) checkCount('graceMs', options.graceMs ?? 30_000, 2 ** 31 - 1)
    this.#limits = this.#readLimits(options)
    this.#sweepAt = environment.clock.monotonic() + SWEEP_EVERY_MS
    if (environment.workers.closing) throw new ClosedError('This Holdfast')
    environment.workers.running.add(this)
    environment.company.onOpen.add(this.#onOpen)
    // Each thread that runs here listens; Node warns of a leak at the eleventh.
    setMaxListeners(0, this.#abort.signal)
    if (options.handleSignals ?? true) {
      this.#leaveSignals = onProcessSignal(() => void this.stop())
    }
    this.#due = environment.logs.news.onDue((news) => this.#hear(news))
    const { signs, clock, randomId } = environment
    if (signs) this.#presence = new Presence(signs, randomId(), clock, () => this.#describe())
    this.#polling = this.#poll()
  }

  /** How many threads run here now. */
  get active(): number {
    return this.#running.size
  }

  /** What it is doing now, for monitoring. */
  get status(): WorkerStatus {
    const isDraining = this.#drain.signal.aborted
    const isStuck = this.#environment.clock.monotonic() - this.#looksSince > STUCK_MS
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
    if (this.#running.has(log)) return { status: 'held' }
    const head = await this.#environment.logs.head(key)
    const isOurs = this.#tenant === undefined || key.tenant === this.#tenant
    if (head === undefined || !isDue(head, this.#environment.clock.now())) return { status: 'idle' }
    if (head.lease !== null || this.#running.has(log)) return { status: 'held' }
    if (!isOurs || !this.#fits(head)) return { status: 'unfit' }
    if (this.#drain.signal.aborted) return { status: 'stopped' }
    let worked: Worked = { status: 'idle' }
    this.#awaited.set(log, (event) => {
      worked = workedOf(event) ?? worked
    })
    try {
      this.#take(head)
      await this.#running.get(log)
    } finally {
      this.#awaited.delete(log)
    }
    return worked
  }

  /** Looks for work now instead of at the next interval. */
  nudge(): void {
    this.#wake.abort()
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
      await this.#polling
      await Promise.all(this.#running.values())
      graceOver.abort()
      await grace
    }
    await this.#polling
    await Promise.all(this.#running.values())
    await this.#sweeping
    await this.#limits?.close()
    this.#due.close()
    await this.#presence?.close()
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
      busy: this.#running.size,
      draining: this.#drain.signal.aborted,
    }
  }

  /** Something is due, as far as is known: of one of these programs, or nobody knows of which. */
  #hear(news: LogNews | undefined): void {
    if (news !== undefined) {
      const isOurs = this.#tenant === undefined || news.log.tenant === this.#tenant
      if (!isOurs || !this.#plans.has(programOfLabel(news.program))) return
      const inMs = (news.wakeAt ?? 0) - this.#environment.clock.now()
      if (inMs > 0) return this.#lookIn(inMs)
    }
    this.#hasMore = true
    this.nudge()
  }

  async #poll(): Promise<void> {
    while (!this.#drain.signal.aborted) {
      let inMs: number | undefined
      this.#looksSince = this.#environment.clock.monotonic()
      try {
        if (this.#options.looks ?? true) inMs = await this.#takeDue()
        this.#sweep()
      } catch (error) {
        // Nothing can be done anymore with a store that was closed under the worker.
        if (isHoldfastError(error, 'closed')) return void this.stop()
        this.#rests.storeFailed(error)
        this.#tell({ type: 'error', error })
      }
      this.#looksSince = Number.POSITIVE_INFINITY
      await this.#sleep(this.#rests.storeRestMs || this.#restMs(inMs))
    }
  }

  /** How long to sleep if nobody wakes it: until the next is due, as far as is known, and not forever. */
  #restMs(inMs: number | undefined): number {
    const { random, clock } = this.#environment
    const mostMs = this.#pollMs ?? (this.#due.isLive ? SAFETY_POLL_MS : POLL_MS)
    // Not in sync with other workers, which would all look at the same moment.
    const ms = Math.min(mostMs * (0.75 + 0.5 * random()), (inMs ?? Number.POSITIVE_INFINITY) + 1 + 20 * random())
    // It was reserved here and not run: others go first when that is over, or they would be kept from it again.
    const left = this.#leftUntil - clock.monotonic()
    return left >= 0 && ms > left - 10 && ms < left + OTHERS_FIRST_MS ? left + OTHERS_FIRST_MS : ms
  }

  async #sleep(ms: number): Promise<void> {
    const { clock } = this.#environment
    this.#wakesAt = clock.monotonic() + ms
    await clock.sleep(ms, this.#wake.signal).catch(() => {})
    this.#wake = this.#wake.signal.aborted ? new AbortController() : this.#wake
  }

  /** Something will be due before the worker would look by itself. */
  #lookIn(ms: number): void {
    const { clock } = this.#environment
    if (clock.monotonic() + ms >= this.#wakesAt) return
    this.#wakesAt = clock.monotonic() + ms
    clock.sleep(ms, this.#drain.signal).then(
      () => this.nudge(),
      () => {},
    )
  }

  /** Fills the free places with due threads. Returns in how many milliseconds the next may be due. */
  async #takeDue(): Promise<number | undefined> {
    const { clock, logs } = this.#environment
    for (;;) {
      if (this.#drain.signal.aborted || this.#rests.storeRestMs > 0 || this.#environment.company.isClosed) return
      this.#fillPlaces()
      const free = this.#concurrency - this.#running.size
      const ahead = this.#aheadWanted()
      if (free <= 0 && this.#ahead.length >= ahead / 2) return
      this.#hasMore = false
      const begun = clock.monotonic()
      const page = await logs.takeDue({
        ...this.#wanted(),
        now: clock.canBeWrong ? 'now' : clock.now(),
        limit: logs.reservesDue ? free + ahead : free + LEFT_ALONE,
        reserveMs: RESERVE_MS,
        ...this.#preferred(),
        ...(this.#turn === undefined ? {} : { after: this.#turn }),
        ...(this.#tenant === undefined ? {} : { tenant: this.#tenant }),
      })
      const mine = page.heads.filter((head) => !this.#running.has(nameLog(head.log)) && this.#fits(head))
      const until = begun + RESERVE_MS / 2
      if (mine.length < page.heads.length) this.#leftUntil = begun + RESERVE_MS
      this.#turn = page.heads.at(-1)?.log.tenant ?? this.#turn
      this.#ahead.push(...mine.map((head) => ({ head, until })))
      this.#fillPlaces()
      if (!logs.reservesDue) this.#ahead = []
      this.#hasMore ||= page.more
      if (!page.more) return soonest(page.nextMs, this.#limits?.retryMs)
      // What is left alone is reserved as well, so that the others come next.
      if (mine.length === 0 && !logs.reservesDue) return undefined
    }
  }

  /** Puts threads that are reserved for this worker into free places. */
  #fillPlaces(): void {
    const now = this.#environment.clock.monotonic()
    const isClosed = this.#drain.signal.aborted || this.#rests.storeRestMs > 0 || this.#environment.company.isClosed
    // By then, others are given them as well.
    this.#ahead = isClosed ? [] : this.#ahead.filter(({ until }) => until > now)
    if (this.#limits) this.#sortOut(this.#limits, now)
    while (this.#ahead.length > 0 && this.#running.size < this.#concurrency) {
      const { head } = this.#ahead.shift() as { readonly head: Head }
      if (!this.#running.has(nameLog(head.log))) this.#take(head)
    }
  }

  /** How many more to ask for than there are places. */
  #aheadWanted(): number {
    const since = this.#environment.clock.monotonic() - AHEAD_MS
    while ((this.#ends[0] ?? Number.POSITIVE_INFINITY) < since) this.#ends.shift()
    return this.#ends.length
  }

  #fits(head: Head): boolean {
    const label = String(head.index.metadata[PROGRAM] ?? '')
    const plan = this.#plans.get(programOfLabel(label))
    const log = nameLog(head.log)
    if (plan === undefined || this.#rests.has(log, head.seq)) return false
    const version = String(head.index.metadata[VERSION] ?? '')
    if (isCompatible(version, plan)) return true
    this.#rests.skip(log, head.seq)
    const reason = `It was started by ${plan.name} ${version}, which version ${plan.version} does not continue.`
    this.#tell({ type: 'skipped', log, reason })
    return false
  }

  #take(head: Head): void {
    const log = nameLog(head.log)
    this.#running.set(log, this.#occupy(head, log))
  }

  /** Takes a place with a thread until it is done with it. */
  async #occupy(head: Head, log: string): Promise<void> {
    const isSchedule = isScheduleLabel(String(head.index.metadata[PROGRAM] ?? ''))
    const end = await (isSchedule ? this.#start(head, log) : this.#runWithin(head, log))
    this.#running.delete(log)
    // Its place is for threads that no limit holds up.
    if (end === 'refused') {
      this.#awaited.get(log)?.({ type: 'stopped', log })
      return this.nudge()
    }
    if (this.#ends.push(this.#environment.clock.monotonic()) > MOST_AHEAD) this.#ends.shift()
    this.#fillPlaces()
    if (!this.#hasMore) return
    // Not for each one that ends: a look at the index costs as much as a thread.
    const isFew = this.#ahead.length < this.#aheadWanted() / 2
    if (isFew || this.#running.size <= Math.floor(this.#concurrency * REFILL_BELOW)) this.nudge()
  }

  /** What to ask the index for: nothing that a limit would refuse. */
  #wanted(): Pick<DueQuery, 'programs' | 'except'> {
    const full = this.#limits?.full
    if (full === undefined) return { programs: this.#labels }
    return { programs: this.#labels.filter((label) => !full.programs.has(label)), except: full.except }
  }

  /** Leaves to others what they ran last, where they hear of it: whoever only polls would come too late. */
  #preferred(): Pick<DueQuery, 'warm'> {
    const { watch, messages } = this.#environment.logs.capabilities
    return watch ? { warm: { owner: this.#owner, ms: messages ? LEAVE_MS : LEAVE_UNTOLD_MS } } : {}
  }

  /** Puts aside what a limit would refuse, and brings back what it no longer does. */
  #sortOut(limits: Limits, now: number): void {
    const waiting = [...this.#blocked.filter(({ until }) => until > now), ...this.#ahead]
    // One whose reservation is over may have come again.
    const all = [...new Map(waiting.map((one) => [nameLog(one.head.log), one])).values()]
    this.#blocked = all.filter(({ head }) => limits.isFull(head))
    this.#ahead = all.filter(({ head }) => !limits.isFull(head))
  }

  /** Runs a thread if its limits allow. */
  async #runWithin(head: Head, log: string): Promise<'refused' | void> {
    if (this.#limits === undefined) return this.#run(head, log)
    // By the time that nobody else is kept from it, it comes again by the index.
    const until = this.#environment.clock.monotonic() + RESERVE_MS
    let admission: Admission
    try {
      admission = await this.#limits.admit(head)
    } catch (error) {
      // The store is away. Nothing was begun: the thread is due as before.
      this.#rests.storeFailed(error)
      return this.#tell({ type: 'error', log, error })
    }
    if ('retryMs' in admission) {
      // Where nothing is reserved, it comes again with the next look.
      if (this.#environment.logs.reservesDue) this.#blocked.push({ head, until })
      return 'refused'
    }
    try {
      await this.#run(head, log)
    } finally {
      admission.release()
    }
  }

  #readLimits({ limits, leaseMs = DEFAULT_LEASE_MS }: WorkerOptions): Limits | undefined {
    if (limits === undefined) return undefined
    const programs = [...this.#plans.keys()]
    return new Limits(this.#environment, { limits, programs, leaseMs, onOpen: () => this.nudge() })
  }

  async #run(head: Head, log: string): Promise<void> {
    const { clock, observer } = this.#environment
    const { leaseMs, durability, frequency, maxCrashes = 5, context } = this.#options
    const { tenant, thread, branch } = head.log
    observer.record('holdfast.queue.duration', Math.max(0, clock.now() - dueSince(head)))
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
          notBefore: head.index.wakeAt ?? 0,
          emit: this.#options.onEvent ? (event) => this.#tell({ type: 'event', log, event }) : unheard,
          signal: this.#abort.signal,
          isDraining: () => this.#drain.signal.aborted || makesRoom,
          makeRoom: () => {
            makesRoom = true
          },
          maxClaims: maxCrashes,
          owner: this.#owner,
          context: await context?.({ tenant, thread, branch }),
          fillsContext: true,
          ...(leaseMs === undefined ? {} : { leaseMs }),
          ...(durability === undefined ? {} : { durability }),
          ...(frequency === undefined ? {} : { frequency }),
        },
      )
      // It is still due, and would be picked up again at once, forever.
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

  /** Leaves what a schedule wants to run now for whoever takes it, which may be this worker. */
  async #start(head: Head, log: string): Promise<void> {
    try {
      const plan = this.#plans.get(programOfLabel(String(head.index.metadata[PROGRAM]))) as ProgramPlan
      const started = await startOccurrences(this.#environment, plan, head.log)
      this.#rests.worked(log)
      if (started) this.#tell({ type: 'scheduled', log, ...started })
    } catch (error) {
      this.#rests.failed(log, error)
      this.#tell({ type: 'error', log, error })
    }
  }

  // Alongside the polling: if many items expired, or each must be looked at, threads would have to wait for it.
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
        // Every other moment belongs to concurrent appends.
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
    if (event.log !== undefined) this.#awaited.get(event.log)?.(event)
    try {
      this.#options.onEvent?.(event)
    } catch {}
  }
}

/** The first of two moments, each of which may be unknown. */
function soonest(one: number | null, other: number | undefined): number | undefined {
  return one === null ? other : Math.min(one, other ?? one)
}
