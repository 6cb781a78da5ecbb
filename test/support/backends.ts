import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { full } from './scale.js'
import { postgresUrl, redisUrl } from './servers.js'

/** A durable store for one test file, by url, so that other processes can open it too. */
export interface Backend {
  readonly name: string
  /** True where its server can't be had. With CI=true that is an error instead. */
  readonly missing: boolean
  /** A url of a store that nobody used yet. */
  fresh(): Promise<string>
  cleanup(): Promise<void>
}

let counter = 0
const unique = (): string => `t${process.pid}_${Date.now().toString(36)}_${counter++}`

/** The durable backends, all of them: what is proven for one is proven for each. */
export async function durableBackends(): Promise<Backend[]> {
  const [postgres, redis] = await Promise.all([postgresUrl(), redisUrl()])
  const folders: string[] = []
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
    folders.push(path)
    return path
  }
  const cleanup = async (): Promise<void> => {
    for (const path of folders.splice(0)) rmSync(path, { recursive: true, force: true })
  }
  return [
    { name: 'SQLite', missing: false, fresh: async () => `sqlite:${join(folder(), 'store.db')}`, cleanup },
    { name: 'file', missing: false, fresh: async () => `file:${join(folder(), 'store')}`, cleanup },
    { name: 'Postgres', missing: !postgres, fresh: async () => withSetting(postgres, 'schema', unique()), cleanup },
    { name: 'Redis', missing: !redis, fresh: async () => withSetting(redis, 'prefix', unique()), cleanup },
  ]
}

/** For what is in front of the runtime and knows nothing of backends: SQLite, and in the full run Postgres too. */
export async function backendsBehindDoors(): Promise<Backend[]> {
  const all = await durableBackends()
  return all.filter(({ name }) => name === 'SQLite' || (full && name === 'Postgres'))
}

function withSetting(url: string | undefined, name: string, value: string): string {
  if (url === undefined) throw new Error('This server is missing.')
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`
}
