import { InvalidOptionError } from './core/errors.js'
import { Holdfast } from './holdfast.js'
import type { Driver } from './log/contract.js'
import { LogStore, type LogStoreOptions } from './log/log-store.js'

export interface OpenOptions extends LogStoreOptions {}

type Opener = (rest: string, options: OpenOptions) => Promise<Driver>

/** Each scheme loads its driver only when it is used. */
const SCHEMES: Readonly<Record<string, Opener>> = {
  memory: async (_, { clock }) => {
    const { openMemory } = await import('./drivers/memory/memory-driver.js')
    return openMemory(clock ? { clock } : {})
  },
}

/** Opens a store by its url: `sqlite:agents.db`, `file:folder`, `postgres://…`, `redis://…` or `memory:`. */
export async function openHoldfast(url: string, options: OpenOptions = {}): Promise<Holdfast> {
  return new Holdfast(new LogStore(await openDriver(url, options), options))
}

/** The driver alone, for tools that work below the log. */
export async function openDriver(url: string, options: OpenOptions = {}): Promise<Driver> {
  const scheme = typeof url === 'string' ? url.slice(0, Math.max(url.indexOf(':'), 0)) : ''
  const opener = Object.hasOwn(SCHEMES, scheme) ? SCHEMES[scheme] : undefined
  if (opener === undefined) {
    throw new InvalidOptionError(
      'url',
      `"${String(url).slice(0, 80)}" has no known scheme`,
      `Begin with one of: ${Object.keys(SCHEMES).join(': ')}:`,
      { known: Object.keys(SCHEMES) },
    )
  }
  return opener(url.slice(scheme.length + 1), options)
}
