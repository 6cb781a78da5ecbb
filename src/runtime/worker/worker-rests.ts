import type { Clock } from '../../core/time/clock.js'
import { isHoldfastError } from '../../core/errors.js'

/** How long a thread that can't be run is left alone at most. */
const LONGEST_REST_MS = 60_000
const FIRST_STORE_REST_MS = 50
/** When the store fails, the next attempt comes at most this much later, whichever thread the failure hit. */
const LONGEST_STORE_REST_MS = 1000
const MOST_KEPT = 10_000

/** What a worker leaves alone for a while, and for how long. */
export class WorkerRests {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #pollMs: number
  /** Threads that these programs don't continue, by their newest entry: left alone until there is another. */
  readonly #skipped = new Map<string, number>()
  /** Threads that could not be run at all, such as damaged ones: each is left alone for longer than the last time. */
  readonly #troubled = new Map<string, { readonly times: number; readonly until: number }>()
  #storeFailures = 0
  #storeUntil = 0

  constructor(environment: { readonly clock: Clock; readonly random: () => number }, pollMs: number) {
    this.#clock = environment.clock
    this.#random = environment.random
    this.#pollMs = pollMs
  }

  has(log: string, seq: number): boolean {
    if (this.#skipped.get(log) === seq) return true
    return (this.#troubled.get(log)?.until ?? 0) > this.#clock.monotonic()
  }

  /** Leaves a thread alone until something is written to it. */
  skip(log: string, seq: number): void {
    keep(this.#skipped, log, seq)
  }

  /**
   * It could not be run. A failing store is not the thread's fault, and must not keep it waiting once the store has
   * recovered.
   */
  failed(log: string, error: unknown): void {
    if (this.storeFailed(error)) return
    const times = (this.#troubled.get(log)?.times ?? 0) + 1
    const ms = Math.min(LONGEST_REST_MS, this.#pollMs * 2 ** times)
    keep(this.#troubled, log, { times, until: this.#clock.monotonic() + ms })
  }

  worked(log: string): void {
    this.#troubled.delete(log)
    this.#storeFailures = 0
    this.#storeUntil = 0
  }

  /** Notes an error if it came from the store: then nothing is taken until the store had a rest. */
  storeFailed(error: unknown): boolean {
    if (!isHoldfastError(error) || !STORE_FAILURES.has(error.code)) return false
    const now = this.#clock.monotonic()
    // Those that were in progress together fail together: that is one failure.
    if (now < this.#storeUntil) return true
    const ms = Math.min(LONGEST_STORE_REST_MS, FIRST_STORE_REST_MS * 2 ** this.#storeFailures++)
    this.#storeUntil = now + ms * (0.5 + 0.5 * this.#random())
    return true
  }

  /** How long nothing should be asked of the store, in milliseconds. */
  get storeRestMs(): number {
    return Math.max(0, this.#storeUntil - this.#clock.monotonic())
  }
}

const STORE_FAILURES: ReadonlySet<string> = new Set(['unavailable', 'storage', 'conflict'])

function keep<Kept>(map: Map<string, Kept>, log: string, kept: Kept): void {
  if (map.size > MOST_KEPT) map.clear()
  map.set(log, kept)
}
