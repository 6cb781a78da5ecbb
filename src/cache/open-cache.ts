import { InvalidOptionError } from '../core/errors.js'
import { suggestName } from '../core/wording/option-names.js'
import { describeStoreUrl } from '../core/wording/secrets.js'
import type { RedisLike } from '../drivers/redis/client.js'
import { makeClient } from '../drivers/redis/server/connect.js'
import { RedisTails } from './redis-tails.js'
import { loadCacheScripts } from './scripts.js'
import type { TailCache } from './tail-cache.js'

/** A cache of the ends of threads, in front of Postgres. */
export interface CacheOptions {
  /** `redis://user:password@host:6379/0?prefix=…&timeoutMs=…`; several, with a comma between, for the nodes of a cluster. */
  readonly url: string
  /** How long the end of a thread is kept after its last use (at least half of this). Default one hour. */
  readonly ttlMs?: number
  /** How much of one thread is kept; a larger state is read from Postgres. Default 1 MB. */
  readonly maxBytes?: number
  /** How long a load waits for Redis before it asks Postgres. Default 100. */
  readonly timeoutMs?: number
}

const DEFAULTS = { ttlMs: 60 * 60 * 1000, maxBytes: 1024 * 1024, timeoutMs: 100 }
const LIMITS = { ttlMs: 7 * 24 * 60 * 60 * 1000, maxBytes: 64 * 1024 * 1024, timeoutMs: 60_000 }
const CONNECT_MS = 5000
/** A connection that owes replies for this long is dead, and made again. */
const SILENCE_MS = 5000

export type ParsedCache = Required<CacheOptions> & { readonly prefix: string }

/** Checks what can be checked without a server. */
export function parseCache(given: string | CacheOptions): ParsedCache {
  const { url, ...rest } = typeof given === 'string' ? { url: given } : { ...given }
  if (typeof url !== 'string' || !/^(redis|valkey)s?:\/\/./.test(url)) {
    throw new InvalidOptionError('cache', 'is not the URL of a Redis', 'Write it as redis://user:password@host:6379/0.')
  }
  const [address = '', query = ''] = url.split('?', 2)
  const settings = new URLSearchParams(query)
  const prefix = settings.get('prefix') ?? 'holdfast-cache'
  settings.delete('prefix')
  const numbers: Record<string, unknown> = { ...rest }
  for (const name of Object.keys(DEFAULTS)) {
    const value = settings.get(name)
    if (value !== null) numbers[name] ??= Number(value)
    settings.delete(name)
  }
  if (!/^[\x21-\x7e]{1,200}$/.test(prefix) || /[{}]/.test(prefix)) {
    throw new InvalidOptionError(
      'cache',
      `has the prefix "${prefix}"`,
      'Use printable ASCII without spaces and braces.',
    )
  }
  const chosen: Record<string, number> = { ...DEFAULTS }
  for (const [name, value] of Object.entries(numbers)) {
    if (!Object.hasOwn(DEFAULTS, name))
      throw new InvalidOptionError(
        `cache.${name}`,
        'is not an option',
        suggestName(name, ['url', ...Object.keys(DEFAULTS)]),
      )
    if (value === undefined) continue
    const most = LIMITS[name as keyof typeof LIMITS]
    if (!(Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= most))
      throw new InvalidOptionError(`cache.${name}`, `is ${String(value)}`, `Pass a whole number from 1 to ${most}.`)
    chosen[name] = value as number
  }
  const left = settings.toString()
  return { ...(chosen as typeof DEFAULTS), url: left ? `${address}?${left}` : address, prefix }
}

/**
 * Connects, and continues in the background after a moment: a Redis that is down keeps nobody from opening the store.
 */
export async function openCache({ url, prefix, ...settings }: ParsedCache, namespace: string): Promise<TailCache> {
  const urls = url.split(',')
  const times = { connectTimeoutMs: CONNECT_MS, silenceMs: SILENCE_MS }
  const client = await makeClient(urls, { ...times, cluster: urls.length > 1 })
  const tails = new RedisTails(client, await loadCacheScripts(), {
    ...settings,
    prefix,
    namespace,
    address: describeStoreUrl(url),
  })
  await firstNews(client, settings.timeoutMs)
  return tails
}

/** Resolves when the client is connected or was refused, or the time is over. */
async function firstNews(client: RedisLike, ms: number): Promise<void> {
  let listener = (): void => {}
  let timer: NodeJS.Timeout | undefined
  await new Promise<void>((resolve) => {
    listener = resolve
    timer = setTimeout(resolve, ms)
    client.on('ready', listener)
    client.on('close', listener)
  })
  clearTimeout(timer)
  client.off('ready', listener)
  client.off('close', listener)
}
