import type { Clock } from '../../core/time/clock.js'
import { onAbort } from '../../core/async/on-abort.js'
import { ClosedError, isHoldfastError, UnavailableError } from '../../core/errors.js'
import { callAfter } from '../../core/time/timer.js'
import type { Claim } from '../../log/write/claim.js'

const RENEWALS_PER_LEASE = 3
/** The fraction of a lease that must be left when something starts. Less than what is left when a renewal is due. */
const SURE_PART = 1 / 4
const MAX_BEATS = 5
const LISTEN_AFTER_MS = 1000
/** Created once: without a reason, each abort creates an error with a stack. */
const STOPPED = new ClosedError('This run')

/**
 * Keeps a claim alive while a step takes long, and looks for what others sent in the meantime. Calls `onLost` once when
 * the claim is gone, or when the store did not answer for as long as the lease lasts: from then on another worker may
 * hold it.
 */
export class LeaseKeeper {
  readonly #claim: Claim
  readonly #onLost: (error: unknown) => void
  readonly #onNews: () => void
  #renewing: Promise<unknown> | undefined
  #lettingGo = false
  #isStopped = false
  /** Ends the waiting for what comes next. */
  #wake: () => void

  constructor(claim: Claim, clock: Clock, options: { onLost: (error: unknown) => void; onNews: () => void }) {
    this.#claim = claim
    this.#onLost = options.onLost
    this.#onNews = options.onNews
    const interval = claim.ms / RENEWALS_PER_LEASE
    // A short run is over before it pays off to listen.
    this.#wake = callAfter(clock, Math.min(interval, LISTEN_AFTER_MS), () => void this.#keep(interval))
  }

  /**
   * Whether the lease is known to be valid for long enough to start something that reaches the outside world. Call it
   * immediately before starting: the process may have been frozen since any earlier check.
   */
  get isSure(): boolean {
    return !this.#isStopped && this.#claim.remainingMs >= this.#claim.ms * SURE_PART
  }

  /** Renews until the lease is known to be valid for long enough. Rejects when the claim is lost. */
  async secure(): Promise<void> {
    for (let beats = 0; !this.isSure; beats++) {
      if (beats === MAX_BEATS) throw tooSlow(this.#claim.ms)
      await this.beat()
    }
  }

  /** Renews now. Rejects when the claim is lost. */
  async beat(): Promise<void> {
    if (this.#isStopped) throw new ClosedError('This run')
    if (this.#lettingGo) return
    const renewed = this.#claim.renew()
    this.#renewing = Promise.allSettled([this.#renewing, renewed])
    await renewed
  }

  /** Somebody in this process wrote to the log: looks now and not at the next renewal, which may be seconds away. */
  async look(): Promise<void> {
    if (this.#isStopped) return
    // Errors are left for the next renewal to judge.
    await this.#claim.log.refresh({ once: true }).catch(() => {})
    if (!this.#isStopped) this.#onNews()
  }

  /**
   * Does something that may release the claim while no renewal is in progress: a renewal that lands after the release
   * would bring the lease back, and the next worker would wait for nobody. Resumes renewing if it was not released.
   */
  async letGo<Result>(release: () => Promise<Result>): Promise<Result> {
    this.#lettingGo = true
    try {
      if (this.#renewing) await this.#renewing
      const result = await release()
      if (result !== undefined) this.stop()
      return result
    } finally {
      this.#lettingGo = false
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#wake()
  }

  async #keep(interval: number): Promise<void> {
    const stop = new AbortController()
    const { signal } = stop
    this.#wake = () => stop.abort(STOPPED)
    const follower = this.#claim.log.follow({ onlyGuests: true })
    onAbort(signal, () => follower.close())
    let rest = interval - LISTEN_AFTER_MS
    while (!signal.aborted) {
      try {
        if (rest > 0) await follower.rest(rest, signal, rest)
        if (signal.aborted) return
        rest = interval
        if (this.#claim.ms - this.#claim.remainingMs >= interval / 2) await this.beat()
        const before = this.#claim.log.fold.seq
        // Asked once: during retries, nobody would see the lease run out.
        await this.#claim.log.refresh({ once: true })
        const { seq, epoch } = this.#claim.log.fold
        if (epoch !== this.#claim.epoch) await this.beat()
        if (seq !== before) this.#onNews()
      } catch (error) {
        if (signal.aborted) return
        const expired = this.#claim.remainingMs <= 0
        // Erased and created again: the log of that name is another one, even if its epoch happens to be the same.
        const isGone = isHoldfastError(error, 'conflict')
        if (isHoldfastError(error, 'fenced') || isGone || expired || !(isHoldfastError(error) && error.retryable)) {
          this.#onLost(error)
          return
        }
      }
    }
  }
}

function tooSlow(ms: number): UnavailableError {
  return new UnavailableError(
    `Renewing the lease of ${ms} ms takes the store most of that time, so no effect can be started safely. Raise leaseMs.`,
    { written: 'nothing' },
  )
}
