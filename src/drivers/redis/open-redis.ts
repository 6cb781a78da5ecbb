import { randomBytes } from 'node:crypto'
import { DataLossError, InvalidOptionError, SchemaTooNewError } from '../../core/errors.js'
import type { Driver, Survives } from '../../log/contract.js'
import type { ItemDriver } from '../../log/store-contract.js'
import type { RedisLike } from './client.js'
import { connect } from './server/connect.js'
import { Connection, type ReplicaWait } from './connection.js'
import { markBuckets, probeAgain, serversOf, trustOf } from './server/generations.js'
import { createKeys } from './rows/keys.js'
import { checkServer, judgeDurability, probeServer } from './server/probe.js'
import { createRedisDriver } from './redis-driver.js'
import { indexDue } from './index/due.js'
import { loadScripts, type Scripts } from './scripts.js'
import { loseStore, type Store } from './store.js'

/** The layout of keys and values that this version reads and writes. */
const LAYOUT = 1
const DEFAULT_BUCKETS = 64
const MAX_BUCKETS = 4096

export interface RedisOptions {
  /** Start of every key. Stores with different prefixes are independent of each other. Default 'holdfast'. */
  readonly prefix?: string
  /** Default: true for several URLs, otherwise what the server says. */
  readonly cluster?: boolean
  /** Allows a server that may evict keys when its memory is full. */
  readonly allowEviction?: boolean
  /** Acknowledges an append only once this many replicas have it. */
  readonly waitReplicas?: ReplicaWait
  /** How many hash slots a new store spreads its threads over. Fixed for the life of a store. Default 64. */
  readonly buckets?: number
  /**
   * Assumes that Redis comes back with everything it acknowledged, whatever its settings say. By default, effects that
   * must not repeat ask first if it can't promise that.
   */
  readonly trustRestarts?: boolean
  /** Continues with what is left of a store of which a part is gone, as after the loss of a node. */
  readonly acceptDataLoss?: boolean
  /** Default 10,000. */
  readonly connectTimeoutMs?: number
  /** The longest any operation takes before it rejects. Default 10,000. */
  readonly commandTimeoutMs?: number
}

/**
 * Opens a store on Redis 6.2 or later, or Valkey: by URL, by the URLs of a cluster's nodes, or on a client of your own.
 */
export async function openRedis(
  target: string | readonly string[] | { readonly client: RedisLike },
  options: RedisOptions = {},
): Promise<Driver & ItemDriver> {
  checkOptions(options)
  const commandTimeoutMs = options.commandTimeoutMs ?? 10_000
  const given = typeof target === 'object' && 'client' in target ? target.client : undefined
  if (given !== undefined) checkGivenClient(given)
  const client = given ?? (await openClient(target as string | readonly string[], options, commandTimeoutMs))
  const connection = new Connection(client, {
    commandTimeoutMs,
    waitReplicas: options.waitReplicas,
    ownsClient: given === undefined,
  })
  try {
    const servers = serversOf(client)
    const probes = await Promise.all(servers.map(probeServer))
    for (const probe of probes) checkServer(probe, { allowEviction: options.allowEviction ?? false })
    const scripts = await loadScripts()
    await Promise.all(servers.map((server) => teachScripts(server, scripts)))
    const durability = judgeDurability(probes, options.waitReplicas)
    const store = await openStore(connection, scripts, durability, options)
    const release = watchReconnects(store, options)
    return createRedisDriver(store, durability, release)
  } catch (error) {
    await connection.close()
    throw error
  }
}

async function openClient(
  target: string | readonly string[],
  options: RedisOptions,
  commandTimeoutMs: number,
): Promise<RedisLike> {
  const urls = typeof target === 'string' ? [target] : [...target]
  if (urls.length === 0) throw new InvalidOptionError('url', 'is missing', 'Pass redis://host:6379.')
  const settings = {
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    silenceMs: commandTimeoutMs + (options.waitReplicas?.timeoutMs ?? 0),
  }
  const cluster = options.cluster ?? urls.length > 1
  const client = await connect(urls, { ...settings, cluster })
  if (cluster || options.cluster === false) return client
  // One node of a cluster would answer for a third of the threads and send the rest elsewhere.
  const { isCluster } = await probeServer(client).catch((error: unknown) => {
    client.disconnect()
    throw error
  })
  if (!isCluster) return client
  client.disconnect()
  return connect(urls, { ...settings, cluster: true })
}

// Ahead of their first use, because the calls of a flush leave together and each would be refused. A server that forbids
// it, or forgets them later, gets the text with the call.
async function teachScripts(server: RedisLike, scripts: Scripts): Promise<void> {
  await Promise.allSettled(Object.values(scripts).map(({ text }) => server.call('script', 'load', text)))
}

