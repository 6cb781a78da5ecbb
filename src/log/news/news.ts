import type { Clock } from '../../core/time/clock.js'
import {
  type Append,
  type AppendResult,
  type Driver,
  type IndexFields,
  type LogKey,
  PROGRAM_LABEL,
} from '../contract.js'
import { Follower, type FollowerHost } from './follower.js'
import { LiveNews } from './live-news.js'
import { type LogNews, newsOf, readMessage, writeMessages } from './messages.js'
import { Topics } from './topic.js'

/** How often the store is asked whether the logs that somebody follows have grown, in case a message was lost. */
const SAFETY_MS = 5000
const DUE_TOPIC = 'due'
const MOST_ASKED = 500
const NO_TOPICS: readonly string[] = []

/** Told of what is due: of which log and program, and when; undefined when something may be, and nobody knows what. */
export type DueListener = (news: LogNews | undefined) => void

/** Somebody hears of what is due. */
export interface DueWatch {
  /** Whether what other processes leave is heard of; otherwise only a look at the store finds it. */
  readonly isLive: boolean
  close(): void
}

/**
 * Tells those who wait in this process of what happens on logs: of appends of this process at once, of those of others by
 * the driver's messages, or by its notice that something changed. All of it may get lost, which costs time and nothing
 * else. While nobody waits and nobody listens, an append pays for a look at two sets.
 */
