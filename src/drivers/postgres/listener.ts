import type { PgClientLike, PgPoolLike } from './pg-client.js'
import { Sessions } from './connection/sessions.js'

interface ListenerSettings {
  readonly pool: PgPoolLike
  /** Quoted. */
  readonly schema: string
  /** Names this listener in the table of listeners. */
  readonly id: string
  readonly timeoutMs: number
  /** Heard by all listeners when the topics of one change. */
  readonly control: string
  /** The server's channel of a topic. */
  channelOf(topic: string): string
  /** What came on a channel; undefined when some may have been missed. */
  receive(channel: string | undefined, payload: string): void
}

/** How often a listener says that it is still there, and for how long it is believed. */
const BEAT_MS = 15_000
const BELIEVED_MS = 60_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 10_000

/** One connection that listens as long as somebody subscribes, and reconnects by itself when it breaks. */
export class Listener {
  readonly #settings: ListenerSettings
  readonly #sessions: Sessions
  readonly #topics = new Set<string>()
  /** Those of them that the connection does not listen to yet. */
  #added = new Set<string>()
  #client: PgClientLike | undefined
  /** Statements on the connection, one after the other. */
  #turn: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #retryMs = FIRST_RETRY_MS
  /** A connection was lost, and those who listen do not know yet that they may have missed something. */
  #isBehind = false
  #stopped = false

  constructor(settings: ListenerSettings) {
    this.#settings = settings
    const { timeoutMs } = settings
    this.#sessions = new Sessions(settings.pool, {
      target: 'Postgres',
      connectTimeoutMs: timeoutMs,
      statementTimeoutMs: timeoutMs,
    })
  }

  get isListening(): boolean {
    return this.#client !== undefined
  }

  /** Resolves when the connection listens to the topic. */
  add(topic: string): Promise<void> {
    this.#stopped = false
    this.#topics.add(topic)
    this.#added.add(topic)
    return this.#inTurn(async () => {
      if (this.#client === undefined) {
        clearTimeout(this.#timer)
        return this.#connect()
      }
      // The first caller does it for all who came in the meantime.
      const added = [...this.#added].filter((each) => this.#topics.has(each))
      this.#added.clear()
      if (added.length === 0) return
      try {
        await this.#listen(this.#client, added)
        await this.#beat(this.#client)
      } catch (error) {
        this.#added = new Set([...this.#added, ...added])
        throw error
      }
    }).catch((error: unknown) => {
      this.#topics.delete(topic)
      throw error
    })
  }

  /** Closes the connection with the last topic. */
  async remove(topic: string): Promise<void> {
    if (!this.#topics.delete(topic)) return
    await this.#inTurn(async () => {
      const client = this.#client
      if (client === undefined || this.#topics.has(topic)) return
      if (this.#topics.size === 0) return this.#end(client)
      await this.#send(client, `UNLISTEN "${this.#settings.channelOf(topic)}"`)
      await this.#beat(client)
    }).catch(() => {
      // What is no longer wanted is passed over when it comes.
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#topics.clear()
    clearTimeout(this.#timer)
    await this.#inTurn(async () => {
      if (this.#client !== undefined) await this.#end(this.#client)
    }).catch(() => {})
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #end(client: PgClientLike): Promise<void> {
    clearTimeout(this.#timer)
    this.#client = undefined
    const { schema, id } = this.#settings
    const text = `DELETE FROM ${schema}.listeners WHERE id = $1 OR until < clock_timestamp() - interval '1 day'`
    try {
      await this.#send(client, text, [id])
    } catch {
      // Writers believe in it a little longer, that is all.
    }
    client.release(true)
  }

  async #connect(): Promise<void> {
    const client = await this.#sessions.borrow(this.#settings.timeoutMs)
    const { receive } = this.#settings
    // Held back until all topics are listened to: whoever missed something is told so before what comes next.
    let early: (() => void)[] | undefined = []
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', ({ channel, payload }) => {
      if (client !== this.#client) return
      if (early) early.push(() => receive(channel, payload ?? ''))
      else receive(channel, payload ?? '')
    })
    try {
      this.#client = client
      this.#added.clear()
      await this.#send(client, `LISTEN "${this.#settings.control}"`)
      await this.#listen(client, [...this.#topics])
      await this.#beat(client)
    } catch (error) {
      if (this.#client === client) client.release(true)
      this.#client = undefined
      throw error
    }
    if (this.#client !== client) throw new Error('the connection ended as it began')
    this.#retryMs = FIRST_RETRY_MS
    this.#plan(BEAT_MS, () => this.#check(client))
    if (this.#isBehind) receive(undefined, '')
    this.#isBehind = false
    for (const tell of early) tell()
    early = undefined
  }

  async #listen(client: PgClientLike, topics: readonly string[]): Promise<void> {
    for (const topic of topics) await this.#send(client, `LISTEN "${this.#settings.channelOf(topic)}"`)
  }

  /** The heartbeat also detects a connection whose other end disappeared silently. */
  async #check(client: PgClientLike): Promise<void> {
    try {
      await this.#inTurn(() => this.#beat(client))
      if (client === this.#client) this.#plan(BEAT_MS, () => this.#check(client))
    } catch {
      this.#lose(client)
    }
  }

  /** Says what is listened to, and lets other listeners know that it may have changed. */
  async #beat(client: PgClientLike): Promise<void> {
    const { schema, id, control } = this.#settings
    const text = `INSERT INTO ${schema}.listeners AS l (id, until, topics)
      VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', $3)
      ON CONFLICT (id) DO UPDATE SET until = excluded.until, topics = excluded.topics
      RETURNING pg_notify($4, '')`
    await this.#send(client, text, [id, BELIEVED_MS, [...this.#topics].sort().join(' '), control])
  }

  #send(client: PgClientLike, text: string, values: unknown[] = []): Promise<unknown> {
    return this.#sessions.sendOn(client, { text, values })
  }

  #lose(client: PgClientLike): void {
    if (client !== this.#client) return
    this.#client = undefined
    this.#isBehind = true
    client.release(true)
    if (!this.#stopped && this.#topics.size > 0) this.#plan(this.#retryMs, () => this.#reconnect())
  }

  async #reconnect(): Promise<void> {
    // Spread out, so that not all processes come back at the same moment.
    this.#retryMs = Math.min(LAST_RETRY_MS, this.#retryMs * 2) * (0.75 + Math.random() / 2)
    try {
      await this.#inTurn(async () => {
        if (this.#client === undefined && this.#topics.size > 0) await this.#connect()
      })
    } catch {
      if (!this.#stopped && this.#topics.size > 0) this.#plan(this.#retryMs, () => this.#reconnect())
    }
  }

  #plan(ms: number, work: () => Promise<void>): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void work(), ms)
    this.#timer.unref()
  }
}
