import type { Attached, PlaceOptions } from './archive/attach.js'
import type { CacheOptions } from './cache/open-cache.js'
import { checkOptionNames, type OptionNames } from './core/wording/option-names.js'
import { Redactor } from './codec/secret/redactor.js'
import { InvalidOptionError } from './core/errors.js'
import { parseStoreRetention } from './core/retention.js'
import { systemClock } from './core/time/system-clock.js'
import type { FileOptions } from './drivers/file/open-file.js'
import type { PostgresOptions } from './drivers/postgres/options.js'
import type { PgPoolLike } from './drivers/postgres/pg-client.js'
import type { RedisLike } from './drivers/redis/client.js'
import type { RedisOptions } from './drivers/redis/open-redis.js'
import type { SqliteOptions } from './drivers/sqlite/open-sqlite.js'
import { Holdfast } from './holdfast/holdfast.js'
import { checkAnchors } from './log/anchors/anchors.js'
import type { Driver } from './log/contract.js'
import { parseKeyOptions } from './log/keys/key-options.js'
import { LogStore } from './log/log-store.js'
import { LOG_STORE_OPTIONS, type LogStoreOptions } from './log/log-store-options.js'
import { reportMetrics } from './holdfast/metrics-store.js'
import { parseStoreUrl, type Scheme } from './store-url.js'
import { checkTelemetry, type TelemetryOptions } from './telemetry/options.js'
import { Telemetry } from './telemetry/telemetry.js'

/** Settings for the store being opened; those for other backends are ignored. */
export interface OpenOptions extends Omit<LogStoreOptions, 'observer'>, PlaceOptions {
  readonly sqlite?: Omit<SqliteOptions, 'clock'>
  readonly file?: Omit<FileOptions, 'clock'>
  /** `pool`: your own pool, which you close yourself. */
  readonly postgres?: PostgresOptions & { readonly pool?: PgPoolLike }
  /** `client`: your own client, which you close yourself. */
  readonly redis?: RedisOptions & { readonly client?: RedisLike }
  /**
   * A Redis in front of Postgres, `redis://…`: what Postgres acknowledged is kept there for a while, and runs load it
   * from there. Only Postgres decides what is true: a cache that is empty, stale, wrong or down costs time and nothing
   * else.
   */
  readonly cache?: string | CacheOptions
  /** What is counted and traced, and where it goes. `false`: nothing. */
  readonly telemetry?: TelemetryOptions | false
}

const { observer: _, ...LOG_OPTIONS } = LOG_STORE_OPTIONS
const OPTIONS: OptionNames<OpenOptions> = {
  ...LOG_OPTIONS,
  sqlite: true,
  file: true,
  postgres: true,
  redis: true,
  telemetry: true,
  archive: true,
  cache: true,
  blobs: true,
  s3: true,
}

/** What is set for one backend, or one part of it, each under its own option. */
const GROUPS: {
  readonly sqlite: OptionNames<NonNullable<OpenOptions['sqlite']>>
  readonly file: OptionNames<NonNullable<OpenOptions['file']>>
  readonly postgres: OptionNames<NonNullable<OpenOptions['postgres']>>
  readonly redis: OptionNames<NonNullable<OpenOptions['redis']>>
  readonly blobs: OptionNames<NonNullable<OpenOptions['blobs']>>
  readonly s3: OptionNames<NonNullable<OpenOptions['s3']>>
} = {
  sqlite: { synchronous: true, busyTimeoutMs: true },
  file: { fsync: true, faults: true },
  postgres: {
    schema: true,
    poolSize: true,
    connectTimeoutMs: true,
    statementTimeoutMs: true,
    notify: true,
    applicationName: true,
    pgbouncer: true,
    prepare: true,
    listenUrl: true,
    pool: true,
  },
  redis: {
    prefix: true,
    cluster: true,
    allowEviction: true,
    waitReplicas: true,
    buckets: true,
    trustRestarts: true,
    acceptDataLoss: true,
    connectTimeoutMs: true,
    commandTimeoutMs: true,
    client: true,
  },
  blobs: { place: true, threshold: true },
  s3: { accessKeyId: true, secretAccessKey: true },
}

