import type { Append, AppendResult, Driver } from '../contract.js'

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

/** A batch stops growing here, so that one flood of large bodies does not become one giant transaction. */
const MAX_BATCH_BYTES = 8 * 1024 * 1024

/** An append that waits to be sent. */
export interface Waiting {
  readonly append: Append
  /** Sent by itself: it was part of a batch that failed, and may be the cause. */
  readonly alone: boolean
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

/**
 * Takes the next batch from those who wait. At most one append per log: the second of two handles on one log waits for
 * the next batch.
 */
export function cutBatch(waiting: Waiting[], most: number): Waiting[] {
  if (waiting.length === 1 || waiting[0]?.alone) return waiting.splice(0, 1)
  const batch: Waiting[] = []
  const logs = new Set<string>()
  let left = 0
  let bytes = 0
  for (const member of waiting) {
    const { tenant, thread, branch } = member.append.log
    const name = `${tenant}\n${thread}\n${branch}`
    for (const entry of member.append.entries) bytes += entry.body.length + entry.header.length
    const fits = batch.length < most && (batch.length === 0 || bytes <= MAX_BATCH_BYTES)
    if (!fits || member.alone || logs.has(name)) {
      waiting[left++] = member
    } else {
      logs.add(name)
      batch.push(member)
    }
  }
  waiting.length = left
  return batch
}