async function openStore(
  connection: Connection,
  scripts: Scripts,
  durability: Survives,
  options: RedisOptions,
): Promise<Store> {
  const prefix = options.prefix ?? 'holdfast'
  const record = createKeys(prefix, 1).store
  const fresh = randomBytes(16).toString('hex')
  const [id, layout, count, marked, due] = (await connection.write({
    script: scripts['open-store'],
    keys: [record],
    args: [fresh, String(LAYOUT), String(options.buckets ?? DEFAULT_BUCKETS)],
  })) as (string | null)[]
  if (Number(layout) > LAYOUT) {
    throw new SchemaTooNewError(`The Redis store "${prefix}"`, { found: Number(layout), supported: LAYOUT })
  }
  if (options.buckets !== undefined && options.buckets !== Number(count)) {
    throw new InvalidOptionError(
      'buckets',
      `is ${options.buckets}, but this store was made with ${count}`,
      'Leave the option out; the number is fixed when a store is made.',
    )
  }
  const store: Store = {
    prefix,
    connection,
    scripts,
    keys: createKeys(prefix, Number(count)),
    marker: `!${id}`,
    generations: [],
    trust: trustOf(durability, options.waitReplicas, options.trustRestarts ?? false),
  }
  const mode = options.acceptDataLoss ? 'accept' : marked === null ? 'place' : 'check'
  const bad = await markBuckets(store, mode)
  if (bad > 0) {
    throw new DataLossError(
      `${bad} of ${count} parts of the Redis store "${prefix}" are gone: a node came back empty or older.`,
      { prefix, buckets: Number(count), gone: bad },
      "Restore it, or continue with what is left: open it with { acceptDataLoss: true }, and run threads with expect: 'existing': their outcome says whether their past is gone.",
    )
  }
  if (marked === null) await connection.write({ command: 'hset', args: [record, 'marked', 'yes'] })
  if (due === null) {
    await indexDue(store)
    await connection.write({ command: 'hset', args: [record, 'turns', 'yes'] })
  }
  return store
}

// A server that restarted may have come back with less than it had. Scripts notice that where they find nothing; this
// also notices it for a driver that happens to ask only for what is still there.
function watchReconnects(store: Store, { waitReplicas, trustRestarts = false }: RedisOptions): () => void {
  const { connection } = store
  const check = (): void => {
    if (connection.isClosed || connection.lost !== undefined) return
    probeAgain(store, waitReplicas, trustRestarts)
      .then(() => markBuckets(store, 'check'))
      .then(
        (bad) => void (bad > 0 && loseStore(store)),
        () => {},
      )
  }
  const { client } = connection
  client.on('ready', check)
  client.on('+node', check)
  return () => {
    client.off('ready', check)
    client.off('+node', check)
  }
}

function checkOptions(options: RedisOptions): void {
  const { prefix = 'holdfast', buckets = DEFAULT_BUCKETS, waitReplicas } = options
  if (!/^[\x21-\x7e]{1,200}$/.test(prefix) || /[{}]/.test(prefix)) {
    throw new InvalidOptionError(
      'prefix',
      'must be printable ASCII without spaces and braces',
      'Braces decide where a cluster puts a key; use something like "myapp".',
    )
  }
  checkNumber('buckets', buckets, 1, MAX_BUCKETS)
  for (const name of ['connectTimeoutMs', 'commandTimeoutMs'] as const) {
    checkNumber(name, options[name] ?? 10_000, 1, 3_600_000)
  }
  if (waitReplicas !== undefined) {
    checkNumber('waitReplicas.count', waitReplicas.count, 1, 100)
    checkNumber('waitReplicas.timeoutMs', waitReplicas.timeoutMs, 1, 3_600_000)
  }
}

function checkNumber(field: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return
  throw new InvalidOptionError(field, `must be a whole number from ${min} to ${max}`, 'Leave it out for the default.')
}

// Settings of a client that would break a promise without anybody noticing.
function checkGivenClient(client: RedisLike): void {
  const options = client.options as Record<string, unknown> & { redisOptions?: Record<string, unknown> }
  const refuse = (field: string, problem: string, remedy: string): never => {
    throw new InvalidOptionError(`client.options.${field}`, problem, remedy)
  }
  if (options['keyPrefix']) refuse('keyPrefix', 'is set', 'Use the option `prefix` of openRedis instead.')
  if (client.isCluster) {
    if (options['retryDelayOnFailover'] !== 0) {
      refuse(
        'retryDelayOnFailover',
        'makes the client send appends twice',
        'Create the client with { retryDelayOnFailover: 0 }.',
      )
    }
    if (options['scaleReads'] !== 'master') {
      refuse('scaleReads', 'reads from replicas, which are behind', "Create the client with { scaleReads: 'master' }.")
    }
    return
  }
  if (options['autoResendUnfulfilledCommands'] !== false) {
    refuse(
      'autoResendUnfulfilledCommands',
      'makes the client send appends twice',
      'Create the client with { autoResendUnfulfilledCommands: false }.',
    )
  }
}