function checkNames(opener: string, options: OpenOptions): void {
  checkOptionNames(`${opener}()`, options, OPTIONS)
  for (const [group, names] of Object.entries(GROUPS))
    checkOptionNames(`${opener}({ ${group} })`, options[group as keyof typeof GROUPS], names)
}

/** Those of the options that every backend has. */
function logStoreOptions(options: OpenOptions): LogStoreOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(LOG_OPTIONS, name)))
}

type Opener = (target: string, settings: Readonly<Record<string, string>>, options: OpenOptions) => Promise<Driver>

/** Each scheme loads its driver, and the driver its client, only when it is used. */
const OPENERS: Readonly<Record<Scheme, Opener>> = {
  memory: async (_target, _settings, { clock }) => {
    const { openMemory } = await import('./drivers/memory/memory-driver.js')
    return openMemory(clock ? { clock } : {})
  },
  sqlite: async (path, { synchronous }, { sqlite, clock }) => {
    const { openSqlite } = await import('./drivers/sqlite/open-sqlite.js')
    return openSqlite(path, {
      ...(clock ? { clock } : {}),
      ...(synchronous === undefined ? {} : { synchronous: choice('synchronous', synchronous, ['full', 'normal']) }),
      ...sqlite,
    })
  },
  file: async (folder, { fsync }, { file, clock }) => {
    const { openFile } = await import('./drivers/file/open-file.js')
    return openFile(folder, {
      ...(clock ? { clock } : {}),
      ...(fsync === undefined ? {} : { fsync: choice('fsync', fsync, ['on', 'off']) === 'on' }),
      ...file,
    })
  },
  postgres: async (url, { schema }, { postgres: { pool, ...options } = {} }) => {
    const { openPostgres } = await import('./drivers/postgres/open-postgres.js')
    return openPostgres(pool ? { pool } : url, { ...(schema === undefined ? {} : { schema }), ...options })
  },
  redis: async (url, { prefix }, { redis: { client, ...options } = {} }) => {
    const { openRedis } = await import('./drivers/redis/open-redis.js')
    const urls = url.split(',')
    const target = client ? { client } : urls.length > 1 ? urls : url
    return openRedis(target, { ...(prefix === undefined ? {} : { prefix }), ...options })
  },
}

/**
 * Opens a store by its URL: `sqlite:agents.db`, `file:folder`, `postgres://…`, `redis://…` or `memory:`. Creates it if
 * it doesn't exist, and updates its schema. Open it once per process and share it; close it at the end.
 *
 * Throws `invalid-option` for a URL or an option that can't work, `missing-dependency` if the client for Postgres
 * (`pg`) or Redis (`ioredis`) is not installed, `unavailable` or `storage` if the store can't be reached or written to,
 * and `schema-too-new` if a newer Holdfast wrote it.
 */
export async function openHoldfast(url: string, options: OpenOptions = {}): Promise<Holdfast> {
  checkNames('openHoldfast', options)
  // Checked before anything is opened: a bad key must not leave a new file or a connection behind.
  if (options.keys !== undefined) parseKeyOptions(options.keys)
  if (options.anchors !== undefined) checkAnchors(options.anchors)
  const retention = parseStoreRetention(options.retention)
  if ((retention.archive || retention.archiveForMs !== undefined) && options.archive === undefined)
    throw new InvalidOptionError('retention.archive', 'needs an archive', "Pass archive: 'file:archive' as well.")
  await cacheOf(url, options)
  const { telemetry: wanted } = options
  const rest = logStoreOptions(options)
  const attach = await placesOf(options)
  if (wanted === false) return holdfastOver(attach, await openBackend(url, options), rest)
  const flushEveryMs = checkTelemetry(wanted ?? {})
  const redactor = options.redact === undefined ? undefined : new Redactor(options.redact)
  const telemetry = await Telemetry.open(wanted ?? {}, redactor && ((text) => redactor.text(text)))
  const driver = await openBackend(url, options)
  return holdfastOver(attach, driver, { ...rest, observer: telemetry }, async (store) => {
    await store.syncClock()
    if (flushEveryMs !== false) reportMetrics(store, telemetry, flushEveryMs)
  })
}

