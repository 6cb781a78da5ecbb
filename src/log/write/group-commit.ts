import { ClosedError, isHoldfastError } from '../../core/errors.js'
import type { Append, AppendResult, Driver } from '../contract.js'
import { BatchPace, cutBatch, type Waiting } from './batch-pace.js'

/** How long appends wait for others to go with. */
const PATIENCE_MS = 10
/** For what must happen after the code that runs now: a microtask of its own would cost a tracked resource. */
const NOW = Promise.resolve()

/**
 * Collects the appends of all logs in the process while commits are in progress and sends them together. One session
 * pays one commit per step; many share one.
 */
export class GroupCommit {
  readonly #driver: Driver
  readonly #appended: (batch: readonly Append[], results: readonly AppendResult[]) => void
  readonly #pace: BatchPace
  readonly #waiting: Waiting[] = []
  #patience: NodeJS.Timeout | undefined
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
    this.#pace = new BatchPace(driver)
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
    while (this.#waiting.length > 0 || !this.#pace.isResting)
      await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  // Appends made in the same turn of the event loop leave together: the batch is cut in a microtask.
  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || !this.#pace.hasRoom) return
    if (!this.#pace.isLarge(this.#waiting.length)) return this.#waitForMore()
    this.#scheduled = true
    void NOW.then(this.#sendAll)
  }

  readonly #sendAll = (): void => {
    this.#scheduled = false
    while (this.#waiting.length > 0 && this.#pace.hasRoom && this.#pace.isLarge(this.#waiting.length)) this.#sendNext()
    this.#schedule()
  }

  // What is in progress may be waiting for a lock: it must not keep the others waiting as well.
  #waitForMore(): void {
    if (this.#patience !== undefined) return
    this.#patience = setTimeout(() => {
      this.#patience = undefined
      if (this.#waiting.length > 0 && this.#pace.hasRoom) this.#sendNext()
      this.#schedule()
    }, PATIENCE_MS)
  }

  #sendNext(): void {
    void this.#send(cutBatch(this.#waiting, this.#pace.share(this.#waiting.length)))
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    const began = this.#pace.began(batch.length)
    try {
      const appends = batch.map(({ append }) => append)
      const results = await this.#driver.append(appends)
      this.#pace.succeeded(began)
      this.#appended(appends, results)
      for (let i = 0; i < batch.length; i++) batch[i]?.resolve(results[i] as AppendResult)
    } catch (error) {
      this.#fail(batch, error)
    } finally {
      this.#pace.ended(batch.length)
      this.#schedule()
      if (this.#pace.isResting && this.#waiting.length === 0) for (const wake of this.#idle.splice(0)) wake()
    }
  }

  // If surely nothing was written, the members are sent again one by one, so that a bad one fails alone. Otherwise each
  // writer must first find out whether its append landed.
  #fail(batch: readonly Waiting[], error: unknown): void {
    if (batch.length > 1 && isHoldfastError(error) && error.data.written === 'nothing') {
      this.#waiting.unshift(...batch.map((member) => ({ ...member, alone: true })))
    } else {
      for (const { reject } of batch) reject(error)
    }
  }
}
