import type { PgClientLike, PgPoolLike } from './pg-client.js'
import { Sessions } from './sessions.js'

interface ListenerSettings {
  readonly pool: PgPoolLike
  readonly channel: string
  /** Quoted. */
  readonly schema: string
  /** Names this listener in the table of listeners. */
  readonly id: string
  readonly timeoutMs: number
  readonly receive: (payload: string) => void
}

/** How often a listener says that it is still there, and for how long it is believed. */
const BEAT_MS = 15_000
const BELIEVED_MS = 60_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 10_000

/** One connection that listens as long as somebody watches, and comes back by itself when it breaks. */
export class Listener {
  readonly #settings: ListenerSettings
  readonly #sessions: Sessions
  #client: PgClientLike | undefined
  #starting: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #retryMs = FIRST_RETRY_MS
  #wanted = false

  constructor(settings: ListenerSettings) {
    this.#settings = settings
    const { timeoutMs } = settings
    this.#sessions = new Sessions(settings.pool, {
      target: 'Postgres',
      connectTimeoutMs: timeoutMs,
      statementTimeoutMs: timeoutMs,
    })
  }

  /** Resolves when the connection listens. */
  async start(): Promise<void> {
    this.#wanted = true
    if (this.#client !== undefined) return
    clearTimeout(this.#timer)
    try {
      this.#starting ??= this.#connect()
      await this.#starting
    } catch (error) {
      this.#wanted = false
      throw error
    } finally {
      this.#starting = undefined
    }
  }

  async stop(): Promise<void> {
    this.#wanted = false
    clearTimeout(this.#timer)
    await this.#starting?.catch(() => {})
    const client = this.#client
    if (client === undefined) return
    this.#client = undefined
    try {
      await this.#beat(client, 0)
    } catch {
      // Writers believe in it a little longer, that is all.
    }
    client.release(true)
  }

  async #connect(): Promise<void> {
    const client = await this.#sessions.borrow(this.#settings.timeoutMs)
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', (message) => {
      if (client === this.#client && message.channel === this.#settings.channel)
        this.#settings.receive(message.payload ?? '')
    })
    try {
      await this.#sessions.sendOn(client, { text: `LISTEN "${this.#settings.channel}"`, values: [] })
      await this.#beat(client, BELIEVED_MS)
    } catch (error) {
      client.release(true)
      throw error
    }
    this.#client = client
    this.#retryMs = FIRST_RETRY_MS
    this.#plan(BEAT_MS, () => this.#check(client))
  }

  /** The beat also finds a connection whose other end went away without a word. */
  async #check(client: PgClientLike): Promise<void> {
    try {
      await this.#beat(client, BELIEVED_MS)
      if (client === this.#client) this.#plan(BEAT_MS, () => this.#check(client))
    } catch {
      this.#lose(client)
    }
  }

  async #beat(client: PgClientLike, believedMs: number): Promise<void> {
    const { schema, id } = this.#settings
    const text =
      believedMs === 0
        ? `DELETE FROM ${schema}.listeners WHERE id = $1 OR until < clock_timestamp() - $2 * interval '1 day'`
        : `INSERT INTO ${schema}.listeners (id, until) VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond')
           ON CONFLICT (id) DO UPDATE SET until = excluded.until`
    await this.#sessions.sendOn(client, { text, values: [id, believedMs === 0 ? 1 : believedMs] })
  }

  #lose(client: PgClientLike): void {
    if (client !== this.#client) return
    this.#client = undefined
    client.release(true)
    if (this.#wanted) this.#plan(this.#retryMs, () => this.#reconnect())
  }

  async #reconnect(): Promise<void> {
    // Spread, so that all processes do not come back in the same moment.
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2) * (0.75 + Math.random() / 2)
    try {
      this.#starting ??= this.#connect()
      await this.#starting
    } catch {
      if (this.#wanted) this.#plan(this.#retryMs, () => this.#reconnect())
    } finally {
      this.#starting = undefined
    }
  }

  #plan(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void work(), ms)
    this.#timer.unref()
  }
}
