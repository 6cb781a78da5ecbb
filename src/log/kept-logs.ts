import type { Clock } from '../core/time/clock.js'
import type { LogKey } from './contract.js'
import type { Log } from './log.js'

/** What nobody has used for this long is dropped: memory is for threads that are running now. */
const IDLE_MS = 10 * 60 * 1000

interface Kept {
  readonly log: Log
  readonly bytes: number
  readonly at: number
}

/**
 * Logs that were read in this process and are not in use, up to a number of bytes: the least recently used are dropped
 * first. Whoever takes one has exclusive use of it until it is given back, so nobody's state changes while they use it.
 */
export class KeptLogs {
  readonly #most: number
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
  }

  take(key: LogKey): Log | undefined {
    const name = nameOf(key)
    const found = this.#kept.get(name)
    if (found) this.#remove(name, found)
    return found?.log
  }

  keep(log: Log): void {
    const { bytes } = log
    const { seq } = log.fold
    const name = nameOf(log.key)
    const other = this.#kept.get(name)
    if (seq < 0 || bytes > this.#most || (other && other.log.fold.seq > seq)) return
    if (other) this.#remove(name, other)
    this.#kept.set(name, { log, bytes, at: this.#clock.monotonic() })
    this.#bytes += bytes
    this.#tidy()
  }

  /** Nothing of this thread, or of any thread of a tenant, stays. */
  forget({ tenant, thread }: { readonly tenant: LogKey['tenant']; readonly thread?: LogKey['thread'] }): void {
    const start = JSON.stringify(thread === undefined ? [tenant] : [tenant, thread]).slice(0, -1)
    for (const [name, kept] of this.#kept) if (name.startsWith(start)) this.#remove(name, kept)
  }

  clear(): void {
    this.#kept.clear()
    this.#bytes = 0
  }

  // The oldest come first, because each is inserted again when it is given back.
  #tidy(): void {
    const before = this.#clock.monotonic() - IDLE_MS
    for (const [name, kept] of this.#kept) {
      if (this.#bytes <= this.#most && kept.at >= before) return
      this.#remove(name, kept)
    }
  }

  #remove(name: string, { bytes }: Kept): void {
    this.#kept.delete(name)
    this.#bytes -= bytes
  }
}

function nameOf({ tenant, thread, branch }: LogKey): string {
  return JSON.stringify([tenant, thread, branch])
}
