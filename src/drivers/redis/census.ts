import type { TenantId, ThreadId } from '../../core/ids.js'
import type { Tombstone } from '../../log/contract.js'
import type { NamedTombstone, TombstonePage } from '../../log/copy-contract.js'
import type { RedisLike, Reply } from './client.js'
import { toDriverError } from './server/errors.js'
import { checkLost, type Store } from './store.js'

/** About how many keys the server looks at in one step of a walk, so that it does not keep others waiting. */
const KEYS_AT_ONCE = 1000

/** Every tenant, by a walk of the server through the names of all keys: a tenant has no key of its own. */
export async function listTenants(store: Store): Promise<TenantId[]> {
  const { scripts, prefix } = store
  const tenants = new Set<string>()
  const length = String(Buffer.byteLength(prefix))
  for (const node of mastersOf(store)) {
    let cursor = '0'
    do {
      const args = [cursor, patternOf(store, '*'), String(KEYS_AT_ONCE), length]
      const [next = '0', ...found] = (await ask(node, 'eval', scripts['scan-tenants'].text, '0', ...args)) as string[]
      for (const tenant of found) tenants.add(tenant)
      cursor = next
    } while (cursor !== '0')
  }
  return [...tenants] as TenantId[]
}

/** One step of a walk through the keys of threads. The cursor names the node of a cluster, and the place in its walk. */
export async function listTombstones(store: Store, cursor = '0 0'): Promise<TombstonePage> {
  const [place = '0', from = '0'] = cursor.split(' ')
  const masters = mastersOf(store)
  const node = masters[Number(place)]
  if (node === undefined) return { tombstones: [] }
  const [next, keys] = await scanStep(store, node, from, 'thread:*')
  const texts = await store.connection.read(keys.map((key) => ({ command: 'hget', args: [key, 'tombstone'] })))
  const tombstones = keys.flatMap((key, i): NamedTombstone[] => {
    const text = texts[i]
    const [, tenant, thread] = partsOf(store, key)
    if (typeof text !== 'string' || tenant === undefined || thread === undefined) return []
    const [at, reason] = JSON.parse(text) as [number, string]
    return [{ tenant: tenant as TenantId, thread: thread as ThreadId, at, reason }]
  })
  if (next !== '0') return { tombstones, cursor: `${place} ${next}` }
  return Number(place) + 1 < masters.length ? { tombstones, cursor: `${Number(place) + 1} 0` } : { tombstones }
}

export async function bury(store: Store, tenant: TenantId, thread: ThreadId, tombstone: Tombstone): Promise<boolean> {
  const { scripts, keys, marker } = store
  const call = {
    script: scripts.bury,
    keys: [keys.thread(tenant, thread), keys.index(keys.bucketOf(tenant, thread))],
    args: [marker, JSON.stringify([tombstone.at, tombstone.reason])],
  }
  return checkLost(store, await store.connection.write(call)) === 1
}

function mastersOf({ connection: { client } }: Store): readonly RedisLike[] {
  return client.isCluster ? (client.nodes?.('master') ?? []) : [client]
}

async function scanStep(
  store: Store,
  node: RedisLike,
  cursor: string,
  rest: string,
): Promise<[next: string, keys: string[]]> {
  const reply = await ask(node, 'scan', cursor, 'match', patternOf(store, rest), 'count', String(KEYS_AT_ONCE))
  const [next, keys] = reply as [Reply, string[]]
  return [String(next), keys]
}

function patternOf({ prefix }: Store, rest: string): string {
  return `${prefix.replace(/[\\[\]*?^-]/g, '\\$&')}:{*}:${rest}`
}

async function ask(node: RedisLike, command: string, ...args: readonly string[]): Promise<unknown> {
  try {
    return await node.call(command, ...args)
  } catch (error) {
    throw toDriverError(error, false)
  }
}

/** The kind of a key, and the ids in its name. */
function partsOf({ prefix }: Store, key: string): readonly (string | undefined)[] {
  const parts = /^\{[^}]*\}:([a-z-]+):(.*)$/s.exec(key.slice(prefix.length + 1))
  return parts === null ? [] : [parts[1], ...(parts[2] as string).split('\0')]
}
