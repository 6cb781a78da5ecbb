import { Holdfast, type OpenOptions } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore, type LogStoreOptions } from 'holdfast/log'
import { overlay } from '#src/log/overlay.js'
import { Redis } from 'ioredis'
import { durableBackends } from './backends.js'
import { redisUrl } from './servers.js'

const backend = (await durableBackends()).find(({ name }) => name === 'Postgres')
const redis = await redisUrl()

/** True where a server can't be had. */
export const isMissing = backend === undefined || backend.missing || redis === undefined

/** Long enough for a loaded machine: a test that counts what came from the cache must not give up on it. */
const PATIENT_MS = 20_000
let count = 0

export interface CachedPostgres {
  readonly url: string
  /** Of the cache, with a prefix that nobody else uses. */
  readonly cache: string
  readonly prefix: string
  /** What loads came from the cache, and which did not. */
  readonly loads: { hits: number; misses: number }
  /** A process of its own: nothing is kept in memory. */
  open(options?: LogStoreOptions & { readonly cache?: OpenOptions['cache'] }): Promise<Holdfast>
  openDriver(options?: Pick<OpenOptions, 'cache'>): Promise<Driver>
  redis(): Redis
  /** Every key of this cache. */
  keys(): Promise<string[]>
  /** Everything that this cache holds, as bytes. */
  bytes(): Promise<Buffer>
  close(): Promise<void>
}

/** A new store on Postgres, with a cache of its own in Redis. */
export async function cachedPostgres(): Promise<CachedPostgres> {
  const url = (await backend?.fresh()) as string
  const prefix = `cache-${process.pid}-${Date.now().toString(36)}-${count++}`
  const cache = `${redis}${redis?.includes('?') ? '&' : '?'}prefix=${prefix}`
  const loads = { hits: 0, misses: 0 }
  const opened: { close(): Promise<void> }[] = []
  const client = new Redis(redis as string)
  const keys = () => client.keys(`${prefix}:*`)
  const made: CachedPostgres = {
    url,
    cache,
    prefix,
    loads,
    async openDriver(options = {}) {
      const driver = await openDriver(url, { cache: { url: cache, timeoutMs: PATIENT_MS }, ...options })
      opened.push(driver)
      return overlay(driver, {
        async recent(log, from) {
          const found = await driver.recent?.(log, from)
          loads[found ? 'hits' : 'misses']++
          return found
        },
      })
    },
    async open({ cache: own, ...options } = {}) {
      const driver = await made.openDriver(own === undefined ? {} : { cache: own })
      const hf = new Holdfast(new LogStore(driver, { cacheBytes: 0, ...options }))
      opened.push(hf)
      return hf
    },
    redis: () => client,
    keys,
    async bytes() {
      const all = await Promise.all((await keys()).map((key) => client.hgetallBuffer(key)))
      return Buffer.concat(all.flatMap((hash) => Object.values(hash)))
    },
    async close() {
      await Promise.all(opened.map((one) => one.close()))
      const left = await keys()
      if (left.length > 0) await client.del(...left)
      client.disconnect()
    },
  }
  return made
}
