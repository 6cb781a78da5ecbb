import type { BranchId, TenantId, ThreadId } from '../../core/ids.js'
import type { Append, AppendResult, LogKey } from '../../log/contract.js'
import type { RedisLike } from './client.js'
import type { Store } from './store.js'

type Announced = readonly [TenantId, ThreadId, BranchId, seq: number]
export type Listener = (log: LogKey, seq: number) => void

/** Appends are announced this long after they landed, many in one message: a message each would cost as much as them. */
const ANNOUNCE_AFTER_MS = 5

/**
 * Tells other processes of appends that landed. A writer that dies before it does is found by those who poll.
 */
export class Announcements {
  readonly #store: Store
  #waiting: Announced[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store) {
    this.#store = store
  }

  add(batch: readonly Append[], results: readonly AppendResult[]): void {
    for (const [i, { log, entries }] of batch.entries()) {
      if (results[i]?.status !== 'appended') continue
      this.#waiting.push([log.tenant, log.thread, log.branch, entries[entries.length - 1]?.seq ?? 0])
    }
    if (this.#waiting.length === 0 || this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.flush(), ANNOUNCE_AFTER_MS)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length === 0) return
    const message = JSON.stringify(this.#waiting)
    this.#waiting = []
    this.#store.connection.send('publish', channelOf(this.#store.prefix), message)
  }
}

/** One connection for all watchers of a driver, opened by the first and closed after the last. */
export class Watching {
  readonly #client: RedisLike
  readonly #prefix: string
  readonly #listeners = new Set<Listener>()
  #subscriber: Promise<RedisLike> | undefined

  constructor(client: RedisLike, prefix: string) {
    this.#client = client
    this.#prefix = prefix
  }

  async add(listener: Listener): Promise<() => Promise<void>> {
    // Wrapped: the same function watching twice is two watchers, and ending one leaves the other.
    const watcher: Listener = (log, seq) => listener(log, seq)
    this.#listeners.add(watcher)
    try {
      await (this.#subscriber ??= this.#subscribe())
    } catch (error) {
      this.#listeners.delete(watcher)
      this.#subscriber = undefined
      throw error
    }
    return async () => {
      this.#listeners.delete(watcher)
      if (this.#listeners.size === 0) await this.close()
    }
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    const subscriber = this.#subscriber
    this.#subscriber = undefined
    await subscriber?.then(
      (client) => client.disconnect(),
      () => {},
    )
  }

  async #subscribe(): Promise<RedisLike> {
    const client = this.#client.duplicate()
    client.on('error', () => {})
    client.on('message', (...[, message]: string[]) => this.#deliver(message as string))
    try {
      await client.connect()
      await client.subscribe(channelOf(this.#prefix))
    } catch (error) {
      client.disconnect()
      throw error
    }
    return client
  }

  #deliver(message: string): void {
    for (const [tenant, thread, branch, seq] of parseMessage(message)) {
      for (const listener of [...this.#listeners]) {
        if (this.#listeners.has(listener)) listener({ tenant, thread, branch }, seq)
      }
    }
  }
}

// Anybody who may publish can publish on our channel, and what is thrown here would end the process.
function parseMessage(message: string): Announced[] {
  let appends: unknown
  try {
    appends = JSON.parse(message)
  } catch {
    return []
  }
  return Array.isArray(appends) ? appends.filter(isAnnounced) : []
}

function isAnnounced(append: unknown): append is Announced {
  if (!Array.isArray(append) || append.length !== 4 || !Number.isSafeInteger(append[3])) return false
  return append.slice(0, 3).every((part) => typeof part === 'string')
}

function channelOf(prefix: string): string {
  return `${prefix}:appends`
}
