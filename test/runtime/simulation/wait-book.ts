import type { Clock } from '#src/core/time/clock.js'

/** Sleeps that are shorter than this by rounding are not too short. */
const ROUNDING_MS = 2

/** Who waited for what and what they got: each place the same whenever it comes back, and no two of them the same. */
export class WaitBook {
  readonly #clock: Clock
  readonly #violations: string[]
  readonly #got = new Map<string, unknown>()
  readonly #by = new Map<unknown, string>()
  readonly #asleep = new Map<string, number>()
  readonly #sent = new Set<unknown>()

  constructor(clock: Clock, violations: string[]) {
    this.#clock = clock
    this.#violations = violations
  }

  /** A signal was sent, which somebody may be waiting for. */
  send(value: unknown): void {
    this.#sent.add(value)
  }

  /** The thread is erased, with the signals that nobody had received. */
  erased(): void {
    this.#sent.clear()
  }

  /** A place of the program got this answer or signal. */
  got(place: string, value: unknown): void {
    if (this.#got.has(place) && this.#got.get(place) !== value) {
      this.#violations.push(`${place} got ${text(value)}, and before that ${text(this.#got.get(place))}`)
    }
    const other = this.#by.get(value)
    if (other !== undefined && other !== place) this.#violations.push(`${place} got ${text(value)}, as ${other} did`)
    this.#got.set(place, value)
    this.#by.set(value, place)
  }

  /** A place that waits without a limit was left with nothing. */
  gotNothing(place: string): void {
    this.#violations.push(`${place} waits for a signal without a limit, and got nothing`)
  }

  fallsAsleep(place: string): void {
    if (!this.#asleep.has(place)) this.#asleep.set(place, this.#clock.now())
  }

  wakes(place: string, ms: number): void {
    const slept = this.#clock.now() - (this.#asleep.get(place) ?? 0)
    if (slept < ms - ROUNDING_MS) this.#violations.push(`${place} slept for ${slept} ms instead of ${ms}`)
  }

  /** Every signal was received, or lies there still. */
  checkLost(waiting: readonly unknown[]): void {
    for (const value of this.#sent) {
      if (!this.#by.has(value) && !waiting.includes(value)) this.#violations.push(`${text(value)} was lost`)
    }
  }
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined'
}
