import type { Clock } from '../core/clock.js'
import type { Driver } from './contract.js'

/** What was learned of the store's clock is asked for again after this long. Until then clocks drift by milliseconds. */
const FRESH_MS = 60_000
/** When wall and monotonic time part by more, the clock was set or the machine slept. */
const JUMP_MS = 1000
const LONG_LOOK_MS = 500
const MOST_LOOKS = 3

interface Reading {
  readonly store: number
  readonly wall: number
  readonly monotonic: number
}

/**
 * The time by which processes agree: the store's own where it has a clock and this machine's may be wrong, else the clock
 * that was given. Goes on by monotonic time between two looks at the store.
 */
export class StoreClock implements Clock {
  readonly bootId: string
  readonly canBeWrong: boolean
  readonly #clock: Clock
  readonly #ask: (() => Promise<number>) | undefined
  #last: Reading | undefined
  #asking: Promise<void> | undefined

  constructor(clock: Clock, driver: Pick<Driver, 'now'>) {
    this.#clock = clock
    this.bootId = clock.bootId
    this.canBeWrong = clock.canBeWrong ?? false
    this.#ask = this.canBeWrong && driver.now ? () => (driver as Required<Pick<Driver, 'now'>>).now() : undefined
  }

  now(): number {
    if (this.#ask === undefined) return this.#clock.now()
    if (!this.#isFresh()) void this.sync()
    if (this.#last === undefined) return this.#clock.now()
    return Math.floor(this.#last.store + this.#clock.monotonic() - this.#last.monotonic)
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal)
  }

  /** Looks at the store's clock if that is due. Called beside what reaches the store anyway, so it takes no time. */
  sync(): Promise<void> | undefined {
    if (this.#ask === undefined || this.#isFresh()) return undefined
    this.#asking ??= this.#look(this.#ask).finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  // A store that does not answer fails whoever needs it; the time it told last is better than none.
  async #look(ask: () => Promise<number>): Promise<void> {
    try {
      for (let tries = 0; tries < MOST_LOOKS; tries++) {
        const sent = this.#clock.monotonic()
        const store = await ask()
        const monotonic = this.#clock.monotonic()
        // It was read somewhere between sending and hearing. After a long time, as when this process stood still, nobody
        // knows where: better look again.
        const took = monotonic - sent
        this.#last = { store: store + took / 2, wall: this.#clock.now(), monotonic }
        if (took < LONG_LOOK_MS) return
      }
    } catch {}
  }

  #isFresh(): boolean {
    if (this.#last === undefined) return false
    const passed = this.#clock.monotonic() - this.#last.monotonic
    return passed < FRESH_MS && Math.abs(this.#clock.now() - this.#last.wall - passed) < JUMP_MS
  }
}
