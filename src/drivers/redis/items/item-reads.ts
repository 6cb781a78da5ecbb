import { CorruptError } from '../../../core/errors.js'
import type { TenantId } from '../../../core/ids.js'
import { compareUtf8 } from '../../../core/text-order.js'
import type { ItemScan, StoredItem } from '../../../log/store-contract.js'
import type { Reply } from '../client.js'
import { toDriverError } from '../server/errors.js'
import { fromBytes, toBytes, walkRows } from '../index/index-walk.js'
import { checkLost, type Store } from '../store.js'

/** How many items one call reads at most, so that it does not keep others waiting. */
const MAX_READS = 256

/** Above every byte of UTF-8: what lies between a prefix and the prefix with this behind it begins with the prefix. */
const ABOVE_ALL = Buffer.of(0xff)

export async function readItems(
  store: Store,
  tenant: TenantId,
  space: string,
  keys: readonly string[],
  { now, extendTo }: { readonly now: number; readonly extendTo?: number },
): Promise<StoredItem[]> {
  const unique = [...new Set(keys)]
  if (unique.length === 0) return []
  const isWrite = extendTo !== undefined
  const args = [store.marker, String(now), isWrite ? String(extendTo) : '']
  const calls = []
  for (let i = 0; i < unique.length; i += MAX_READS) {
    const part = unique.slice(i, i + MAX_READS)
    const names = store.keys.space(tenant, space)
    calls.push({ script: store.scripts['read-items'], keys: names, args: [...args, ...part], binary: true })
  }
  const fields = (await store.connection.flush(calls, isWrite)).flatMap((outcome) => {
    if ('error' in outcome) throw toDriverError(outcome.error, isWrite)
    return checkLost(store, outcome.reply) as Reply[]
  })
  return unique.flatMap((key, i) => {
    const head = fields[2 * i] ?? null
    return head === null ? [] : [decodeItem(space, key, head, fields[2 * i + 1] ?? null)]
  })
}

/** In several steps if it is long: each continues after the last key that the one before looked at. */
export async function scanItems(
  store: Store,
  tenant: TenantId,
  space: string,
  scan: ItemScan,
  now: number,
): Promise<StoredItem[]> {
  const { prefix = '', after, limit, where = [], fields: withFields = false } = scan
  const found: StoredItem[] = []
  const upper = prefix === '' ? '+' : Buffer.concat([Buffer.from(`(${prefix}`), ABOVE_ALL])
  let lower = prefix === '' ? '-' : `[${prefix}`
  if (after !== undefined && compareUtf8(after, prefix) >= 0) lower = `(${after}`
  while (found.length < limit) {
    const call = {
      script: store.scripts['scan-items'],
      keys: store.keys.space(tenant, space),
      args: [
        store.marker,
        String(now),
        String(limit - found.length),
        lower,
        upper,
        JSON.stringify(where),
        withFields ? '1' : '0',
      ],
      binary: true,
    }
    const [reply] = await store.connection.read([call])
    const [last, ...fields] = checkLost(store, reply ?? null) as readonly Reply[]
    for (let i = 0; i < fields.length; i += 4) {
      const item = decodeItem(space, String(fields[i]), fields[i + 1] ?? null, fields[i + 2] ?? null)
      found.push(withFields ? { ...item, fields: decodeFields(String(fields[i + 3])) } : item)
    }
    if (last === null || last === undefined) break
    lower = `(${String(last)}`
  }
  return found
}

export async function listSpaces(
  store: Store,
  tenant: TenantId,
  { after, limit }: { readonly after?: string; readonly limit: number },
): Promise<string[]> {
  const plan = { ranges: [{ prefix: toBytes(`i\0${tenant}\0`) }], namesTenant: false, order: 'exact' } as const
  const start = after === undefined ? undefined : ({ bracket: '(', position: toBytes(after) } as const)
  const names: string[] = []
  for await (const rows of walkRows(store, plan, { descending: false, limit }, start)) {
    for (const row of rows) names.push(fromBytes(row))
    if (names.length >= limit) break
  }
  return names.slice(0, Math.max(0, limit))
}

// An empty list of Lua is an empty object as JSON.
function decodeFields(json: string): NonNullable<StoredItem['fields']> {
  const flat: unknown = JSON.parse(json)
  if (!Array.isArray(flat)) return []
  return flat.flatMap((name, i) => (i % 2 === 0 ? [[String(name), String(flat[i + 1])] as const] : []))
}

function decodeItem(space: string, key: string, head: Reply, value: Reply): StoredItem {
  const [, created, updated, expires, version] = /^(\S+) (\S+) (\S+) (.*)$/s.exec(String(head)) ?? []
  if (version === undefined || !Buffer.isBuffer(value)) {
    const remedy = 'Restore a backup of this Redis; something else wrote into its keys.'
    throw new CorruptError(
      `The item ${JSON.stringify(key)} can't be read.`,
      { space, key, reason: 'item' },
      undefined,
      remedy,
    )
  }
  return {
    key,
    value,
    version,
    createdAt: Number(created),
    updatedAt: Number(updated),
    expiresAt: expires === '-' ? null : Number(expires),
  }
}
