import { fileURLToPath } from 'node:url'
import { InvalidOptionError } from './core/errors.js'
import { describeStoreUrl } from './core/wording/secrets.js'

/** A store's URL, parsed: `sqlite:agents.db?synchronous=normal`. */
export interface StoreUrl {
  readonly scheme: Scheme
  /** The path, or the whole URL without Holdfast's own settings. */
  readonly target: string
  /** Holdfast's settings from the query. A server's own settings stay in its URL. */
  readonly settings: Readonly<Record<string, string>>
}

const SCHEMES = ['memory', 'sqlite', 'file', 'postgres', 'redis'] as const
export type Scheme = (typeof SCHEMES)[number]

const ALIASES: Readonly<Record<string, Scheme>> = { postgresql: 'postgres', rediss: 'redis' }

/** What the query may contain, per scheme. */
const SETTINGS: Readonly<Record<Scheme, readonly string[]>> = {
  memory: [],
  sqlite: ['synchronous'],
  file: ['fsync'],
  postgres: ['schema'],
  redis: ['prefix'],
}

export function parseStoreUrl(url: unknown): StoreUrl {
  const name = typeof url === 'string' ? url.slice(0, Math.max(url.indexOf(':'), 0)).toLowerCase() : ''
  const scheme = SCHEMES.find((known) => known === name) ?? (Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined)
  if (typeof url !== 'string' || scheme === undefined) {
    throw new InvalidOptionError(
      'url',
      `${JSON.stringify(describeStoreUrl(String(url)))} has no scheme that Holdfast knows`,
      'Use memory:, sqlite:agents.db, file:folder, postgres://user@host/database or redis://host.',
      { known: SCHEMES },
    )
  }
  if (scheme === 'postgres' || scheme === 'redis') refuseBareMarks(url)
  const at = url.indexOf('?')
  const query = new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
  const settings: Record<string, string> = {}
  for (const setting of SETTINGS[scheme]) {
    const value = query.get(setting)
    if (value !== null) settings[setting] = value
    query.delete(setting)
  }
  const left = query.toString()
  const address = at === -1 ? url : url.slice(0, at)
  // A server's client has its own settings (sslmode, family, …) and reads them from the URL.
  if (scheme === 'postgres' || scheme === 'redis')
    return { scheme, target: left ? `${address}?${left}` : address, settings }
  if (left) {
    throw new InvalidOptionError(
      'url',
      `has the setting "${[...query.keys()][0]}", which ${scheme}: does not know`,
      SETTINGS[scheme].length > 0 ? `Use ${SETTINGS[scheme].join(', ')}.` : 'Remove the query.',
    )
  }
  return { scheme, target: localPath(scheme, address), settings }
}

/**
 * A slash, question mark or hash in a password ends the host early, so that the user name, or half of the password,
 * would be looked up as a host and end up in the error when it is not found.
 */
function refuseBareMarks(url: string): void {
  for (const one of url.split(/,(?=\w+:\/\/)/)) {
    const [, before = '', query = ''] = /^\w+:\/\/[^/?#]*([^?]*)(?:\?(.*))?$/s.exec(one) ?? []
    const isOdd = before.includes('@') || /^[^=]*@/.test(query) || query.split('#').slice(1).join('').includes('@')
    if (!isOdd) continue
    throw new InvalidOptionError(
      'url',
      'has an @ after its host',
      'Percent-encode special characters in user name and password: / as %2F, ? as %3F, # as %23, @ as %40.',
    )
  }
}

function localPath(scheme: Scheme, address: string): string {
  const path = address.slice(address.indexOf(':') + 1)
  if (scheme === 'memory') return ''
  if (scheme === 'file' && path.startsWith('///')) return fileURLToPath(`file:${path}`)
  const local = path.startsWith('//') ? path.slice(2) : path
  if (local === '') {
    throw new InvalidOptionError(
      'url',
      `names no ${scheme === 'file' ? 'folder' : 'file'}`,
      `Write the path after ${scheme}:, such as ${scheme}:agents${scheme === 'file' ? '' : '.db'}.`,
    )
  }
  return local
}
