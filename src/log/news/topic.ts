import type { Clock } from '../../core/time/clock.js'
import type { Driver } from '../contract.js'

/** Writers may not know of a new listener for this long: until then whoever waits also looks for itself. */
const SETTLE_MS = 1500
/** How long a topic that nobody needs anymore stays open: someone may need it again shortly. */
const LINGER_MS = 10_000
const RETRY_MS = 5000

/** One topic of the driver, open while somebody needs it. */
class Topic {
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #name: string
  readonly #heard: (message: string | undefined) => void
  #users = 0
  #end: (() => Promise<void>) | undefined
  #opening = false
  #openedAt: number | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(driver: Driver, clock: Clock, name: string, heard: (message: string | undefined) => void) {
    this.#driver = driver
    this.#clock = clock
    this.#name = name
    this.#heard = heard
  }

  get isOpen(): boolean {
    return this.#openedAt !== undefined
  }

  /** Whether what is published on it arrives here, and whoever publishes knows of it. */
  get isLive(): boolean {
    return this.#openedAt !== undefined && this.#clock.monotonic() - this.#openedAt >= SETTLE_MS
  }

  /** Opens it if need be. Returns a function that ends this use of it. */
  use(): () => void {
    this.#users++
    clearTimeout(this.#timer)
    this.#open()
    let used = true
    return () => {
      if (!used) return
      used = false
      this.#users--
      if (this.#users > 0 || this.#closed) return
      this.#plan(LINGER_MS, () => void this.#letGo())
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#letGo()
  }

  #open(): void {
    if (this.#opening || this.#end !== undefined || this.#closed || this.#driver.subscribe === undefined) return
    void this.#subscribe(this.#driver.subscribe.bind(this.#driver))
  }

  async #subscribe(subscribe: NonNullable<Driver['subscribe']>): Promise<void> {
    this.#opening = true
    try {
      this.#end = await subscribe(this.#name, this.#heard)
      this.#openedAt = this.#clock.monotonic()
      if (this.#closed) await this.#letGo()
    } catch {
      if (this.#users > 0 && !this.#closed) this.#plan(RETRY_MS, () => this.#open())
    } finally {
      this.#opening = false
    }
  }

  async #letGo(): Promise<void> {
    const end = this.#end
    this.#end = undefined
    this.#openedAt = undefined
    await end?.().catch(() => {})
  }

  #plan(ms: number, work: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(work, ms)
    this.#timer.unref()
  }
}

/** Logs share these many topics: one each would be a statement for everybody who waits. */
const SHARED = 64

/** The topics of the driver that one part of the news uses. */
export class Topics {
  readonly #kind: string
  readonly #make: (name: string) => Topic
  readonly #topics = new Map<string, Topic>()

  constructor(kind: string, driver: Driver, clock: Clock, heard: (message: string | undefined) => void) {
    this.#kind = kind
    this.#make = (name) => new Topic(driver, clock, name, heard)
  }

  get areOpen(): boolean {
    return [...this.#topics.values()].every((topic) => topic.isOpen)
  }

  /** The name of the topic of a log. */
  nameOf(log: string): string {
    let hash = 0x811c9dc5
    for (let i = 0; i < log.length; i++) hash = Math.imul(hash ^ log.charCodeAt(i), 0x01000193)
    return `${this.#kind}.${(hash >>> 0) % SHARED}`
  }

  of(log: string): Topic {
    return this.named(this.nameOf(log))
  }

  named(name: string): Topic {
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = this.#make(name)
      this.#topics.set(name, topic)
    }
    return topic
  }

  async close(): Promise<void> {
    await Promise.all([...this.#topics.values()].map((topic) => topic.close()))
  }
}
