import { ReplayGapError, ReplayOrderError } from '../errors.js'
import type { Records } from '../run/record/records.js'

/** How long the current program may take between two parallel steps before it counts as waiting. */
const STUCK_MS = 100

/**
 * Returns recorded results in the order in which they were recorded, as they arrived at the time: a program that asks
 * for them in another order is detected, and parallel steps interleave as they did then.
 */
export class ReplayScript {
  /** Steps that the current program requested and that are not recorded. */
  readonly gaps: string[] = []
  readonly #records: Records
  readonly #places: ReadonlyMap<string, number>
  readonly #completed: boolean
  readonly #asked = new Set<string>()
  readonly #waiting = new Map<string, PromiseWithReject>()
  #next = 0
  #stuck: NodeJS.Timeout | undefined

  /** `completed`: the record is complete, so a step that is not in it was never taken. */
  constructor(records: Records, completed: boolean) {
    this.#records = records
    this.#places = new Map(records.order.map((path, place) => [path, place]))
    this.#completed = completed
  }

  /** How many recorded steps were requested. */
  get steps(): number {
    return this.#asked.size
  }

  /** The first step that ended and that the current program did not reach. */
  get unasked(): string | undefined {
    return this.#records.order.find((path) => !this.#asked.has(path))
  }

  /** Resolves when it is this step's turn; immediately, if its turn is not known. */
  turn(path: string): Promise<void> {
    const record = this.#records.steps.get(path)
    // One that is still waiting for a signal has no result.
    if (record !== undefined && record.status !== 'waiting') this.#asked.add(path)
    const place = this.#places.get(path)
    if (place === undefined || place < this.#next) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#waiting.set(path, { resolve, reject })
      this.#advance()
    })
  }

  /** A step without a record: a difference if the record is complete, otherwise the end of what is known. */
  miss(path: string): void {
    this.gaps.push(path)
    if (this.#completed) throw new ReplayGapError(path)
  }

  end(): void {
    clearTimeout(this.#stuck)
  }

  // One per turn of the event loop, so that the program has done what follows from one before the next comes.
  #advance(): void {
    clearTimeout(this.#stuck)
    const path = this.#records.order[this.#next]
    const ready = path === undefined ? undefined : this.#waiting.get(path)
    if (path !== undefined && ready !== undefined) {
      this.#waiting.delete(path)
      this.#next++
      setImmediate(() => {
        ready.resolve()
        setImmediate(() => this.#advance())
      })
      return
    }
    const [first] = this.#waiting.keys()
    if (first === undefined) return
    this.#stuck = setTimeout(() => {
      const error = new ReplayOrderError(this.#records.order[this.#next] as string, first)
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    }, STUCK_MS)
  }
}

interface PromiseWithReject {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}
