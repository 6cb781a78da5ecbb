import type { Clock } from '../../core/time/clock.js'
import { onAbort } from '../../core/async/on-abort.js'
import type { LogKey } from '../contract.js'

/** How long a follower that hears of everything waits at most: the store is asked for all of them together. */
const LONGEST_REST_MS = 60_000
/** One that has waited this long is worth a subscription. */
const SUBSCRIBE_AFTER_MS = 100

/** What a follower needs of the news. */
export interface FollowerHost {
  readonly clock: Clock
  /** Whether appends to this log by others are heard of. */
  isLive(follower: Follower): boolean
  /** From now on appends to this log by others should be heard of. Returns a function that ends it. */
  listen(follower: Follower): () => void
  leave(follower: Follower): void
}

/** One who waits for a log to continue. */
export class Follower {
  readonly log: LogKey
  /** Only what others than the owner append: inputs, answers, signals, cancellations. */
  readonly onlyGuests: boolean
  readonly #host: FollowerHost
  readonly #seq: () => number
  #newest = -1
  #wake: (() => void) | undefined
  #unlisten: (() => void) | undefined
  #closed = false

  /** @param seq where the log ends, as far as the follower knows */
  constructor(host: FollowerHost, log: LogKey, seq: () => number, onlyGuests: boolean) {
    this.#host = host
    this.log = log
    this.#seq = seq
    this.onlyGuests = onlyGuests
  }

  /** Whether the log is known to have more than the follower has seen. */
  get isBehind(): boolean {
    return this.#newest > this.#seq()
  }

  /** Whether somebody waits. */
  get isResting(): boolean {
    return this.#wake !== undefined
  }

  get seq(): number {
    return this.#seq()
  }

  /** The log has come this far, or something about it changed that has no number. */
  told(seq: number): void {
    if (seq > this.#newest) this.#newest = seq
  }

  wake(): void {
    this.#wake?.()
  }

  /**
   * Waits until the log continues, at most `ms`, or much longer where news of it arrives. Rejects with the signal's
   * reason.
   */
  async rest(ms: number, signal?: AbortSignal, mostMs = Number.POSITIVE_INFINITY): Promise<void> {
    signal?.throwIfAborted()
    const isBehind = this.isBehind
    // Once for each time it is told: a message that names more than there is must not keep anybody awake.
    this.#newest = -1
    if (isBehind) return
    if (ms >= SUBSCRIBE_AFTER_MS && !this.#closed) this.#unlisten ??= this.#host.listen(this)
    const { clock } = this.#host
    const wake = new AbortController()
    const letGo = onAbort(signal, () => wake.abort())
    this.#wake = () => wake.abort()
    try {
      await clock
        .sleep(Math.min(mostMs, this.#unlisten && this.#host.isLive(this) ? LONGEST_REST_MS : ms), wake.signal)
        .catch(() => {})
    } finally {
      this.#wake = undefined
      letGo()
    }
    signal?.throwIfAborted()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#unlisten?.()
    this.#host.leave(this)
    this.#wake?.()
  }
}
