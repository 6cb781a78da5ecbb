import { onAbort } from '../../core/async/on-abort.js'

/**
 * A limited number of calls at a time, in the order in which they came. A batch has a slot while stages or sink work on
 * it, but not while it is being recorded: the next one works in the meantime, so that a slow disk delays no embedding.
 */
export class Slots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** For one document, which uses one slot at a time. */
  seat(): Seat {
    return new Seat(this)
  }

  async take(signal: AbortSignal): Promise<void> {
    if (this.#free > 0) this.#free--
    else await this.#wait(signal)
  }

  // Handed over, not freed: a newcomer must not overtake those that are waiting.
  release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }

  #wait(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const take = () => {
        letGo()
        resolve()
      }
      this.#waiting.add(take)
      const letGo = onAbort(signal, () => {
        this.#waiting.delete(take)
        reject(signal.reason)
      })
    })
  }
}

/** A document's claim to a slot. */
export class Seat {
  readonly #slots: Slots
  #isTaken = false

  constructor(slots: Slots) {
    this.#slots = slots
  }

  async use<Result>(signal: AbortSignal, work: () => Result | Promise<Result>): Promise<Result> {
    await this.#slots.take(signal)
    this.#isTaken = true
    try {
      return await work()
    } finally {
      this.leave()
    }
  }

  /** Must be called when the run of the document has ended: a step that pauses, or is given up, never returns. */
  leave(): void {
    if (!this.#isTaken) return
    this.#isTaken = false
    this.#slots.release()
  }
}