type Attach = (driver: Driver, now: () => number) => Attached

/** Loaded only if there are such places. */
async function placesOf(options: PlaceOptions): Promise<Attach> {
  if (options.archive === undefined && options.blobs === undefined) return (driver) => ({ driver })
  return (await import('./archive/attach.js')).parsePlaces(options)
}

async function holdfastOver(
  attach: Attach,
  backend: Driver,
  options: LogStoreOptions,
  prepare?: (store: LogStore) => Promise<void>,
): Promise<Holdfast> {
  const clock = options.clock ?? systemClock()
  const { driver, archive, blobPlace } = attach(backend, () => clock.now())
  const store = new LogStore(driver, options)
  await prepare?.(store)
  const openMemory = async (): Promise<Driver> =>
    (await import('./drivers/memory/memory-driver.js')).openMemory({ clock })
  // A store in memory that is only looked at is neither swept nor anchored, and reports nothing.
  const { observer: _, anchors: __, ...plain } = options
  const view = (memory: Driver): Holdfast => new Holdfast(new LogStore(memory, plain))
  return new Holdfast(store, undefined, undefined, {
    listsWorkers: options.observer !== undefined,
    ...(archive ? { archive: { archive, driver, openMemory, view } } : {}),
    ...(blobPlace
      ? { collectObjects: (tenant, graceMs) => blobPlace.collect(backend, tenant, graceMs, clock.now()) }
      : {}),
  })
}

/** The driver alone, for tools that work below the log. */
export async function openDriver(url: string, options: OpenOptions = {}): Promise<Driver> {
  checkNames('openDriver', options)
  const attach = await placesOf(options)
  const clock = options.clock ?? systemClock()
  return attach(await openBackend(url, options), () => clock.now()).driver
}

async function openBackend(url: string, options: OpenOptions): Promise<Driver> {
  const { scheme, target, settings } = parseStoreUrl(url)
  const openCache = await cacheOf(url, options)
  const driver = await OPENERS[scheme](target, settings, options)
  return openCache ? openCache(driver) : driver
}

/** Loaded only if there is one; checked before anything is opened. */
async function cacheOf(
  url: string,
  { cache, postgres }: OpenOptions,
): Promise<((driver: Driver) => Promise<Driver>) | undefined> {
  if (cache === undefined) return undefined
  const { scheme, target, settings } = parseStoreUrl(url)
  if (scheme !== 'postgres')
    throw new InvalidOptionError(
      'cache',
      `is for Postgres, not for ${scheme}:`,
      'Leave it out: reads from there are already local.',
    )
  const { parseCache, openCache } = await import('./cache/open-cache.js')
  const parsed = parseCache(cache)
  const database = /^[^?]*\/([^/?]*)/.exec(target)?.[1] ?? ''
  const namespace = JSON.stringify([database, postgres?.schema ?? settings['schema'] ?? ''])
  return async (driver) => {
    const { withCache } = await import('./cache/cached-driver.js')
    try {
      return withCache(driver, await openCache(parsed, namespace))
    } catch (error) {
      await driver.close()
      throw error
    }
  }
}

function choice<Choice extends string>(field: string, value: string, choices: readonly Choice[]): Choice {
  const found = choices.find((one) => one === value)
  if (found === undefined) throw new InvalidOptionError(field, `is "${value}"`, `Use ${choices.join(' or ')}.`)
  return found
}
