import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'

/** A Lua file next to this one, with its keys, arguments and reply in its header. */
export interface CacheScript {
  readonly text: string
  /** By which the server knows it once it has seen the text. */
  readonly sha: string
}

export type CacheScripts = Readonly<Record<'get' | 'put' | 'bar', CacheScript>>

export async function loadCacheScripts(): Promise<CacheScripts> {
  const [get, put, bar] = await Promise.all(['get', 'put', 'bar'].map(load))
  return { get, put, bar } as CacheScripts
}

async function load(name: string): Promise<CacheScript> {
  const source = await readFile(new URL(`./scripts/${name}.lua`, import.meta.url), 'utf8')
  const text = source.replaceAll(/^\s*(--.*)?\n/gm, '')
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}
