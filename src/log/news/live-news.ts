import { randomBytes } from 'node:crypto'
import { type Driver, MESSAGE_BYTES } from '../contract.js'
import type { Clock } from '../../core/time/clock.js'
import { Topic } from './topic.js'

/** Told what happens in a run while it happens, and whether that was another process. */
export type LiveListener = (event: unknown, isElsewhere: boolean) => void

/** What happens is sent this long after it did, as much as fits in one message: one for each token would cost more than them. */
const GATHER_MS = 15
/** More than this is not kept waiting: what is lost is made up for by the record. */
const MOST_WAITING_BYTES = 256 * 1024
const TOPICS = 64

/**
 * Carries what is never recorded, such as tokens, from runs to those who listen, in this and other processes. Begins with
 * the first who listens, never keeps a run waiting, and may lose some. What a store with keys would encrypt stays in its
 * process.
 */
export class LiveNews {
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #id = randomBytes(6).toString('hex')
  readonly #listeners = new Map<string, Set<LiveListener>>()
  readonly #topics = new Map<string, Topic>()
  readonly #waiting = new Map<string, string[]>()
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** False: nothing leaves this process. */
  crosses = true

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver
    this.#clock = clock
  }

  /** Whether what happens in other processes is heard by now, of all that somebody listens to. */
  get isListening(): boolean {
    return [...this.#topics.values()].every((topic) => topic.isOpen)
  }

  /** Something happened in a run of this process. */
  tell(log: string, event: unknown): void {
    if (this.#closed) return
    for (const heard of this.#listeners.get(log) ?? []) heard(event, false)
    const { publish, hasSubscribers } = this.#driver
    if (!this.crosses || publish === undefined) return
    const topic = topicOf(log)
    if (hasSubscribers?.call(this.#driver, topic) === false || this.#waitingBytes > MOST_WAITING_BYTES) return
    let text: string
    try {
      text = JSON.stringify([log, event])
    } catch {
      // A program may emit what is no data; it is for those in its own process.
      return
    }
    const waiting = this.#waiting.get(topic)
    if (waiting === undefined) this.#waiting.set(topic, [text])
    else waiting.push(text)
    this.#waitingBytes += text.length
    this.#timer ??= setTimeout(() => this.#send(), GATHER_MS)
  }

  /** Hears of what happens in runs of a log, wherever they are. */
  listen(log: string, heard: LiveListener): () => void {
    const listener: LiveListener = (event, isElsewhere) => heard(event, isElsewhere)
    const all = this.#listeners.get(log) ?? new Set()
    this.#listeners.set(log, all.add(listener))
    const end = this.crosses && this.#driver.subscribe !== undefined ? this.#topic(topicOf(log)).use() : undefined
    return () => {
      all.delete(listener)
      if (all.size === 0 && this.#listeners.get(log) === all) this.#listeners.delete(log)
      end?.()
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    this.#send()
    this.#closed = true
    this.#listeners.clear()
    await Promise.all([...this.#topics.values()].map((topic) => topic.close()))
  }

  #topic(name: string): Topic {
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = new Topic(this.#driver, this.#clock, name, (message) => this.#receive(message))
      this.#topics.set(name, topic)
    }
    return topic
  }

  #send(): void {
    this.#timer = undefined
    this.#waitingBytes = 0
    for (const [topic, texts] of this.#waiting) {
      for (const message of this.#pack(texts)) this.#driver.publish?.(topic, message)
    }
    this.#waiting.clear()
  }

  *#pack(texts: readonly string[]): Generator<string> {
    const start = JSON.stringify(this.#id)
    let parts = [start]
    let bytes = start.length + 2
    for (const text of texts) {
      const size = Buffer.byteLength(text) + 1
      if (start.length + 2 + size > MESSAGE_BYTES) continue
      if (bytes + size > MESSAGE_BYTES) {
        yield `[${parts.join(',')}]`
        parts = [start]
        bytes = start.length + 2
      }
      parts.push(text)
      bytes += size
    }
    if (parts.length > 1) yield `[${parts.join(',')}]`
  }

  #receive(message: string | undefined): void {
    if (message === undefined || this.#closed) return
    let parts: unknown
    try {
      parts = JSON.parse(message)
    } catch {
      return
    }
    // Whoever may connect to the backend can send anything.
    if (!Array.isArray(parts) || parts[0] === this.#id) return
    for (const part of parts.slice(1) as unknown[]) {
      if (!Array.isArray(part) || typeof part[0] !== 'string') continue
      for (const heard of this.#listeners.get(part[0]) ?? []) heard(part[1], true)
    }
  }
}

function topicOf(log: string): string {
  let hash = 0x811c9dc5
  for (let i = 0; i < log.length; i++) hash = Math.imul(hash ^ log.charCodeAt(i), 0x01000193)
  return `live.${(hash >>> 0) % TOPICS}`
}
