import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { Append, AppendResult, Driver } from '../contract.js'

/** A batch stops growing here, so that one flood of large bodies does not become one giant transaction. */
const MAX_BATCH_BYTES = 8 * 1024 * 1024

/** Fewer than this are not worth two commits. */
const LEAST_HALVED = 16
/** How long appends wait for others to go with. */
const PATIENCE_MS = 10
/** For what must happen after the code that runs now: a microtask of its own would cost a tracked resource. */
const NOW = Promise.resolve()

interface Waiting {
  readonly append: Append
  /** Sent by itself: it was part of a batch that failed, and may be the cause. */
  readonly alone: boolean
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

/**
 * Collects the appends of all logs in the process while commits are in progress and sends them together. One session
 * pays one commit per step; many share one.
 */
export class GroupCommit {
  readonly #driver: Driver
  readonly #appended: (batch: readonly Append[], results: readonly AppendResult[]) => void
  #waiting: Waiting[] = []
  #underWay = 0
  /** The appends of the batches that are in progress. */
  #inFlight = 0
  #patience: NodeJS.Timeout | undefined
  /** How long the last commit took, and since when none is in progress. */
  #took = Number.POSITIVE_INFINITY
  #restingSince = 0
  #scheduled = false
  #closed = false
  #idle: (() => void)[] = []

  /** @param appended called with every batch that the driver took, before those who wait for it */
  constructor(
    driver: Driver,
    appended: (batch: readonly Append[], results: readonly AppendResult[]) => void = () => {},
  ) {
    this.#driver = driver
    this.#appended = appended
  }

  submit(append: Append, alone = false): Promise<AppendResult> {
    if (this.#closed) return Promise.reject(new ClosedError('This Holdfast'))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ append, alone, resolve, reject })
      this.#schedule()
    })
  }

  /** Accepts no more and waits for what is here. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#waiting.length > 0 || this.#underWay > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  // Appends made in the same turn of the event loop leave together: the batch is cut in a microtask.
  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || !this.#hasRoom) return
    if (!this.#isLarge) return this.#waitForMore()
    this.#scheduled = true
    void NOW.then(this.#sendAll)
  }

  readonly #sendAll = (): void => {
    this.#scheduled = false
    while (this.#waiting.length > 0 && this.#hasRoom && this.#isLarge) this.#sendNext()
    this.#schedule()
  }

  get #hasRoom(): boolean {
    return this.#underWay < this.#driver.capabilities.parallelBatches
  }

  /**
   * A further batch goes when it is at least as large as everything in progress. If each append went as soon as a
   * connection is free, twenty sessions would never share more than a few: a commit costs as much for one as for ten.
   */
  get #isLarge(): boolean {
    return this.#waiting.length >= this.#inFlight
  }

  // What is in progress may be waiting for a lock: it must not keep the others waiting as well.
  #waitForMore(): void {
    if (this.#patience !== undefined) return
    this.#patience = setTimeout(() => {
      this.#patience = undefined
      if (this.#waiting.length > 0 && this.#hasRoom) this.#sendNext()
      this.#schedule()
    }, PATIENCE_MS)
  }

  #sendNext(): void {
    void this.#send(this.#cutBatch(this.#share()))
  }

  /**
   * Those that share one commit come back together with their next appends, and while they prepare them the store
   * rests. Where that takes longer than the commit, they are divided: one half prepares while the other commits.
   */
  #share(): number {
    const { parallelBatches, maxBatch } = this.#driver.capabilities
    const count = this.#waiting.length
    if (this.#underWay > 0 || parallelBatches === 1 || count < LEAST_HALVED) return maxBatch
    const isWorthIt = performance.now() - this.#restingSince > this.#took
    return isWorthIt ? Math.min(maxBatch, Math.floor(count / 2)) : maxBatch
  }

  // At most one append per log: the second of two handles on one log waits for the next batch.
  #cutBatch(most: number): Waiting[] {
    if (this.#waiting.length === 1 || this.#waiting[0]?.alone) return this.#waiting.splice(0, 1)
    const batch: Waiting[] = []
    const logs = new Set<string>()
    const left: Waiting[] = []
    let bytes = 0
    for (const member of this.#waiting) {
      const { tenant, thread, branch } = member.append.log
      const name = `${tenant}\n${thread}\n${branch}`
      for (const entry of member.append.entries) bytes += entry.body.length + entry.header.length
      const fits = batch.length < most && (batch.length === 0 || bytes <= MAX_BATCH_BYTES)
      if (!fits || member.alone || logs.has(name)) {
        left.push(member)
      } else {
        logs.add(name)
        batch.push(member)
      }
    }
    this.#waiting = left
    return batch
  }

  async #send(batch: Waiting[]): Promise<void> {
    this.#underWay++
    this.#inFlight += batch.length
    const began = performance.now()
    try {
      const appends = batch.map(({ append }) => append)
      const results = await this.#driver.append(appends)
      this.#took = performance.now() - began
      this.#appended(appends, results)
      for (let i = 0; i < batch.length; i++) batch[i]?.resolve(results[i] as AppendResult)
    } catch (error) {
      this.#fail(batch, error)
    } finally {
      this.#underWay--
      this.#inFlight -= batch.length
      if (this.#underWay === 0) this.#restingSince = performance.now()
      this.#schedule()
      if (this.#underWay === 0 && this.#waiting.length === 0) for (const wake of this.#idle.splice(0)) wake()
    }
  }

  // If surely nothing was written, the members are sent again one by one, so that a bad one fails alone. Otherwise each
  // writer must first find out whether its append landed.
  #fail(batch: Waiting[], error: unknown): void {
    if (batch.length > 1 && isHoldfastError(error) && error.data.written === 'nothing') {
      this.#waiting.unshift(...batch.map((member) => ({ ...member, alone: true })))
    } else {
      for (const { reject } of batch) reject(error)
    }
  }
}
