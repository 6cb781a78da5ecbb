import { readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { OpenOptions } from '../index.js'
import { CliError, usageError } from './cli-error.js'

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
  readonly content: { readonly store?: unknown; readonly tenant?: unknown; readonly options?: unknown }
}

const CONFIG_NAMES = ['holdfast.config.json', 'holdfast.config.mjs']

/** The command line first, then the environment, then the nearest config file, in this folder or one above. */
export async function readSettings(
  given: { readonly store?: string; readonly tenant?: string; readonly config?: string },
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
): Promise<Settings> {
  const config = given.config === undefined ? await findConfig(cwd) : await loadConfig(resolve(cwd, given.config))
  const { content = {}, path = '' } = config ?? {}
  const fromEnv = env['HOLDFAST_STORE'] || undefined
  const fromConfig = text(content.store, 'store', path)
  return {
    store: given.store ?? fromEnv ?? (fromConfig && besideConfig(fromConfig, path)),
    source: given.store ? '--store' : fromEnv ? 'HOLDFAST_STORE' : path,
    tenant: given.tenant ?? (env['HOLDFAST_TENANT'] || undefined) ?? text(content.tenant, 'tenant', path),
    options: (content.options ?? {}) as OpenOptions,
  }
}

async function findConfig(cwd: string): Promise<ConfigFile | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    for (const name of CONFIG_NAMES) {
      const found = await loadConfig(join(folder, name), true)
      if (found) return found
    }
    if (dirname(folder) === folder) return undefined
  }
}

async function loadConfig(path: string): Promise<ConfigFile>
async function loadConfig(path: string, optional: true): Promise<ConfigFile | undefined>
async function loadConfig(path: string, optional = false): Promise<ConfigFile | undefined> {
  let source: string
  try {
    source = await readFile(path, 'utf8')
  } catch (error) {
    if (optional && ['ENOENT', 'ENOTDIR', 'EACCES', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) {
      return undefined
    }
    throw new CliError('not-found', `There is no config file ${path}.`, { remedy: 'Check --config.' })
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
  throw usageError(`"${field}" in ${path} is no text.`, 'Write { "store": "sqlite:agents.db" }.')
}

// A path in a config file means the same from every folder below it.
function besideConfig(store: string, path: string): string {
  const match = /^(sqlite|file):(?!\/)(.+)$/.exec(store)
  return match ? `${match[1]}:${join(dirname(path), match[2] as string)}` : store
}
