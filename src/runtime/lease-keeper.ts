import type { Clock } from '../core/clock.js'
import { ClosedError, isHoldfastError } from '../core/errors.js'
import type { Claim } from '../log/claim.js'

const RENEWALS_PER_LEASE = 3

/**
 * Keeps a claim alive while a step takes long, and looks for what others sent meanwhile. Calls `onLost` once when the
 * claim is gone, or when the store did not answer for as long as the lease lasts: from then on another may hold it.
 */
export class LeaseKeeper {
  readonly #claim: Claim
  readonly #clock: Clock
  readonly #onLost: (error: unknown) => void
  readonly #onNews: () => void
  readonly #stop = new AbortController()
  #aliveAt: number
  #renewing: Promise<unknown> = Promise.resolve()
  #lettingGo = false

  constructor(claim: Claim, clock: Clock, options: { onLost: (error: unknown) => void; onNews: () => void }) {
    this.#claim = claim
    this.#clock = clock
    this.#onLost = options.onLost
    this.#onNews = options.onNews
    this.#aliveAt = clock.monotonic()
    void this.#keep()
  }

  /** An append of ours was acknowledged: it prolonged the lease. `sentAt` is when it was sent at the latest. */
  touch(sentAt: number = this.#clock.monotonic()): void {
    this.#aliveAt = Math.max(this.#aliveAt, sentAt)
  }

  /** Renews now. Rejects when the claim is lost. */
  async beat(): Promise<void> {
    if (this.#stop.signal.aborted) throw new ClosedError('This run')
    if (this.#lettingGo) return
    const sentAt = this.#clock.monotonic()
    const renewed = this.#claim.renew()
    this.#renewing = Promise.allSettled([this.#renewing, renewed])
    await renewed
    this.touch(sentAt)
  }

  /**
   * Does what may release the claim while no renewal is under way: one that lands after the release would bring the
   * lease back, and the next worker would wait for nobody. Goes on renewing if nothing came of it.
   */
  async letGo<Result>(release: () => Promise<Result>): Promise<Result> {
    this.#lettingGo = true
    try {
      await this.#renewing
      const result = await release()
      if (result !== undefined) this.stop()
      return result
    } finally {
      this.#lettingGo = false
    }
  }

  stop(): void {
    this.#stop.abort()
  }

  async #keep(): Promise<void> {
    const { signal } = this.#stop
    const interval = this.#claim.ms / RENEWALS_PER_LEASE
    while (!signal.aborted) {
      try {
        await this.#clock.sleep(interval, signal)
        if (signal.aborted) return
        const idleFor = this.#clock.monotonic() - this.#aliveAt
        if (idleFor >= interval / 2) await this.beat()
        const before = this.#claim.log.fold.seq
        // Asked once: while it is repeated nobody would see the lease run out.
        await this.#claim.log.refresh({ once: true })
        const { seq, epoch } = this.#claim.log.fold
        if (epoch !== this.#claim.epoch) await this.beat()
        if (seq !== before) this.#onNews()
      } catch (error) {
        if (signal.aborted) return
        const expired = this.#clock.monotonic() - this.#aliveAt >= this.#claim.ms
        if (isHoldfastError(error, 'fenced') || expired || !(isHoldfastError(error) && error.retryable)) {
          this.#onLost(error)
          return
        }
      }
    }
  }
}
