import { MESSAGE_BYTES } from '../../log/contract.js'
import { Subscriptions } from '../shared/subscriptions.js'
import type { RedisLike } from './client.js'
import type { Store } from './store.js'

/** For how long a topic that nobody listened to is not published on again. */
const QUIET_MS = 1000

/**
 * Messages between processes by pub/sub. The reply to a message says how many listened; if nobody did, nothing is sent
 * to that topic for a second. A cluster can't say, because each node knows only its own listeners.
 */
export class Channel {
  readonly #store: Store
  readonly #start: string
  readonly #quiet = new Map<string, number>()
  readonly #subscriptions: Subscriptions
  #subscriber: Promise<RedisLike> | undefined
  #closed = false

  constructor(store: Store) {
    this.#store = store
    this.#start = `${store.prefix}:news:`
    this.#subscriptions = new Subscriptions({
      open: async (topic) => {
        const client = await (this.#subscriber ??= this.#connect())
        await client.subscribe(this.#start + topic)
      },
      close: async (topic) => {
        if (this.#subscriptions.names.length === 0) return this.#disconnect()
        const client = await this.#subscriber?.catch(() => undefined)
        await client?.unsubscribe(this.#start + topic).catch(() => {})
      },
    })
  }

  hasSubscribers(topic: string): boolean {
    return !this.#closed && (this.#quiet.get(topic) ?? 0) <= performance.now()
  }

  publish(topic: string, message: string): void {
    const { client } = this.#store.connection
    if (!this.hasSubscribers(topic) || client.status !== 'ready' || Buffer.byteLength(message) > MESSAGE_BYTES) return
    void this.#send(client, topic, message)
  }

  subscribe(topic: string, heard: (message: string | undefined) => void): Promise<() => Promise<void>> {
    return this.#subscriptions.add(topic, heard)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#subscriptions.clear()
    await this.#disconnect()
  }

  async #send(client: RedisLike, topic: string, message: string): Promise<void> {
    try {
      const heard = await client.call('publish', this.#start + topic, message)
      if (client.isCluster) return
      if (heard === 0) this.#quiet.set(topic, performance.now() + QUIET_MS)
      else this.#quiet.delete(topic)
    } catch {
      // Messages may get lost; the appends they announce are safe.
    }
  }

  async #disconnect(): Promise<void> {
    const subscriber = this.#subscriber
    this.#subscriber = undefined
    await subscriber?.then(
      (client) => client.disconnect(),
      () => {},
    )
  }

  async #connect(): Promise<RedisLike> {
    const client = this.#store.connection.client.duplicate()
    let isBack = false
    client.on('error', () => {})
    client.on('message', (...[channel, message]: string[]) => {
      if (channel?.startsWith(this.#start)) this.#subscriptions.tell(channel.slice(this.#start.length), message)
    })
    // The client subscribes again by itself when its connection returns.
    client.on('ready', () => {
      if (isBack) this.#subscriptions.tellAll()
      isBack = true
    })
    try {
      await client.connect()
      return client
    } catch (error) {
      client.disconnect()
      this.#subscriber = undefined
      throw error
    }
  }
}
