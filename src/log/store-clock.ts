import type { Clock } from '../core/time/clock.js'
import { systemSleep } from '../core/time/system-clock.js'
import type { Driver } from './contract.js'

/**
 * What was learned about the store's clock is asked for again after this long. Until then clocks drift by milliseconds.
 */
const FRESH_MS = 60_000
/** When wall and monotonic time diverge by more than this, the clock was set or the machine slept. */
const JUMP_MS = 1000
const LONG_LOOK_MS = 500
const MOST_LOOKS = 3

interface Reading {
  readonly store: number
  readonly wall: number
  readonly monotonic: number
}

/**
 * The time on which processes agree: the store's own if it has a clock and this machine's may be wrong, otherwise the
 * given clock. Advances by monotonic time between two looks at the store.
 */
export class StoreClock implements Clock {
  readonly bootId: string
  readonly canBeWrong: boolean
  readonly sleep: Clock['sleep']
  readonly #clock: Clock
  readonly #ask: (() => Promise<number>) | undefined
  #last: Reading | undefined
  #asking: Promise<void> | undefined

  constructor(clock: Clock, driver: Pick<Driver, 'now'>) {
    this.#clock = clock
    this.bootId = clock.bootId
    this.canBeWrong = clock.canBeWrong ?? false
    this.sleep = clock.sleep === systemSleep ? systemSleep : (ms, signal) => clock.sleep(ms, signal)
    this.#ask = this.canBeWrong && driver.now ? () => (driver as Required<Pick<Driver, 'now'>>).now() : undefined
  }

  now(): number {
    if (this.#ask === undefined) return this.#clock.now()
    if (!this.#isFresh()) void this.sync()
    if (this.#last === undefined) return this.#clock.now()
    return Math.floor(this.#last.store + this.#clock.monotonic() - this.#last.monotonic)
  }

  /** It is at most this late: until the store has been asked, a machine whose clock jumped is assumed to have slept. */
  latest(): number {
    if (this.#ask === undefined || this.#last === undefined) return this.now()
    return this.now() + Math.max(0, this.#jump(this.#last))
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  /**
   * The wall clock of this machine. It may be wrong, but unlike monotonic time it keeps running while the machine
   * sleeps.
   */
  wall(): number {
    return this.#clock.now()
  }

  /** Looks at the store's clock if that is due. Called alongside what reaches the store anyway, so it takes no time. */
  sync(): Promise<void> | undefined {
    if (this.#ask === undefined || this.#isFresh()) return undefined
    this.#asking ??= this.#look(this.#ask).finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /**
   * Undefined unless this machine slept, or its clock was set, since the store was last asked: in that case `now()`
   * lags by as long as it slept until this promise resolves. Await it before setting a time that others go by.
   */
  catchUp(): Promise<void> | undefined {
    const isNear = this.#last !== undefined && Math.abs(this.#jump(this.#last)) < JUMP_MS
    return isNear ? undefined : this.sync()
  }

  // A store that does not answer fails whoever needs it; the time it last reported is better than none.
  async #look(ask: () => Promise<number>): Promise<void> {
    try {
      for (let tries = 0; tries < MOST_LOOKS; tries++) {
        const sent = { monotonic: this.#clock.monotonic(), wall: this.#clock.now() }
        const store = await ask()
        const [monotonic, wall] = [this.#clock.monotonic(), this.#clock.now()]
        // The time was read somewhere between sending and receiving. If that took long, as when this process stood
        // still, nobody knows where: better look again.
        const took = Math.max(monotonic - sent.monotonic, wall - sent.wall)
        this.#last = { store: store + took / 2, wall, monotonic }
        if (took < LONG_LOOK_MS) return
      }
    } catch {}
  }

  #isFresh(): boolean {
    if (this.#last === undefined) return false
    const isRecent = this.#clock.monotonic() - this.#last.monotonic < FRESH_MS
    return isRecent && Math.abs(this.#jump(this.#last)) < JUMP_MS
  }

  /** By how much the wall clock is ahead of the monotonic one. */
  #jump({ monotonic, wall }: Reading): number {
    return this.#clock.now() - wall - (this.#clock.monotonic() - monotonic)
  }
}
