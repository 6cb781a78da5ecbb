import { InvalidOptionError } from '../../core/errors.js'
import { describeStoreUrl } from '../../core/wording/secrets.js'
import type { PgPoolLike } from './pg-client.js'

export interface PostgresOptions {
  /** The schema that holds Holdfast's tables, created if it is missing. Default 'holdfast'. */
  readonly schema?: string
  /** The maximum number of connections, besides one for `watch`. Default 10. */
  readonly poolSize?: number
  /** How long opening, and waiting for a connection, may take. Default 10,000. */
  readonly connectTimeoutMs?: number
  /** How long the server may take to answer one statement. Default 30,000. */
  readonly statementTimeoutMs?: number
  /** Notify watchers of our appends, and watch ourselves. Costs nothing while nobody watches. Default true. */
  readonly notify?: boolean
  /** What `pg_stat_activity` shows. Default 'holdfast'. */
  readonly applicationName?: string
  /** Whether there is a pooler in transaction mode in between. Default: detected when opening. */
  readonly pgbouncer?: boolean
  /** Named prepared statements. Default: only without a pooler; PgBouncer supports them from 1.21 on. */
  readonly prepare?: boolean
  /** For `watch` behind a pooler: a URL that leads directly to the server. */
  readonly listenUrl?: string
}

export interface Settings {
  /** Undefined if the user provides a pool. */
  readonly url: string | undefined
  readonly pool: PgPoolLike | undefined
  readonly schema: string
  /** Quoted, for use in statements. */
  readonly quotedSchema: string
  readonly poolSize: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly notify: boolean
  readonly applicationName: string
  readonly pgbouncer: boolean | undefined
  readonly prepare: boolean | undefined
  readonly listenUrl: string | undefined
}

// Channel and statement names are made of the schema's name, and Postgres cuts every name at 63 bytes.
const SCHEMA_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,49}$/

export function parseOptions(target: string | { readonly pool: PgPoolLike }, options: PostgresOptions): Settings {
  const schema = options.schema ?? 'holdfast'
  if (typeof schema !== 'string' || !SCHEMA_NAME.test(schema) || /^pg_/i.test(schema)) {
    throw new InvalidOptionError(
      'schema',
      `is ${JSON.stringify(schema)}, which can't name our schema`,
      'Use up to 50 letters, digits and underscores, not beginning with a digit or "pg_".',
    )
  }
  return {
    ...parseTarget(target),
    schema,
    quotedSchema: `"${schema}"`,
    poolSize: wholeNumber('poolSize', options.poolSize ?? 10, 1, 1000),
    connectTimeoutMs: wholeNumber('connectTimeoutMs', options.connectTimeoutMs ?? 10_000, 1, 2 ** 31 - 1),
    statementTimeoutMs: wholeNumber('statementTimeoutMs', options.statementTimeoutMs ?? 30_000, 1, 2 ** 31 - 1),
    notify: options.notify ?? true,
    applicationName: options.applicationName ?? 'holdfast',
    pgbouncer: options.pgbouncer,
    prepare: options.prepare,
    listenUrl: options.listenUrl === undefined ? undefined : parseUrl('listenUrl', options.listenUrl),
  }
}

function parseTarget(target: string | { readonly pool: PgPoolLike }): Pick<Settings, 'url' | 'pool'> {
  if (typeof target === 'string') return { url: parseUrl('url', target), pool: undefined }
  if (typeof target?.pool?.connect !== 'function') {
    throw new InvalidOptionError(
      'pool',
      'is not a pool of pg',
      "Pass a URL such as 'postgres://user@host/database', or { pool: new pg.Pool() }.",
    )
  }
  return { url: undefined, pool: target.pool }
}

// The URL is not repeated in messages: it may hold a password.
function parseUrl(field: string, url: string): string {
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url)) {
    throw new InvalidOptionError(
      field,
      'is not a URL of a Postgres database',
      "Write it as 'postgres://user:password@host:5432/database', with special characters percent-encoded (# as %23).",
    )
  }
  return url
}

function wholeNumber(field: string, value: number, min: number, max: number): number {
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    throw new InvalidOptionError(field, `is ${String(value)}`, `Pass a whole number from ${min} to ${max}.`)
  }
  return value
}

/** Where we connect to, without user and password, for messages. */
export function describeTarget(settings: Settings): string {
  if (settings.url === undefined) return 'Postgres (through the given pool)'
  const { host, pathname, searchParams } = new URL(settings.url)
  if (host === '') return `Postgres at ${searchParams.get('host') ?? 'localhost'}${pathname}`
  return `Postgres at ${describeStoreUrl(settings.url).replace(/^\w+:\/\//, '')}`
}
