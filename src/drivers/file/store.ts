import type { Clock } from '../../core/time/clock.js'
import { UnavailableError } from '../../core/errors.js'
import type { LogKey } from '../../log/contract.js'
import type { ChainLink } from './records/chain.js'
import type { Disk } from './disk/disk.js'
import type { LogRecord, ThreadRecord } from './records/record.js'

/** A log as this process last saw it. Always verified before it is relied on. */
export interface LogState {
  readonly key: LogKey
  readonly folder: string
  newest: ChainLink<LogRecord>
  /** The slots of all records from the base on, ascending. */
  slots: number[]
  /** The names of the folders above are known to be durable. */
  anchored: boolean
}

/** What one open driver works with. */
export interface FileStore {
  readonly disk: Disk
  readonly clock: Clock
  readonly threads: RecentMap<ChainLink<ThreadRecord>>
  readonly logs: RecentMap<LogState>
  /** What folders with shortened names stand for. */
  readonly longNames: RecentMap<string>
  readonly writers: Turns
  /** The newest `touchedAt` this process gave, in microseconds. */
  lastTouch: number
}

/** Keeps the entries used last. */
export class RecentMap<Value> {
  readonly #entries = new Map<string, Value>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.#limit) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }
}

/** One at a time per key, in the order of the calls: writers of one process need not race each other on the disk. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  async take<Result>(key: string, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    const settled = mine.catch(() => undefined)
    this.#last.set(key, settled)
    try {
      return await mine
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    }
  }
}

export function logName({ tenant, thread, branch }: LogKey): string {
  return `${tenant}\n${thread}\n${branch}`
}

const MAX_ATTEMPTS = 2000

/** Counts the attempts of one operation. Losing every race this often means that something else is wrong. */
export function attempts(what: string): () => Promise<void> {
  let count = 0
  return async () => {
    count++
    if (count > MAX_ATTEMPTS) {
      throw new UnavailableError(`Other processes changed ${what} each of the ${MAX_ATTEMPTS} times this one tried.`, {
        written: 'nothing',
        remedy: 'Try again; if it stays, check that nothing else writes into the folder of the store.',
      })
    }
    // Slightly apart, so that two that abort each other do not keep doing so.
    if (count > 20) await pause(Math.random() * 5)
  }
}

// By the real clock: it spaces out looks at the disk, and a virtual clock would stop it.
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

/** Whether a process of this machine runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Another user's process may not be signalled, but it is there.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
