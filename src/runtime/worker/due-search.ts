import { isHoldfastError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { nameLog } from '../../core/log-name.js'
import type { DueQuery } from '../../log/contract.js'
import type { LogNews } from '../../log/news/messages.js'
import type { DueWatch } from '../../log/news/news.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { programOfLabel, scheduleLabel } from '../schedule/schedule-state.js'
import type { DueRuns } from './due-runs.js'
import { type Places, RESERVE_MS } from './places.js'
import type { WorkerParts } from './worker-options.js'

/** How often to look for work without being notified: where news arrives, and where it doesn't. */
const SAFETY_POLL_MS = 5000
export const POLL_MS = 500
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
/** Created once: without a reason, each abort creates an error with a stack. */
const WOKEN = new Error('Woken to look for work.')

interface SearchEvents {
  /** After each look that the store answered. */
  looked(): void
  /** The store was closed under the worker. */
  closed(): void
}

/** Finds what is due for a worker's programs and offers it to its places: when it hears of something, and now and then. */
export class DueSearch {
  /** Resolves when it looks for nothing anymore. */
  readonly ended: Promise<void>
  readonly #environment: RuntimeEnvironment
  readonly #parts: WorkerParts
  readonly #runs: DueRuns
  readonly #places: Places
  /** What it asks the index for: threads of its programs, and their schedules. */
  readonly #labels: readonly string[]
  readonly #due: DueWatch
  /** The tenant whose turn was last. */
  #turn: TenantId | undefined
  #wakesAt = Number.POSITIVE_INFINITY
  #looksSince = Number.POSITIVE_INFINITY
  /** Until when what it left alone is reserved for it. */
  #leftUntil = Number.NEGATIVE_INFINITY
  #wake = new AbortController()

  constructor(parts: WorkerParts, runs: DueRuns, places: Places, on: SearchEvents) {
    const { environment, plans } = parts
    this.#environment = environment
    this.#parts = parts
    this.#runs = runs
    this.#places = places
    this.#labels = [...plans.keys()].flatMap((name) => [name, scheduleLabel(name)])
    this.#due = environment.logs.news.onDue((news) => this.#hear(news))
    this.ended = this.#poll(on)
  }

  /** Since when it looks, by the monotonic clock; while it sleeps, never. */
  get looksSince(): number {
    return this.#looksSince
  }

  /** Looks now instead of at the next interval. */
  nudge(): void {
    this.#wake.abort(WOKEN)
  }

  /** Hears of nothing anymore. */
  close(): void {
    this.#due.close()
  }

  /** Something is due, as far as is known: of one of these programs, or nobody knows of which. */
  #hear(news: LogNews | undefined): void {
    const { tenant, plans } = this.#parts
    if (news !== undefined) {
      const isOurs = tenant === undefined || news.log.tenant === tenant
      if (!isOurs || !plans.has(programOfLabel(news.program))) return
      const inMs = (news.wakeAt ?? 0) - this.#environment.clock.now()
      if (inMs > 0) return this.#lookIn(inMs)
    }
    this.#places.hasMore = true
    this.nudge()
  }

  async #poll({ looked, closed }: SearchEvents): Promise<void> {
    const { drain, options, rests, tell } = this.#parts
    const { looks = true } = options
    while (!drain.aborted) {
      let inMs: number | undefined
      this.#looksSince = this.#environment.clock.monotonic()
      try {
        if (looks) inMs = await this.#takeDue()
        looked()
      } catch (error) {
        // Nothing can be done anymore with a store that was closed under the worker.
        if (isHoldfastError(error, 'closed')) return closed()
        rests.storeFailed(error)
        tell({ type: 'error', error })
      }
      this.#looksSince = Number.POSITIVE_INFINITY
      await this.#sleep(rests.storeRestMs || this.#restMs(inMs))
    }
  }

  /** How long to sleep if nobody wakes it: until the next is due, as far as is known, and not forever. */
  #restMs(inMs: number | undefined): number {
    const { random, clock } = this.#environment
    const mostMs = this.#parts.options.pollMs ?? (this.#due.isLive ? SAFETY_POLL_MS : POLL_MS)
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
    clock.sleep(ms, this.#parts.drain).then(
      () => this.nudge(),
      () => {},
    )
  }

  /** Fills the free places with due threads. Returns in how many milliseconds the next may be due. */
  async #takeDue(): Promise<number | undefined> {
    const { clock, logs } = this.#environment
    const { limits } = this.#parts
    const places = this.#places
    for (;;) {
      if (places.isClosed) return
      places.fill()
      const { free, aheadWanted } = places
      // Where nothing can be reserved, what is found is of no use without a place.
      if (free <= 0 && (!logs.reservesDue || places.ahead >= aheadWanted / 2)) return
      places.hasMore = false
      const begun = clock.monotonic()
      const page = await logs.takeDue(this.#query(logs.reservesDue ? free + aheadWanted : free + LEFT_ALONE))
      const mine = page.heads.filter((head) => !places.has(nameLog(head.log)) && this.#runs.fits(head))
      if (mine.length < page.heads.length) this.#leftUntil = begun + RESERVE_MS
      this.#turn = page.heads.at(-1)?.log.tenant ?? this.#turn
      places.offer(mine, begun)
      places.hasMore ||= page.more
      if (!page.more) return soonest(page.nextMs, limits?.retryMs)
      // What is left alone is reserved as well, so that the others come next.
      if (mine.length === 0 && !logs.reservesDue) return undefined
    }
  }

  #query(limit: number): DueQuery {
    const { clock, logs } = this.#environment
    const { tenant, owner, limits } = this.#parts
    // Nothing that a limit would refuse.
    const full = limits?.full
    const programs = full === undefined ? this.#labels : this.#labels.filter((label) => !full.programs.has(label))
    // Leaves to others what they ran last, where they hear of it: whoever only polls would come too late.
    const { watch, messages } = logs.capabilities
    return {
      programs,
      now: clock.canBeWrong ? 'now' : clock.now(),
      limit,
      reserveMs: RESERVE_MS,
      ...(full === undefined ? {} : { except: full.except }),
      ...(watch ? { warm: { owner, ms: messages ? LEAVE_MS : LEAVE_UNTOLD_MS } } : {}),
      ...(this.#turn === undefined ? {} : { after: this.#turn }),
      ...(tenant === undefined ? {} : { tenant }),
    }
  }
}

/** The first of two moments, each of which may be unknown. */
function soonest(one: number | null, other: number | undefined): number | undefined {
  return one === null ? other : Math.min(one, other ?? one)
}
