import { isIP } from 'node:net'
import {
  type HoldfastError,
  InvalidOptionError,
  MissingDependencyError,
  UnavailableError,
} from '../../../core/errors.js'
import type { IoredisModule, RedisLike } from '../client.js'
import { describeStoreUrl } from '../../../core/wording/secrets.js'
import { toDriverError } from './errors.js'

export interface ConnectOptions {
  readonly cluster: boolean
  readonly connectTimeoutMs: number
  /** How long a server may stay silent while it owes replies, before its connection counts as dead. */
  readonly silenceMs: number
}

/** A server that is back is found this soon; work waits for it. */
const LONGEST_PAUSE_MS = 500
/** A node that came back to a cluster is found by this. */
const SLOTS_EVERY_MS = 2000

/** How long to wait before the next attempt to connect, at random, so that processes do not come back together. */
export function reconnectPause(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt, 10), LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2)
}

/** Our own client that is not connected yet, and reconnects until it is told to stop. */
export async function makeClient(urls: readonly string[], options: ConnectOptions): Promise<RedisLike> {
  return createClient(await loadIoredis(), urls.map(parseUrl), options)
}

/** Our own client. Rejects within the connect timeout with what is wrong and what to do. */
export async function connect(urls: readonly string[], options: ConnectOptions): Promise<RedisLike> {
  const servers = urls.map(parseUrl)
  const client = createClient(await loadIoredis(), servers, options)
  let problem: Error | undefined
  const note = (error: Error): void => {
    problem ??= causeOf(error)
  }
  client.on('error', note)
  client.on('node error', note)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`no answer within ${options.connectTimeoutMs} ms`)),
      options.connectTimeoutMs,
    )
  })
  try {
    await Promise.race([client.connect(), late])
    // A database number that is out of range is only reported as an event, and the client continues in database 0.
    if (problem !== undefined) throw problem
  } catch (error) {
    client.disconnect()
    throw explain(problem ?? error, servers)
  } finally {
    clearTimeout(timer)
    client.off('node error', note)
  }
  return client
}

async function loadIoredis(): Promise<IoredisModule> {
  try {
    return (await import('ioredis')) as unknown as IoredisModule
  } catch (cause) {
    throw new MissingDependencyError('ioredis', 'npm install ioredis', { cause })
  }
}

interface Server {
  readonly url: string
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly username?: string
  readonly password?: string
  readonly db?: number
  readonly tls?: object
}

function createClient(ioredis: IoredisModule, servers: readonly Server[], options: ConnectOptions): RedisLike {
  // Everything that would send a command a second time, or later than its writer waits for it, is off.
  const common = {
    connectTimeout: options.connectTimeoutMs,
    socketTimeout: options.silenceMs,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // A primary that became a replica: reconnect, so that an address that follows the primary leads to it. Redis 6.2
    // says so in the middle of its message when a script runs into it.
    reconnectOnError: (error: Error) => /\bREADONLY\b/.test(error.message),
  }
  const [first] = servers as [Server, ...Server[]]
  if (!options.cluster) {
    const { url: _, ...address } = first
    return new ioredis.Redis({
      ...address,
      ...common,
      enableOfflineQueue: false,
      lazyConnect: true,
      retryStrategy: reconnectPause,
    })
  }
  const { username, password, tls } = first
  return new ioredis.Cluster(
    servers.map(({ host, port }) => ({ host, port })),
    {
      redisOptions: { ...common, ...(username && { username }), ...(password && { password }), ...(tls && { tls }) },
      // 0 turns off the resending of commands whose connection broke.
      retryDelayOnFailover: 0,
      clusterRetryStrategy: reconnectPause,
      slotsRefreshTimeout: options.connectTimeoutMs,
      slotsRefreshInterval: SLOTS_EVERY_MS,
      scaleReads: 'master',
      lazyConnect: true,
    },
  )
}

function parseUrl(text: string): Server {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw invalidUrl(text, 'is not a URL')
  }
  const scheme = url.protocol.slice(0, -1)
  if (!['redis', 'rediss', 'valkey', 'valkeys'].includes(scheme)) throw invalidUrl(text, `has the scheme "${scheme}"`)
  if (url.hostname === '') throw invalidUrl(text, 'has no host')
  const database = /^\/?(.*)$/.exec(url.pathname)?.[1] ?? ''
  if (!/^\d{0,5}$/.test(database)) throw invalidUrl(text, 'has something other than a database number in its path')
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return {
    url: describeStoreUrl(text),
    host,
    port: url.port === '' ? 6379 : Number(url.port),
    ...(url.username && { username: decodePart(text, url.username) }),
    ...(url.password && { password: decodePart(text, url.password) }),
    ...(database !== '' && { db: Number(database) }),
    ...((scheme === 'rediss' || scheme === 'valkeys') && { tls: isIP(host) ? {} : { servername: host } }),
  }
}

function decodePart(url: string, part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw invalidUrl(url, 'has a user name or password that is not percent-encoded')
  }
}

// Without a cause: the one that URL throws holds the whole text.
function invalidUrl(text: unknown, problem: string): InvalidOptionError {
  const shown = typeof text === 'string' ? describeStoreUrl(text) : typeof text
  return new InvalidOptionError('url', problem, 'Write it as redis://user:password@host:6379/0.', { url: shown })
}

function causeOf(error: Error): Error {
  const { lastNodeError } = error as { lastNodeError?: Error }
  return lastNodeError ?? error
}

function explain(error: unknown, servers: readonly Server[]): HoldfastError {
  const text = error instanceof Error ? error.message : String(error)
  const where = servers.map(({ url }) => url).join(', ')
  if (/DB index is out of range|SELECT is not allowed in cluster/i.test(text)) {
    return new InvalidOptionError(
      'url',
      'names a database that this server does not have',
      'Use database 0: leave it out.',
    )
  }
  if (/cluster support disabled/i.test(text)) {
    return new InvalidOptionError('cluster', 'is on, but this server is not a cluster', 'Leave the option out.')
  }
  const known = toDriverError(error, false)
  if (known.code !== 'unavailable' || known.data['reason'] !== undefined) return known
  return new UnavailableError(`Redis at ${where} could not be reached: ${text}.`, {
    written: 'nothing',
    remedy: 'Check host, port and firewall, whether the server runs, and whether it expects TLS (rediss://).',
    data: { urls: servers.map(({ url }) => url) },
    cause: error,
  })
}
