import { isHoldfastError } from '../../core/errors.js'
import type { StoreClock } from '../../log/store-clock.js'

/** What is counted together, as every process of the fleet sees it. */
export interface LaneRecord {
  /** Who has a slot, and how long it is kept without a heartbeat, by the store's clock. */
  readonly held: Readonly<Record<string, number>>
  /** The last starts, oldest first; only if starts are limited. */
  readonly starts?: readonly number[]
}

/** Where the record is kept; it is written only over the version that was read. */
export interface LaneItems {
  get(key: string): Promise<{ readonly value: LaneRecord; readonly version: string } | undefined>
  put(
    key: string,
    value: LaneRecord,
    options: { readonly expect: string | null; readonly ttlMs: number },
  ): Promise<{ readonly version: string }>
}

export interface LaneLimit {
  readonly concurrency?: number
  readonly rate?: { readonly count: number; readonly perMs: number }
}

interface Asked {
  readonly id: string
  resolve(waitMs: number): void
  reject(error: unknown): void
}

/** When a full lane is checked again, in case another process freed a slot: soon at first, then less often. */
const FIRST_RETRY_MS = 50
const LAST_RETRY_MS = 1000
/** An unused record expires. */
const SPARE_MS = 60_000

/**
 * The slots of one lane, shared by all processes through one item of the store, written by compare-and-swap. Whatever a
 * process wants from a lane during a write goes into the next write. A process that dies loses its slots when their lease
 * ends.
 */
export class LimitLane {
  readonly #items: LaneItems
  readonly #key: string
  readonly #limit: LaneLimit
  readonly #leaseMs: number
  readonly #clock: StoreClock
  #asked: Asked[] = []
  /** The slots of this process, and when each was taken. */
  readonly #held = new Map<string, number>()
  /** Slots to give back, and starts that never happened. */
  #left = new Map<string, number | undefined>()
  #mustRenew = false
  /** How many times in a row a slot was refused. */
  #refusals = 0
  #known: { readonly record: LaneRecord; readonly version: string | null } | undefined
  #working: Promise<void> | undefined

  constructor(items: LaneItems, key: string, limit: LaneLimit, leaseMs: number, clock: StoreClock) {
    this.#items = items
    this.#key = key
    this.#limit = limit
    this.#leaseMs = leaseMs
    this.#clock = clock
  }

  /** Nobody here has a slot or asks for one. */
  get isIdle(): boolean {
    return this.#held.size === 0 && this.#working === undefined
  }

  /** Takes a slot. Returns 0 if it got one; otherwise after how many milliseconds it is worth asking again. */
  ask(id: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ id, resolve, reject })
      this.#work()
    })
  }

  /** Gives a slot back; with `unused`, as if it had never been taken. */
  leave(id: string, unused = false): void {
    this.#left.set(id, unused ? this.#held.get(id) : undefined)
    this.#held.delete(id)
    this.#work()
  }

  /** A heartbeat for all slots of this process. */
  renew(): void {
    if (this.#held.size === 0) return
    this.#mustRenew = true
    this.#work()
  }

  /** Resolves when nothing is in progress. */
  async settled(): Promise<void> {
    while (this.#working) await this.#working
  }

  #work(): void {
    this.#working ??= this.#loop().finally(() => {
      this.#working = undefined
      // What arrived after the last look.
      if (this.#asked.length > 0 || this.#left.size > 0 || this.#mustRenew) this.#work()
    })
  }

  async #loop(): Promise<void> {
    // Requests from the same turn of the event loop share one write.
    await Promise.resolve()
    const [asked, left] = [this.#asked, this.#left]
    this.#asked = []
    this.#left = new Map()
    const renews = this.#mustRenew
    this.#mustRenew = false
    try {
      const waits = await this.#settle(asked, left, renews)
      for (const [i, { resolve }] of asked.entries()) resolve(waits[i] as number)
    } catch (error) {
      this.#known = undefined
      // Slots that could not be given back end with their lease.
      for (const { reject } of asked) reject(error)
    }
  }

  async #settle(
    asked: readonly Asked[],
    left: ReadonlyMap<string, number | undefined>,
    renews: boolean,
  ): Promise<readonly number[]> {
    const isFresh = { read: false }
    for (let conflicts = 0; ; conflicts++) {
      this.#known ??= await this.#read(isFresh)
      const { record, version } = this.#known
      const now = this.#clock.now()
      const { next, waits, granted } = this.#decide(record, asked, left, now)
      // Others may have given slots back since: nobody is refused because of an old reading.
      if (waits.some((wait) => wait > 0) && !isFresh.read) {
        this.#known = undefined
        continue
      }
      this.#refusals = granted.length > 0 || asked.length === 0 ? 0 : Math.min(this.#refusals + 1, 10)
      if (granted.length === 0 && left.size === 0 && !renews) return waits
      try {
        const ttlMs = Math.max(this.#leaseMs, this.#limit.rate?.perMs ?? 0) + SPARE_MS
        const written = await this.#items.put(this.#key, next, { expect: version, ttlMs })
        this.#known = { record: next, version: written.version }
        for (const id of granted) this.#held.set(id, now)
        return waits
      } catch (error) {
        if (!isHoldfastError(error, 'conflict')) throw error
        this.#known = undefined
        isFresh.read = false
        // Processes that keep colliding spread out.
        if (conflicts > 1) await this.#clock.sleep(Math.random() * Math.min(5 * conflicts, 100))
      }
    }
  }

  #decide(
    record: LaneRecord,
    asked: readonly Asked[],
    left: ReadonlyMap<string, number | undefined>,
    now: number,
  ): { readonly next: LaneRecord; readonly waits: readonly number[]; readonly granted: readonly string[] } {
    const { concurrency = Number.POSITIVE_INFINITY, rate } = this.#limit
    const until = now + this.#leaseMs
    const held: Record<string, number> = {}
    for (const [id, end] of Object.entries(record.held)) if (end > now && !left.has(id)) held[id] = end
    for (const id of this.#held.keys()) held[id] = until
    const starts = rate ? (record.starts ?? []).filter((at) => at > now - rate.perMs) : []
    for (const start of left.values()) {
      const at = start === undefined ? -1 : starts.indexOf(start)
      if (at >= 0) starts.splice(at, 1)
    }
    const granted: string[] = []
    const waits = asked.map(({ id }) => {
      const oldest = rate && starts.length >= rate.count ? (starts[starts.length - rate.count] as number) : undefined
      const rateMs = rate && oldest !== undefined ? Math.max(1, oldest + rate.perMs - now) : 0
      const isFull = Object.keys(held).length >= concurrency
      if (rateMs === 0 && !isFull) {
        held[id] = until
        if (rate) starts.push(now)
        granted.push(id)
        return 0
      }
      if (!isFull) return rateMs
      const retryMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#refusals)
      const endMs = Math.min(...Object.values(held)) - now
      return Math.max(rateMs, Math.max(1, Math.min(retryMs, endMs)))
    })
    return { next: { held, ...(rate ? { starts } : {}) }, waits, granted }
  }

  async #read(isFresh: { read: boolean }): Promise<{ readonly record: LaneRecord; readonly version: string | null }> {
    const item = await this.#items.get(this.#key)
    isFresh.read = true
    return item ? { record: item.value, version: item.version } : { record: { held: {} }, version: null }
  }
}
