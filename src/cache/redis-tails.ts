import { createHash } from 'node:crypto'
import type { LogKey, RecentTail, Scrubbed, StoredEntry } from '../log/contract.js'
import type { Argument, RedisLike } from '../drivers/redis/client.js'
import { scrubServers } from '../drivers/redis/server/scrub.js'
import { packEntry, unpackEntry } from './pack-entry.js'
import type { CacheScript, CacheScripts } from './scripts.js'
import type { LogLife, NewTail, TailCache } from './tail-cache.js'

/** How much of a log is kept, for how long, and how long to wait for it. */
export interface RedisTailSettings {
  /** Where it is, for people. */
  readonly address: string
  /** Before every key. */
  readonly prefix: string
  /** Tells stores apart that share a prefix. */
  readonly namespace: string
  readonly ttlMs: number
  /** Of one log. A longer tail is not kept. */
  readonly maxBytes: number
  readonly timeoutMs: number
}

const MOST_ENTRIES = 4000
/** What waits to be written to a slow server. Beyond that, appends go by it. */
const MOST_UNDER_WAY = 16 * 1024 * 1024
/** After a failure, nobody waits for the server again for this long. */
const REST_MS = 1000
const MOST_OWED = 100_000

/** Tails in plain Redis: a hash per log, written and read by one script each. */
export class RedisTails implements TailCache {
  readonly #client: RedisLike
  readonly #scripts: CacheScripts
  readonly #settings: RedisTailSettings
  /** Removals that did not reach the server, by key, with the incarnation that must not come back. */
  readonly #owed = new Map<string, string>()
  readonly #underWay = new Set<Promise<unknown>>()
  #bytes = 0
  #restUntil = 0
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(client: RedisLike, scripts: CacheScripts, settings: RedisTailSettings) {
    this.#client = client
    this.#scripts = scripts
    this.#settings = settings
    // Without a listener an unreachable server would end the process.
    client.on('error', () => {})
    client.on('ready', () => {
      this.#restUntil = 0
      void this.#payOwed()
    })
    client.connect().catch(() => {})
  }

  describe(): string {
    const { address } = this.#settings
    return this.#client.status === 'ready' ? address : `${address} (not connected)`
  }

