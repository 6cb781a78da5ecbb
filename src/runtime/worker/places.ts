import { nameLog } from '../../core/log-name.js'
import type { Head } from '../../log/contract.js'
import { PROGRAM } from '../run/state/labels.js'
import { isScheduleLabel } from '../schedule/schedule-state.js'
import type { DueRuns } from './due-runs.js'
import type { Admission, Limits } from './limits.js'
import type { WorkerParts } from './worker-options.js'

/** For this long, what a worker was given is reserved for it, until it has claimed it. */
export const RESERVE_MS = 1000
/** What is left of that is enough to claim it. With less, it comes again by the index, and until then nobody has it. */
const CLAIM_MS = 100
/** The part of the places in use at which the worker looks for more before its time. */
const REFILL_BELOW = 0.75
/**
 * What is taken ahead: as many as ended in this time. So short threads don't wait for the next look, nor others behind
 * long ones.
 */
const AHEAD_MS = 250
const MOST_AHEAD = 200

interface Reserved {
  readonly head: Head
  readonly until: number
}

/** The places of a worker: which threads run in them, and which are reserved for the next that become free. */
export class Places {
  /** More may be due than there were places for. */
  hasMore = false
  readonly #parts: WorkerParts
  readonly #runs: DueRuns
  /** Told of a thread that a limit refused. */
  readonly #onRefused: (log: string) => void
  readonly #count: number
  readonly #running = new Map<string, Promise<void>>()
  /** Reserved for this worker, and waiting for a place. */
  #ahead: Reserved[] = []
  /** Reserved for this worker, and refused by a limit that is reached. */
  #blocked: Reserved[] = []
  /** When the last threads ended, by the monotonic clock. */
  readonly #ends: number[] = []

  constructor(parts: WorkerParts, runs: DueRuns, onRefused: (log: string) => void) {
    this.#parts = parts
    this.#runs = runs
    this.#onRefused = onRefused
    this.#count = parts.options.concurrency ?? 10
  }

  /** How many are taken. */
  get busy(): number {
    return this.#running.size
  }

  get free(): number {
    return this.#count - this.#running.size
  }

  /** Nothing is begun: the worker drains, the store is away, or a suspect runs alone. */
  get isClosed(): boolean {
    const { drain, rests, environment } = this.#parts
    return drain.aborted || rests.storeRestMs > 0 || environment.company.isClosed
  }

  /** How many more to ask for than there are places. */
  get aheadWanted(): number {
    const since = this.#parts.environment.clock.monotonic() - AHEAD_MS
    while ((this.#ends[0] ?? Number.POSITIVE_INFINITY) < since) this.#ends.shift()
    return this.#ends.length
  }

  /** How many are reserved and have no place yet. */
  get ahead(): number {
    return this.#ahead.length
  }

  has(log: string): boolean {
    return this.#running.has(log)
  }

  /** Gives these places as far as there are some, and the rest the next ones. @param begun when they were asked for */
  offer(heads: readonly Head[], begun: number): void {
    const now = this.#parts.environment.clock.monotonic()
    // However long the look took, what it found may have the places that are free now: the claim decides who gets it.
    // Otherwise a worker whose looks take longer than a reservation would find everything and never take any of it.
    const until = Math.max(begun + RESERVE_MS - CLAIM_MS, now)
    this.#ahead.push(...heads.map((head) => ({ head, until })))
    this.fill(now)
    if (this.#parts.environment.logs.reservesDue || this.#ahead.length === 0) return
    // Kept from nobody, so it is looked for again as soon as there is a place.
    this.#ahead = []
    this.hasMore = true
  }

  /** Puts threads that are reserved for this worker into free places. */
  fill(now = this.#parts.environment.clock.monotonic()): void {
    // By then, others are given them as well.
    this.#ahead = this.isClosed ? [] : this.#ahead.filter(({ until }) => until >= now)
    if (this.#parts.limits) this.#sortOut(this.#parts.limits, now)
    while (this.#ahead.length > 0 && this.free > 0) {
      const { head } = this.#ahead.shift() as Reserved
      if (!this.#running.has(nameLog(head.log))) void this.take(head)
    }
  }

  /** Takes a place with a thread until it is done with it. */
  take(head: Head): Promise<void> {
    const log = nameLog(head.log)
    const occupied = this.#occupy(head, log)
    this.#running.set(log, occupied)
    return occupied
  }

  /** Resolves when all that run now have ended. */
  async empty(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #occupy(head: Head, log: string): Promise<void> {
    const { nudge } = this.#parts
    const isSchedule = isScheduleLabel(String(head.index.metadata[PROGRAM] ?? ''))
    const end = await (isSchedule ? this.#runs.start(head, log) : this.#runWithin(head, log))
    this.#running.delete(log)
    // Its place is for threads that no limit holds up.
    if (end === 'refused') {
      this.#onRefused(log)
      return nudge()
    }
    if (this.#ends.push(this.#parts.environment.clock.monotonic()) > MOST_AHEAD) this.#ends.shift()
    this.fill()
    if (!this.hasMore) return
    // Not for each one that ends: a look at the index costs as much as a thread.
    const isFew = this.#ahead.length < this.aheadWanted / 2
    if (isFew || this.#running.size <= Math.floor(this.#count * REFILL_BELOW)) nudge()
  }

  /** Runs a thread if its limits allow. */
  async #runWithin(head: Head, log: string): Promise<'refused' | void> {
    const { limits, rests, tell } = this.#parts
    if (limits === undefined) return this.#runs.run(head, log)
    // By the time that nobody else is kept from it, it comes again by the index.
    const until = this.#parts.environment.clock.monotonic() + RESERVE_MS
    let admission: Admission
    try {
      admission = await limits.admit(head)
    } catch (error) {
      // The store is away. Nothing was begun: the thread is due as before.
      rests.storeFailed(error)
      return tell({ type: 'error', log, error })
    }
    if ('retryMs' in admission) {
      // Where nothing is reserved, it comes again with the next look.
      if (this.#parts.environment.logs.reservesDue) this.#blocked.push({ head, until })
      return 'refused'
    }
    try {
      await this.#runs.run(head, log)
    } finally {
      admission.release()
    }
  }

  /** Puts aside what a limit would refuse, and brings back what it no longer does. */
  #sortOut(limits: Limits, now: number): void {
    const waiting = [...this.#blocked.filter(({ until }) => until >= now), ...this.#ahead]
    // One whose reservation is over may have come again.
    const all = [...new Map(waiting.map((one) => [nameLog(one.head.log), one])).values()]
    this.#blocked = all.filter(({ head }) => limits.isFull(head))
    this.#ahead = all.filter(({ head }) => !limits.isFull(head))
  }
}
