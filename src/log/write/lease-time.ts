import type { StoreClock } from '../store-clock.js'

/** A moment by both clocks: one stands still while the machine sleeps, the other can be set. */
export interface Moment {
  readonly monotonic: number
  readonly wall: number
}

export function momentOf(clock: Pick<StoreClock, 'monotonic' | 'wall'>): Moment {
  return { monotonic: clock.monotonic(), wall: clock.wall() }
}

/**
 * How long a lease is known to be valid. Counted from when the last heartbeat was sent, because the store may have
 * counted from then, however late its reply came.
 */
export class LeaseTime {
  readonly #clock: StoreClock
  readonly #ms: number
  /** When the last heartbeat that arrived was sent, at the latest. */
  #sent: Moment

  constructor(clock: StoreClock, ms: number, sent: Moment) {
    this.#clock = clock
    this.#ms = ms
    this.#sent = sent
  }

  /** Below 0, another may have it. */
  get remainingMs(): number {
    const { monotonic, wall } = momentOf(this.#clock)
    return this.#ms - Math.max(monotonic - this.#sent.monotonic, wall - this.#sent.wall)
  }

  now(): Moment {
    return momentOf(this.#clock)
  }

  /** A heartbeat that was sent then arrived. */
  arrived(sent: Moment | undefined): void {
    if (sent !== undefined && sent.monotonic >= this.#sent.monotonic) this.#sent = sent
  }
}