  async get(log: LogKey, from: number | undefined): Promise<RecentTail | undefined> {
    if (!this.#isUsable) return undefined
    const key = this.#keyOf(log)
    // What was erased while the server was down is still there.
    if (this.#owed.has(key)) return undefined
    const reply = await this.#call('get', key, [String(from ?? -1), String(this.#settings.ttlMs)])
    return Array.isArray(reply) ? readTail(reply as unknown[]) : undefined
  }

  async put(log: LogKey, { incarnation, after, entries }: NewTail): Promise<boolean> {
    if (!this.#isUsable || entries.length > MOST_ENTRIES) return false
    const [first, last] = [entries[0] as StoredEntry, entries.at(-1) as StoredEntry]
    const packed = entries.map(packEntry)
    const bytes = packed.reduce((sum, { length }) => sum + length, 0)
    const { ttlMs, maxBytes } = this.#settings
    if (this.#bytes + bytes > MOST_UNDER_WAY) return false
    const key = this.#keyOf(log)
    const args = [
      incarnation,
      String(after?.seq ?? -1),
      after?.hash ?? '',
      ...[first.seq, last.seq].map(String),
      last.hash,
      ...[bytes, maxBytes, MOST_ENTRIES, ttlMs].map(String),
      // One that is too long is only named, so that what is there of the log goes.
      ...(bytes > maxBytes ? [] : packed),
    ]
    this.#bytes += bytes
    const reply = await this.#call('put', key, args)
    this.#bytes -= bytes
    return Buffer.isBuffer(reply) && ['kept', 'early', 'older'].includes(reply.toString())
  }

  forget(log: LogKey): void {
    void this.#remove(this.#keyOf(log), '')
  }

  async bar(lives: readonly LogLife[]): Promise<boolean> {
    const removed = await Promise.all(lives.map(({ log, incarnation }) => this.#remove(this.#keyOf(log), incarnation)))
    return removed.every(Boolean)
  }

  unbar(lives: readonly LogLife[]): void {
    for (const { log, incarnation } of lives) {
      const key = this.#keyOf(log)
      if (!this.#owed.delete(key)) void this.#call('bar', key, [incarnation, '0', 'unbar'])
    }
  }

  async scrub(): Promise<Scrubbed> {
    const left = `Redis, the cache, can't be reached. What it still holds expires within ${this.#settings.ttlMs} ms.`
    if (!this.#isUsable) return { complete: false, note: left }
    await this.#payOwed()
    if (this.#owed.size > 0) return { complete: false, note: left }
    const { complete, note } = await scrubServers(this.#client)
    return { complete, note: `In the cache: ${note}` }
  }

  async close(): Promise<void> {
    if (this.#closed) return
    await this.#payOwed()
    this.#closed = true
    clearTimeout(this.#again)
    await Promise.allSettled(this.#underWay)
    this.#client.disconnect()
  }

  get #isUsable(): boolean {
    return !this.#closed && this.#client.status === 'ready' && performance.now() >= this.#restUntil
  }

  #keyOf({ tenant, thread, branch }: LogKey): string {
    const { prefix, namespace } = this.#settings
    const name = JSON.stringify([namespace, tenant, thread, branch])
    return `${prefix}:{${createHash('sha256').update(name).digest('hex').slice(0, 32)}}`
  }

  /** True when it is known to be gone. */
  async #remove(key: string, incarnation: string): Promise<boolean> {
    if (this.#owed.size < MOST_OWED) this.#owed.set(key, incarnation || (this.#owed.get(key) ?? ''))
    if (!this.#isUsable) return false
    return this.#pay(key)
  }

  async #pay(key: string): Promise<boolean> {
    const incarnation = this.#owed.get(key) ?? ''
    const reply = await this.#call('bar', key, [incarnation, String(this.#settings.ttlMs), ''])
    if (reply === undefined) return false
    if (this.#owed.get(key) === incarnation) this.#owed.delete(key)
    return true
  }

  async #payOwed(): Promise<void> {
    clearTimeout(this.#again)
    this.#again = undefined
    for (const key of [...this.#owed.keys()]) {
      if (!this.#isUsable || !(await this.#pay(key))) break
    }
    if (this.#owed.size > 0 && !this.#closed) this.#payLater()
  }

  #payLater(): void {
    this.#again ??= setTimeout(() => void this.#payOwed(), REST_MS).unref()
  }

  /** The reply, null for none; undefined where the server did not answer in time or failed. */
  #call(script: keyof CacheScripts, key: string, args: readonly Argument[]): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), this.#settings.timeoutMs)
    })
    const work = Promise.race([this.#send(this.#scripts[script], key, args), late])
      .catch(() => {
        this.#restUntil = performance.now() + REST_MS
        if (this.#owed.size > 0 && !this.#closed) this.#payLater()
      })
      .finally(() => {
        clearTimeout(timer)
        this.#underWay.delete(work)
      })
    this.#underWay.add(work)
    return work
  }

  async #send({ sha, text }: CacheScript, key: string, args: readonly Argument[]): Promise<unknown> {
    try {
      return await this.#client.callBuffer('evalsha', sha, '1', key, ...args)
    } catch (error) {
      if (!(error as Error).message.includes('NOSCRIPT')) throw error
      return this.#client.callBuffer('eval', text, '1', key, ...args)
    }
  }
}

function readTail([incarnation, first, ...packed]: readonly unknown[]): RecentTail | undefined {
  if (!Buffer.isBuffer(incarnation) || !Buffer.isBuffer(first)) return undefined
  const begin = Number(first.toString())
  const entries = packed.map((each, i) => (Buffer.isBuffer(each) ? unpackEntry(begin + i, each) : undefined))
  // Left there, it would be refused over and over: whoever reads the log itself replaces it with the right ones.
  const whole = entries.filter((entry) => entry !== undefined)
  if (whole.length === 0 || whole.length < entries.length) return { incarnation: incarnation.toString(), entries: [] }
  return { incarnation: incarnation.toString(), entries: whole }
}
