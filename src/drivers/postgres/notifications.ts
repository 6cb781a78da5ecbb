import { randomUUID } from 'node:crypto'
import type { LogKey } from '../../log/contract.js'
import { encodeArray } from './binary-array.js'
import { Listener } from './listener.js'
import type { PgPoolLike } from './pg-client.js'
import type { Sessions } from './sessions.js'

type Watcher = (log: LogKey, seq: number) => void

/**
 * Tells other processes of appends, after they are committed and in a statement of its own. Inside the append it
 * would make all commits of the database wait for each other, because Postgres takes one lock for all notifications
 * and keeps it until the commit is on disk. A notification may get lost this way; watchers poll as well.
 */
export class Notifications {
  readonly #sessions: Sessions
  readonly #channel: string
  readonly #pending = new Map<string, string>()
  #sending: Promise<void> | undefined
  readonly #watchers = new Set<Watcher>()
  readonly #listener: Listener | undefined

  /** `listenPool` leads to the server itself; undefined when only a pooler is known. */
  constructor(
    sessions: Sessions,
    quotedSchema: string,
    channel: string,
    listenPool: PgPoolLike | undefined,
    timeoutMs: number,
  ) {
    this.#sessions = sessions
    this.#channel = channel
    this.#listener =
      listenPool &&
      new Listener({
        pool: listenPool,
        channel,
        schema: quotedSchema,
        id: randomUUID(),
        timeoutMs,
        receive: (payload) => this.#receive(payload),
      })
  }

  get canWatch(): boolean {
    return this.#listener !== undefined
  }

  /** Only the newest seq of each log is told; while a notification is under way, others gather. */
  send(log: LogKey, seq: number): void {
    const key = JSON.stringify([log.tenant, log.thread, log.branch])
    this.#pending.set(key, `${key.slice(0, -1)},${seq}]`)
    this.#sending ??= this.#flush().finally(() => {
      this.#sending = undefined
    })
  }

  async watch(watcher: Watcher): Promise<() => Promise<void>> {
    const listener = this.#listener
    if (listener === undefined) throw new TypeError('this driver can not watch')
    // Wrapped: the same function watching twice is two watchers, and ending one leaves the other.
    const own: Watcher = (log, seq) => watcher(log, seq)
    this.#watchers.add(own)
    try {
      await listener.start()
    } catch (error) {
      this.#watchers.delete(own)
      throw error
    }
    return async () => {
      this.#watchers.delete(own)
      if (this.#watchers.size === 0) await listener.stop()
    }
  }

  async close(): Promise<void> {
    this.#watchers.clear()
    await this.#listener?.stop()
    await this.#sending
  }

  async #flush(): Promise<void> {
    while (this.#pending.size > 0) {
      const payloads = [...this.#pending.values()]
      this.#pending.clear()
      try {
        await this.#sessions.write({
          text: 'SELECT count(pg_notify($1, n)) FROM unnest($2::text[]) AS n',
          values: [this.#channel, encodeArray('text', payloads)],
        })
      } catch {
        // Notifications may get lost; the appends they tell of are safe.
      }
    }
  }

  #receive(payload: string): void {
    const parts = parsePayload(payload)
    if (parts === undefined) return
    const [tenant, thread, branch, seq] = parts
    for (const watcher of [...this.#watchers]) watcher({ tenant, thread, branch }, seq)
  }
}

// Anybody who may connect can notify on any channel.
function parsePayload(payload: string): [LogKey['tenant'], LogKey['thread'], LogKey['branch'], number] | undefined {
  let parts: unknown
  try {
    parts = JSON.parse(payload)
  } catch {
    return undefined
  }
  if (!Array.isArray(parts) || parts.length !== 4 || !Number.isSafeInteger(parts[3])) return undefined
  if (!parts.slice(0, 3).every((part) => typeof part === 'string')) return undefined
  return parts as [LogKey['tenant'], LogKey['thread'], LogKey['branch'], number]
}