export class News implements FollowerHost {
  readonly clock: Clock
  /** What is never recorded. */
  readonly live: LiveNews
  readonly #driver: Driver
  readonly #followers = new Map<string, Set<Follower>>()
  readonly #dueListeners = new Set<DueListener>()
  readonly #topics: Topics
  readonly #touched = new Set<Follower>()
  #outbox = new Map<string, LogNews[]>()
  #isPlanned = false
  #endChanges: (() => void) | undefined
  #checking: Promise<void> | undefined
  #checkAgain = false
  #safety: NodeJS.Timeout | undefined
  #closed = false

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver
    this.clock = clock
    this.live = new LiveNews(driver, clock)
    this.#topics = new Topics('log', driver, clock, (message) => this.#receive(message))
  }

  /** After a batch was sent to the driver. */
  appended(batch: readonly Append[], results: readonly AppendResult[]): void {
    if (this.#closed) return
    const isAwaited = this.#isAwaited
    for (const [i, append] of batch.entries()) {
      if (results[i]?.status !== 'appended') continue
      const topics = this.#topicsOf(append.log, append.index.wakeAt)
      if (isAwaited || topics.length > 0) this.#tell(newsOf(append), topics)
    }
  }

  /** An owner released a log without an entry. */
  released(log: LogKey, seq: number, index: Pick<IndexFields, 'wakeAt' | 'metadata'>): void {
    if (this.#closed) return
    const { wakeAt, metadata } = index
    const news = { log, seq, wakeAt, program: String(metadata[PROGRAM_LABEL] ?? '') }
    this.#tell(news, this.#topicsOf(log, wakeAt))
  }

  /**
   * Somebody waits for a log to continue.
   * @param seq where the log ends as far as is known to whoever waits
   */
  follow(log: LogKey, seq: () => number, options: { readonly onlyGuests?: boolean } = {}): Follower {
    const follower = new Follower(this, log, seq, options.onlyGuests ?? false)
    const name = nameOf(log)
    const all = this.#followers.get(name) ?? new Set()
    this.#followers.set(name, all.add(follower))
    return follower
  }

  /** Somebody runs what is due. */
  onDue(heard: DueListener): DueWatch {
    const { subscribe, watchChanges } = this.#driver
    this.#dueListeners.add(heard)
    const topic = this.#topics.named(DUE_TOPIC)
    const end = subscribe ? topic.use() : () => {}
    this.#watchChanges()
    return {
      get isLive() {
        return watchChanges !== undefined || topic.isLive
      },
      close: () => {
        if (!this.#dueListeners.delete(heard)) return
        end()
        this.#restIfUnused()
      },
    }
  }

  isLive(follower: Follower): boolean {
    if (this.#driver.watchChanges !== undefined) return this.#endChanges !== undefined
    return this.#topicFor(follower).isLive
  }

  listen(follower: Follower): () => void {
    this.#watchChanges()
    this.#planSafety()
    if (this.#driver.subscribe === undefined) return () => {}
    return this.#topicFor(follower).use()
  }

  leave(follower: Follower): void {
    const name = nameOf(follower.log)
    const all = this.#followers.get(name)
    all?.delete(follower)
    if (all?.size === 0) this.#followers.delete(name)
    this.#touched.delete(follower)
    this.#restIfUnused()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#safety)
    this.#endChanges?.()
    this.#dueListeners.clear()
    for (const follower of this.#resting()) follower.wake()
    await Promise.all([this.live.close(), this.#topics.close()])
    await this.#checking
  }

  get #isAwaited(): boolean {
    return this.#followers.size > 0 || this.#dueListeners.size > 0
  }

  /** Where other processes listen, as far as is known. */
  #topicsOf(log: LogKey, wakeAt: number | null): readonly string[] {
    const driver = this.#driver
    if (driver.publish === undefined) return NO_TOPICS
    const own = this.#topics.nameOf(hashedOf(log))
    const topics = wakeAt === null ? [own] : [own, DUE_TOPIC]
    return topics.filter((topic) => driver.hasSubscribers?.(topic) ?? true)
  }

  #tell(news: LogNews, topics: readonly string[] = NO_TOPICS): void {
    if (news.wakeAt !== null) for (const heard of this.#dueListeners) heard(news)
    for (const follower of this.#followers.get(nameOf(news.log)) ?? []) {
      follower.told(news.seq)
      this.#touched.add(follower)
    }
    for (const topic of topics) {
      // Held by somebody who does what is due.
      if (topic === DUE_TOPIC && news.wakeAt === null) continue
      const waiting = this.#outbox.get(topic)
      if (waiting === undefined) this.#outbox.set(topic, [news])
      else waiting.push(news)
    }
    this.#plan()
  }

  // In a turn of its own: by then whoever appended knows that it did, and is not woken by itself.
  #plan(): void {
    if (this.#isPlanned || (this.#touched.size === 0 && this.#outbox.size === 0)) return
    this.#isPlanned = true
    setImmediate(() => {
      this.#isPlanned = false
      for (const follower of this.#touched) if (follower.isBehind) follower.wake()
      this.#touched.clear()
      this.#send()
    })
  }

  #send(): void {
    for (const [topic, news] of this.#outbox) {
      for (const message of writeMessages(news)) this.#driver.publish?.(topic, message)
    }
    this.#outbox.clear()
  }

  #topicFor({ onlyGuests, log }: Follower) {
    return onlyGuests ? this.#topics.named(DUE_TOPIC) : this.#topics.of(hashedOf(log))
  }

  #receive(message: string | undefined): void {
    if (this.#closed) return
    if (message === undefined) return this.#changed()
    for (const news of readMessage(message)) this.#tell(news)
  }

  #watchChanges(): void {
    this.#endChanges ??= this.#driver.watchChanges?.(() => this.#changed())
  }

  /** Something happened, and nobody knows what: all who wait are asked about together. */
  #changed(): void {
    for (const heard of this.#dueListeners) heard(undefined)
    this.#check()
  }

  #planSafety(): void {
    if (this.#safety !== undefined || this.#closed || this.#driver.watchChanges !== undefined) return
    this.#safety = setTimeout(() => {
      this.#safety = undefined
      if (this.#followers.size === 0) return
      this.#check()
      this.#planSafety()
    }, SAFETY_MS)
    this.#safety.unref()
  }

  #check(): void {
    if (this.#checking !== undefined) {
      this.#checkAgain = true
      return
    }
    this.#checkAgain = false
    this.#checking = this.#checkAll().finally(() => {
      this.#checking = undefined
      if (this.#checkAgain && !this.#closed) this.#check()
    })
  }

  async #checkAll(): Promise<void> {
    const resting = this.#resting()
    for (let i = 0; i < resting.length && !this.#closed; i += MOST_ASKED) {
      const some = resting.slice(i, i + MOST_ASKED)
      try {
        const positions = await this.#positions(some.map(({ log }) => log))
        for (const [at, follower] of some.entries()) if ((positions[at]?.seq ?? -1) !== follower.seq) follower.wake()
      } catch {
        // Each finds out by itself what is wrong, and is told.
        for (const follower of some) follower.wake()
      }
    }
  }

  async #positions(logs: readonly LogKey[]): Promise<readonly ({ readonly seq: number } | undefined)[]> {
    return this.#driver.positions?.(logs) ?? Promise.all(logs.map((log) => this.#driver.head(log)))
  }

  #resting(): Follower[] {
    return [...this.#followers.values()].flatMap((all) => [...all].filter((follower) => follower.isResting))
  }

  #restIfUnused(): void {
    if (this.#followers.size > 0 || this.#dueListeners.size > 0) return
    this.#endChanges?.()
    this.#endChanges = undefined
    clearTimeout(this.#safety)
    this.#safety = undefined
  }
}

function nameOf({ tenant, thread, branch }: LogKey): string {
  return `${tenant}\n${thread}\n${branch}`
}

/** What the topic of a log follows from. Other versions go by it as well. */
function hashedOf({ tenant, thread, branch }: LogKey): string {
  return `${tenant}${thread}${branch}`
}
