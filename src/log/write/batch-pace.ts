import type { Driver } from '../contract.js'

/** Fewer than this are not worth two commits. */
const LEAST_HALVED = 16

/** When the next batch goes, and how large it may be. */
export class BatchPace {
  readonly #driver: Pick<Driver, 'capabilities'>
  /** Batches that are in progress, and the appends in them. */
  #underWay = 0
  #inFlight = 0
  /** How long the last commit took, and since when none is in progress. */
  #took = Number.POSITIVE_INFINITY
  #restingSince = 0

  constructor(driver: Pick<Driver, 'capabilities'>) {
    this.#driver = driver
  }

  get isResting(): boolean {
    return this.#underWay === 0
  }

  get hasRoom(): boolean {
    return this.#underWay < this.#driver.capabilities.parallelBatches
  }

  /**
   * A further batch goes when it is at least as large as everything in progress. If each append went as soon as a
   * connection is free, twenty sessions would never share more than a few: a commit costs as much for one as for ten.
   */
  isLarge(waiting: number): boolean {
    return waiting >= this.#inFlight
  }

  /**
   * Those that share one commit come back together with their next appends, and while they prepare them the store
   * rests. Where that takes longer than the commit, they are divided: one half prepares while the other commits.
   */
  share(waiting: number): number {
    const { parallelBatches, maxBatch } = this.#driver.capabilities
    if (this.#underWay > 0 || parallelBatches === 1 || waiting < LEAST_HALVED) return maxBatch
    const isWorthIt = performance.now() - this.#restingSince > this.#took
    return isWorthIt ? Math.min(maxBatch, Math.floor(waiting / 2)) : maxBatch
  }

  /** Returns when it began. */
  began(appends: number): number {
    this.#underWay++
    this.#inFlight += appends
    return performance.now()
  }

  succeeded(began: number): void {
    this.#took = performance.now() - began
  }

  ended(appends: number): void {
    this.#underWay--
    this.#inFlight -= appends
    if (this.#underWay === 0) this.#restingSince = performance.now()
  }
}
