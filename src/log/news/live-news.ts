import { randomBytes } from 'node:crypto'
import type { Driver } from '../contract.js'
import type { Clock } from '../../core/time/clock.js'
import { packMessages, unpackMessage } from './messages.js'
import { Topics } from './topic.js'

/** Told what happens in a run while it happens, and whether that was another process. */
export type LiveListener = (event: unknown, isElsewhere: boolean) => void

/** What happens is sent this long after it did, as much as fits in one message: one for each token would cost more than them. */
const GATHER_MS = 15
/** More than this is not kept waiting: what is lost is made up for by the record. */
const MOST_WAITING_BYTES = 256 * 1024

/**
 * Carries what is never recorded, such as tokens, from runs to those who listen, in this and other processes. Begins with
 * the first who listens, never keeps a run waiting, and may lose some. What a store with keys would encrypt stays in its
 * process.
 */
export class LiveNews {
  readonly #driver: Driver
  readonly #id = randomBytes(6).toString('hex')
  readonly #listeners = new Map<string, Set<LiveListener>>()
  readonly #topics: Topics
  readonly #waiting = new Map<string, string[]>()
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** False: nothing leaves this process. */
  crosses = true

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver
    this.#topics = new Topics('live', driver, clock, (message) => this.#receive(message))
  }

  /** Whether what happens in other processes is heard by now, of all that somebody listens to. */
  get isListening(): boolean {
    return this.#topics.areOpen
  }

  /** Something happened in a run of this process. */
  tell(log: string, event: unknown): void {
    if (this.#closed) return
    for (const heard of this.#listeners.get(log) ?? []) heard(event, false)
    const { publish, hasSubscribers } = this.#driver
    if (!this.crosses || publish === undefined) return
    const topic = this.#topics.nameOf(log)
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
    const end = this.crosses && this.#driver.subscribe !== undefined ? this.#topics.of(log).use() : undefined
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
    await this.#topics.close()
  }

  #send(): void {
    this.#timer = undefined
    this.#waitingBytes = 0
    for (const [topic, texts] of this.#waiting) {
      for (const message of packMessages(texts, JSON.stringify(this.#id))) this.#driver.publish?.(topic, message)
    }
    this.#waiting.clear()
  }

  #receive(message: string | undefined): void {
    if (message === undefined || this.#closed) return
    const [sender, ...parts] = unpackMessage(message)
    if (sender === this.#id) return
    // Whoever may connect to the backend can send anything.
    for (const part of parts) {
      if (!Array.isArray(part) || typeof part[0] !== 'string') continue
      for (const heard of this.#listeners.get(part[0]) ?? []) heard(part[1], true)
    }
  }
}
