import type { Clock } from '../../core/time/clock.js'

/** How often a worker reports that it is there: together with its looks every 5 seconds, this adds a seventh. */
const SIGN_EVERY_MS = 30_000
/** A worker that is gone by then was not worth a write. */
const FIRST_SIGN_MS = 1000
/** How long the last report may delay stopping, if the store does not answer. */
const LAST_WORD_MS = 2000

/**
 * What a worker writes about itself, over what it wrote before. Times are milliseconds since 1970 by the store's clock.
 */
export interface WorkerSign {
  readonly name: string
  readonly host: string
  readonly pid: number
  /** Only the threads of this tenant. */
  readonly tenant?: string
  readonly programs: readonly { readonly name: string; readonly version: string }[]
  readonly places: number
  readonly busy: number
  readonly draining: boolean
  readonly since: number
  readonly at: number
  /** When to expect the next. */
  readonly everyMs: number
}

type WorkerNow = Omit<WorkerSign, 'at' | 'since' | 'everyMs'>

/** Where workers report what they do, each under its own key. */
export interface WorkerSigns {
  put(key: string, sign: WorkerSign): Promise<unknown>
  delete(key: string): Promise<unknown>
}

/**
 * Lets people see that a worker is there, and what it runs. Nothing depends on it: who holds a thread is decided by
 * leases, so a report that can't be written is skipped.
 */
export class Presence {
  readonly #signs: WorkerSigns
  readonly #key: string
  readonly #clock: Clock
  readonly #describe: () => WorkerNow
  readonly #since: number
  readonly #over = new AbortController()
  #writing: Promise<unknown> = Promise.resolve()
  #isListed = false

  constructor(signs: WorkerSigns, key: string, clock: Clock, describe: () => WorkerNow) {
    this.#signs = signs
    this.#key = key
    this.#clock = clock
    this.#describe = describe
    this.#since = clock.now()
    void this.#keep()
  }

  /** Something changed that people should see before the next report. */
  tell(): void {
    if (!this.#isListed || this.#over.signal.aborted) return
    const sign = { ...this.#describe(), since: this.#since, at: this.#clock.now(), everyMs: SIGN_EVERY_MS }
    // One after the other: an older one must not land last.
    this.#writing = this.#writing.then(() => this.#signs.put(this.#key, sign)).catch(() => {})
  }

  /** The worker has stopped cleanly, and is not listed anymore. */
  async close(): Promise<void> {
    const wasOver = this.#over.signal.aborted
    this.#over.abort()
    if (!this.#isListed || wasOver) return
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LAST_WORD_MS)
    })
    const gone = this.#writing.then(() => this.#signs.delete(this.#key)).catch(() => {})
    await Promise.race([gone, patience])
    clearTimeout(timer)
  }

  async #keep(): Promise<void> {
    for (let rest = FIRST_SIGN_MS; ; rest = SIGN_EVERY_MS) {
      try {
        await this.#clock.sleep(rest, this.#over.signal)
      } catch {
        return
      }
      this.#isListed = true
      this.tell()
      await this.#writing
    }
  }
}
