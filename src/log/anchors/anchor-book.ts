import { DataLossError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { type Anchor, type Anchors, anchorName } from './anchors.js'
import type { LogKey } from '../contract.js'
import type { Fold } from '../entry/fold.js'
import type { CarriedWrite, StoredItem } from '../store-contract.js'

const DEFAULT_EVERY_MS = 1000

/** Where an append ended, as an anchor has it. */
export interface LogEnd {
  readonly incarnation: string
  readonly seq: number
  readonly hash: string
}

/**
 * What was anchored, as this process knows it: records what the store acknowledges, in batches a little later, and
 * refuses a store that holds less.
 */
export class AnchorBook {
  readonly #anchors: Anchors
  readonly #known = new Map<string, Anchor>()
  readonly #pending = new Map<string, Anchor>()
  #reading: Promise<void> | undefined
  #flushing: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(anchors: Anchors) {
    this.#anchors = anchors
  }

  noteLog({ tenant, thread, branch }: LogKey, { incarnation, seq, hash }: LogEnd): void {
    this.#note({ log: [tenant, thread, branch], incarnation, seq, hash })
  }

  noteErased({ tenant, thread, branch }: { tenant: string; thread: string; branch?: string | undefined }): void {
    const start = JSON.stringify(['log', tenant, thread, ...(branch === undefined ? [] : [branch])]).slice(0, -1)
    for (const known of [this.#known, this.#pending]) {
      for (const name of known.keys()) if (name.startsWith(start)) known.delete(name)
    }
    this.#note({ erased: branch === undefined ? [tenant, thread] : [tenant, thread, branch] })
  }

  noteItem(tenant: string, { space, key, item, at }: Pick<CarriedWrite, 'space' | 'key' | 'item' | 'at'>): void {
    const until = item?.expiresAt ?? undefined
    const version = item?.version ?? null
    this.#note({ item: [tenant, space, key], version, at, ...(until === undefined ? {} : { until }) })
  }

  /** Rejects with DataLossError if the store once held more of this log. */
  async checkLog(log: LogKey, fold: Fold | undefined): Promise<void> {
    await this.#read()
    const lost = () => this.#lostOf(log, fold)
    // Another process may have erased it since we read what is anchored.
    if (lost() !== undefined) await this.#read(true)
    const problem = lost()
    if (problem === undefined) return
    throw new DataLossError(`The backend holds less of ${nameLog(log)} than was anchored: ${problem}.`, { log })
  }

  /** Rejects with DataLossError if the store once held a newer version of this item. */
  async checkItem(tenant: string, space: string, { key, version, updatedAt }: StoredItem): Promise<void> {
    await this.#read()
    const isOlder = () => {
      const anchor = this.#known.get(JSON.stringify(['item', tenant, space, key]))
      return anchor !== undefined && 'item' in anchor && anchor.version !== version && updatedAt < anchor.at
    }
    if (!isOlder()) return
    await this.#read(true)
    if (!isOlder()) return
    const name = `${JSON.stringify(key)} of ${JSON.stringify(space)}`
    throw new DataLossError(`The backend holds an older item ${name} than was anchored.`, { space, key, version })
  }

  /** Writes down what waits. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#flushing = this.#flushing.catch(() => {}).then(() => this.#send())
    await this.#flushing
  }

  /** Rejects if what is waiting can't be written: then the anchors say less than they should. */
  async close(): Promise<void> {
    this.#closed = true
    await this.flush()
  }

  #lostOf({ tenant, thread, branch }: LogKey, fold: Fold | undefined): string | undefined {
    const anchor = this.#known.get(JSON.stringify(['log', tenant, thread, branch]))
    if (anchor === undefined || !('log' in anchor)) return undefined
    if (fold === undefined) return `it ended with entry ${anchor.seq}, and is gone`
    if (fold.incarnation !== anchor.incarnation) return 'it is another log of that name'
    if (fold.seq < anchor.seq) return `it ended with entry ${anchor.seq}, and now ends with ${fold.seq}`
    return fold.seq === anchor.seq && fold.hash !== anchor.hash ? `entry ${anchor.seq} is another one` : undefined
  }

  #note(anchor: Anchor): void {
    const name = anchorName(anchor)
    this.#learn(name, anchor)
    this.#pending.delete(name)
    this.#pending.set(name, anchor)
    this.#schedule()
  }

  // If two handles use one log, the slower one may report an earlier entry later.
  #learn(name: string, anchor: Anchor): void {
    const before = this.#known.get(name)
    const isBehind =
      before !== undefined &&
      'log' in before &&
      'log' in anchor &&
      before.incarnation === anchor.incarnation &&
      before.seq > anchor.seq
    if (!isBehind) this.#known.set(name, anchor)
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#closed) return
    this.#timer = setTimeout(() => {
      // What can't be written now is retried with what comes next; `close` reports it if it never could be.
      this.flush().catch(() => this.#schedule())
    }, this.#anchors.everyMs ?? DEFAULT_EVERY_MS)
    this.#timer.unref()
  }

  async #send(): Promise<void> {
    if (this.#pending.size === 0) return
    const sent = [...this.#pending]
    // The newest that is known, which may be newer than what was noted.
    const anchors = sent.map(([name, anchor]) => this.#known.get(name) ?? anchor)
    await this.#anchors.write(anchors)
    for (const [name, anchor] of sent) if (this.#pending.get(name) === anchor) this.#pending.delete(name)
  }

  /** Once, and again when asked: what is anchored by others since. */
  async #read(again = false): Promise<void> {
    if (this.#anchors.read === undefined) return
    if (again) this.#reading = undefined
    this.#reading ??= this.#load().catch((error: unknown) => {
      this.#reading = undefined
      throw error
    })
    await this.#reading
  }

  async #load(): Promise<void> {
    // Nothing is written in the meantime: it would be neither in what is read nor among what waits.
    const reading = this.#flushing.catch(() => {}).then(async () => [...((await this.#anchors.read?.()) ?? [])])
    this.#flushing = settled(reading)
    const anchors = await reading
    const own = [...this.#pending]
    this.#known.clear()
    for (const anchor of anchors) {
      if ('erased' in anchor) this.#forget(anchor.erased)
      else this.#known.set(anchorName(anchor), anchor)
    }
    for (const [name, anchor] of own) {
      if ('erased' in anchor) this.#forget(anchor.erased)
      else this.#learn(name, anchor)
    }
  }

  #forget(erased: readonly (string | undefined)[]): void {
    const start = JSON.stringify(['log', ...erased]).slice(0, -1)
    for (const name of this.#known.keys()) if (name.startsWith(start)) this.#known.delete(name)
  }
}

async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work])
}
