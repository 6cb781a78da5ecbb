import type { Clock } from '../core/time/clock.js'
import { InvalidOptionError } from '../core/errors.js'

/** A limit per minute. */
export interface Rate {
  readonly requestsPerMinute?: number
  readonly tokensPerMinute?: number
}

const MINUTE = 60_000

/**
 * Lets calls pass at a rate, in the order in which they came. Unused capacity can be used later, up to one second's
 * worth: services count in short windows, so a minute's worth in one burst would be refused.
 */
export class RateLimit {
  readonly #clock: Clock
  readonly #buckets: readonly Bucket[]
  #turn: Promise<void> = Promise.resolve()

  constructor({ requestsPerMinute, tokensPerMinute }: Rate, clock: Clock) {
    this.#clock = clock
    this.#buckets = [
      ...(requestsPerMinute === undefined ? [] : [new Bucket(requestsPerMinute, () => 1, clock)]),
      ...(tokensPerMinute === undefined ? [] : [new Bucket(tokensPerMinute, (tokens) => tokens, clock)]),
    ]
  }

  /** Resolves when a call with this many tokens may be made. */
  pass(tokens: number, signal: AbortSignal): Promise<void> {
    if (this.#buckets.length === 0) return Promise.resolve()
    const passed = this.#after(this.#turn, tokens, signal)
    // One that was aborted lets the next one through.
    this.#turn = passed.catch(() => {})
    return passed
  }

  /** Counts a call that can't wait: those after it wait longer. */
  charge(tokens: number): void {
    for (const bucket of this.#buckets) bucket.take(tokens)
  }

  /** Takes back a call that was let through but not made. */
  refund(tokens: number): void {
    for (const bucket of this.#buckets) bucket.putBack(tokens)
  }

  async #after(turn: Promise<void>, tokens: number, signal: AbortSignal): Promise<void> {
    await turn
    for (const bucket of this.#buckets) {
      const wait = bucket.take(tokens)
      if (wait > 0) await this.#clock.sleep(wait, signal)
    }
  }
}

/** A bucket that may go into debt: a call larger than it holds passes, and those after it wait longer. */
class Bucket {
  readonly #perMs: number
  readonly #most: number
  readonly #cost: (tokens: number) => number
  readonly #clock: Clock
  #level: number
  #at: number

  constructor(perMinute: number, cost: (tokens: number) => number, clock: Clock) {
    this.#perMs = perMinute / MINUTE
    this.#most = Math.max(1, perMinute / 60)
    this.#cost = cost
    this.#clock = clock
    this.#level = this.#most
    this.#at = clock.monotonic()
  }

  /** Takes what a call costs and returns how long it has to wait. */
  take(tokens: number): number {
    const now = this.#clock.monotonic()
    this.#level = Math.min(this.#most, this.#level + (now - this.#at) * this.#perMs)
    this.#at = now
    this.#level -= this.#cost(tokens)
    return this.#level >= 0 ? 0 : -this.#level / this.#perMs
  }

  putBack(tokens: number): void {
    this.#level = Math.min(this.#most, this.#level + this.#cost(tokens))
  }
}

export function checkRate(field: string, rate: Rate | undefined): void {
  if (rate === undefined) return
  for (const name of ['requestsPerMinute', 'tokensPerMinute'] as const) {
    const value = rate[name]
    if (value === undefined || (typeof value === 'number' && value > 0 && Number.isFinite(value))) continue
    throw new InvalidOptionError(
      `${field}.${name}`,
      `must be a number above 0, not ${String(value)}`,
      'Pass how many a minute.',
    )
  }
}
