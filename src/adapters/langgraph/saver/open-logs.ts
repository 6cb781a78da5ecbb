import { type Holdfast, isHoldfastError } from '../../../index.js'
import type { Log } from '../../../log/index.js'
import { threadName } from './names.js'

/** An open log, and the newest reading of it that is in progress or done. */
interface Opened {
  readonly log: Promise<Log>
  reading: Promise<unknown>
  /** When that reading began. */
  asOf: number
}

/**
 * Open logs, the most recently used ones: consecutive saves then need no reads, because a handle knows what it wrote
 * and an append notices what others did.
 */
export class OpenLogs {
  readonly #hf: Holdfast
  readonly #limit: number
  readonly #logs = new Map<string, Opened>()

  constructor(hf: Holdfast, limit: number) {
    this.#hf = hf
    this.#limit = limit
  }

  /** A log that is open already, as this process last saw it. */
  known(threadId: string, branch: string): Promise<Log> | undefined {
    return this.#find(keyOf(threadId, branch))?.log
  }

  /** A log, as this process last saw it; read if it is not open. */
  get(threadId: string, branch: string): Promise<Log> {
    return this.known(threadId, branch) ?? this.#open(threadId, branch)
  }

  /** A log as it is now, or was at a moment that the caller names. */
  async fresh(threadId: string, branch: string, since: number = Number.POSITIVE_INFINITY): Promise<Log> {
    const opened = this.#find(keyOf(threadId, branch))
    if (opened === undefined) return this.#open(threadId, branch)
    try {
      if (opened.asOf < since) {
        opened.asOf = performance.now()
        opened.reading = opened.log.then((log) => log.refresh())
      }
      await opened.reading
      return await opened.log
    } catch (error) {
      if (!isGone(error)) throw error
      return this.#open(threadId, branch)
    }
  }

  /** A log that, as the index says, ends with this checkpoint: read only if this process has not seen that yet. */
  async endingAt(threadId: string, branch: string, checkpoint: string, since: number): Promise<Log> {
    const log = await this.known(threadId, branch)
    return log?.checkpoint === checkpoint ? log : this.fresh(threadId, branch, since)
  }

  /** Takes over a log that was made by a fork. */
  add(threadId: string, branch: string, log: Log): void {
    const ready = Promise.resolve(log)
    this.#keep(keyOf(threadId, branch), { log: ready, reading: ready, asOf: performance.now() })
  }

  forget(threadId: string): void {
    const start = keyOf(threadId, '')
    for (const key of this.#logs.keys()) if (key.startsWith(start)) this.#logs.delete(key)
  }

  #find(key: string): Opened | undefined {
    const opened = this.#logs.get(key)
    if (opened !== undefined) this.#keep(key, opened)
    return opened
  }

  #open(threadId: string, branch: string): Promise<Log> {
    const key = keyOf(threadId, branch)
    const log = this.#hf.log(threadName(threadId), { branch })
    const opened: Opened = { log, reading: log, asOf: performance.now() }
    this.#keep(key, opened)
    log.catch(() => {
      if (this.#logs.get(key) === opened) this.#logs.delete(key)
    })
    return log
  }

  #keep(key: string, opened: Opened): void {
    this.#logs.delete(key)
    this.#logs.set(key, opened)
    for (const oldest of this.#logs.keys()) {
      if (this.#logs.size <= this.#limit) break
      this.#logs.delete(oldest)
    }
  }
}

/** The thread was deleted, or deleted and started again, since a handle last looked. */
export function isGone(error: unknown): boolean {
  return isHoldfastError(error, 'not-found') || isHoldfastError(error, 'conflict')
}

// Neither thread ids nor branches hold a line break.
function keyOf(threadId: string, branch: string): string {
  return `${threadId}\n${branch}`
}
