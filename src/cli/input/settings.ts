import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { OpenOptions } from '../../index.js'
import { CliError, usageError } from '../cli-error.js'
import { findConfig } from './find-config.js'

/** Where threads are, and whose. */
export interface Settings {
  readonly store: string | undefined
  /** Where the store's url comes from, for messages. */
  readonly source: string
  readonly tenant: string | undefined
  /** Passed to `openHoldfast`; only a config file that is a module can have them. */
  readonly options: OpenOptions
}

interface ConfigFile {
  readonly path: string
  readonly content: {
    readonly store?: unknown
    readonly tenant?: unknown
    readonly archive?: unknown
    readonly cache?: unknown
    readonly options?: unknown
  }
}

const MODULE = 'holdfast.config.mjs'
const PLAIN = 'holdfast.config.json'

/** Where a command is run, and by whom. */
interface Place {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Of the user; undefined where the system has none. */
  readonly uid: number | undefined
}

/**
 * The command line first, then the environment, then the nearest config file of the project. If the store is named, no
 * module is looked up: it would be run just for a tenant's name.
 */
export async function readSettings(
  given: { readonly store?: string; readonly tenant?: string; readonly config?: string },
  { env, cwd, uid }: Place,
): Promise<Settings> {
  const fromEnv = env['HOLDFAST_STORE'] || undefined
  const named = given.config ?? (env['HOLDFAST_CONFIG'] || undefined)
  const names = given.store === undefined && fromEnv === undefined ? [PLAIN, MODULE] : [PLAIN]
  const file = named === undefined ? findConfig(cwd, names, uid) : resolve(cwd, named)
  const { content = {}, path = '' } = file === undefined ? {} : await loadConfig(file)
  const fromConfig = text(content.store, 'store', path)
  const configured = text(content.archive, 'archive', path)
  const archive = (env['HOLDFAST_ARCHIVE'] || undefined) ?? (configured && besideConfig(configured, path))
  const [accessKeyId, secretAccessKey] = [env['AWS_ACCESS_KEY_ID'], env['AWS_SECRET_ACCESS_KEY']]
  const store = given.store ?? fromEnv ?? (fromConfig && besideConfig(fromConfig, path))
  const cache = (env['HOLDFAST_CACHE'] || undefined) ?? text(content.cache, 'cache', path)
  return {
    store,
    source: given.store ? '--store' : fromEnv ? 'HOLDFAST_STORE' : path,
    tenant: given.tenant ?? (env['HOLDFAST_TENANT'] || undefined) ?? text(content.tenant, 'tenant', path),
    options: {
      ...(archive === undefined ? {} : { archive }),
      ...(cache === undefined || !isCacheable(store) ? {} : { cache }),
      ...(accessKeyId && secretAccessKey ? { s3: { accessKeyId, secretAccessKey } } : {}),
      ...((content.options ?? {}) as OpenOptions),
    },
  }
}

/** A cache is for Postgres: what is set for one store must not get in the way of a command on another. */
export function isCacheable(store: string | undefined): boolean {
  return /^postgres(ql)?:/i.test(store ?? '')
}

async function loadConfig(path: string): Promise<ConfigFile> {
  let source: string
  try {
    source = await readFile(path, 'utf8')
  } catch {
    throw new CliError('not-found', `There is no config file ${path}.`, {
      remedy: 'Check --config, or HOLDFAST_CONFIG.',
    })
  }
  try {
    const content: unknown = path.endsWith('.json')
      ? JSON.parse(source)
      : ((await import(pathToFileURL(path).href)) as { default?: unknown }).default
    if (typeof content !== 'object' || content === null || Array.isArray(content)) {
      throw new Error('it holds no object')
    }
    return { path, content }
  } catch (error) {
    throw usageError(
      `The config file ${path} can't be read: ${(error as Error).message}.`,
      'Write { "store": "sqlite:agents.db" } in it; a module exports that as its default.',
    )
  }
}

function text(value: unknown, field: string, path: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  throw usageError(`"${field}" in ${path} must be a string.`, 'Write { "store": "sqlite:agents.db" }.')
}

// A path in a config file means the same from every folder below it.
function besideConfig(store: string, path: string): string {
  const match = /^(sqlite|file):(?!\/)(.+)$/.exec(store)
  return match ? `${match[1]}:${join(dirname(path), match[2] as string)}` : store
}
