import { createHash, randomUUID } from 'node:crypto'
import { MESSAGE_BYTES } from '../../log/contract.js'
import { Subscriptions } from '../shared/subscriptions.js'
import { encodeArray } from './values/binary-array.js'
import { Listener } from './listener.js'
import type { PgPoolLike } from './pg-client.js'
import type { Sessions } from './connection/sessions.js'

/** How long to trust what others are known to listen to; longer for a process that is told of changes. */
const FRESH_MS = 1000
const TOLD_FRESH_MS = 15_000
/** The most messages that wait to be sent. */
const MAX_PENDING = 10_000

interface ChannelSettings {
  readonly schema: string
  readonly quotedSchema: string
  /** Leads to the server itself; undefined when only a pooler is known, or nothing is to be told. */
  readonly listenPool: PgPoolLike | undefined
  readonly notify: boolean
  readonly timeoutMs: number
}

/**
 * Messages between processes by NOTIFY, in separate statements. Inside an append they would make all commits of the
 * database wait for each other, because Postgres takes one lock for all notifications and holds it until the commit is
 * on disk. Listeners record their topics in a table; the reply to an append says whether there are any, and then the
 * topics are read, at most once a second.
 */
export class Channel {
  readonly #sessions: Sessions
  readonly #settings: ChannelSettings
  readonly #subscriptions: Subscriptions
  readonly #listener: Listener | undefined
  readonly #start: string
  readonly #id = randomUUID()
  #pending: { readonly channel: string; readonly message: string }[] = []
  #sending: Promise<void> | undefined
  /** What others listen to; undefined until it was read. */
  #heard: ReadonlySet<string> | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined
  #isListened = false
  #closed = false

  constructor(sessions: Sessions, settings: ChannelSettings) {
    this.#sessions = sessions
    this.#settings = settings
    // Names of channels are short; those of schemas need not be.
    const start = `holdfast:${createHash('sha256').update(settings.schema).digest('hex').slice(0, 16)}`
    this.#start = start
    const { listenPool, notify, timeoutMs, quotedSchema } = settings
    this.#listener =
      listenPool && notify
        ? new Listener({
            pool: listenPool,
            schema: quotedSchema,
            id: this.#id,
            timeoutMs,
            control: start,
            channelOf: (topic) => this.#channelOf(topic),
            receive: (channel, payload) => this.#receive(channel, payload),
          })
        : undefined
    this.#subscriptions = new Subscriptions({
      open: async (topic) => this.#listener?.add(topic),
      close: async (topic) => this.#listener?.remove(topic),
    })
  }

  get canSubscribe(): boolean {
    return this.#listener !== undefined
  }

  /** Reported by every append, at no cost: whether somebody listens to anything. */
  noteListening(listening: boolean): void {
    this.#isListened = listening
    if (!listening) this.#heard = undefined
  }

  hasSubscribers(topic: string): boolean {
    if (!this.#settings.notify || this.#closed) return false
    if (!this.#isListened) return false
    const freshMs = this.#listener?.isListening ? TOLD_FRESH_MS : FRESH_MS
    if (performance.now() - this.#readAt > freshMs) this.#read()
    return this.#heard === undefined || this.#heard.has(topic)
  }

  publish(topic: string, message: string): void {
    if (!this.hasSubscribers(topic) || this.#pending.length >= MAX_PENDING) return
    // One that is too long would fail the statement, and all that travel in it.
    if (Buffer.byteLength(message) > MESSAGE_BYTES) return
    this.#pending.push({ channel: this.#channelOf(topic), message })
    this.#sending ??= this.#flush().finally(() => {
      this.#sending = undefined
    })
  }

  subscribe(topic: string, heard: (message: string | undefined) => void): Promise<() => Promise<void>> {
    return this.#subscriptions.add(topic, heard)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#subscriptions.clear()
    await this.#listener?.stop()
    await Promise.all([this.#sending, this.#reading])
  }

  #channelOf(topic: string): string {
    return `${this.#start}:${topic}`
  }

  // While a statement is in progress, others gather.
  async #flush(): Promise<void> {
    await Promise.resolve()
    while (this.#pending.length > 0) {
      const sent = this.#pending
      this.#pending = []
      const channels = encodeArray(
        'text',
        sent.map(({ channel }) => channel),
      )
      const messages = encodeArray(
        'text',
        sent.map(({ message }) => message),
      )
      try {
        await this.#sessions.write({
          text: 'SELECT count(pg_notify(c, m)) FROM unnest($1::text[], $2::text[]) AS n (c, m)',
          values: [channels, messages],
        })
      } catch {
        // Messages may get lost; the appends they announce are safe.
      }
    }
  }

  #read(): void {
    this.#readAt = performance.now()
    this.#reading ??= this.#readHeard().finally(() => {
      this.#reading = undefined
    })
  }

  async #readHeard(): Promise<void> {
    const { quotedSchema } = this.#settings
    // What this process tells itself needs no server.
    const text = `SELECT topics FROM ${quotedSchema}.listeners WHERE until > clock_timestamp() AND id <> $1`
    try {
      const rows = await this.#sessions.read({ text, values: [this.#id] })
      this.#heard = new Set(rows.flatMap(([topics]) => (topics ? topics.split(' ') : [])))
    } catch {
      // Asked again before long.
    }
  }

  #receive(channel: string | undefined, payload: string): void {
    if (channel === undefined) return this.#subscriptions.tellAll()
    if (channel === this.#start) return this.#read()
    const prefix = `${this.#start}:`
    if (channel.startsWith(prefix)) this.#subscriptions.tell(channel.slice(prefix.length), payload)
  }
}
