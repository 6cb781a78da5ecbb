import type { TenantId } from '../../core/ids.js'
import type { BlobInfo, Hash } from '../../log/contract.js'
import type { Reply } from './client.js'
import type { ScriptCall } from './connection.js'
import { toDriverError } from './server/errors.js'
import { asBuffer } from './rows/rows.js'
import type { Store } from './store.js'

/** How many buckets of blobs a listing asks for at once. */
const BUCKETS_AT_ONCE = 8

export async function putBlobs(
  store: Store,
  tenant: TenantId,
  blobs: readonly { readonly hash: Hash; readonly bytes: Uint8Array }[],
): Promise<void> {
  const { scripts, keys } = store
  const calls = blobs.map(({ hash, bytes }) => {
    const bucket = keys.bucketOfBlob(hash)
    const names = [keys.blob(tenant, hash), keys.blobList(tenant, bucket), keys.blobClock(bucket)]
    return { script: scripts['put-blob'], keys: names, args: [hash, asBuffer(bytes)] }
  })
  await writeAll(store, calls, true)
}

export async function touchBlobs(store: Store, tenant: TenantId, hashes: readonly Hash[]): Promise<Hash[]> {
  const { scripts, keys } = store
  const calls = hashes.map((hash) => ({
    script: scripts['touch-blob'],
    keys: [keys.blob(tenant, hash), keys.blobClock(keys.bucketOfBlob(hash))],
    args: [],
  }))
  const replies = await writeAll(store, calls, false)
  return hashes.filter((_, i) => replies[i] === 0)
}

export async function getBlobs(
  store: Store,
  tenant: TenantId,
  hashes: readonly Hash[],
): Promise<ReadonlyMap<Hash, Uint8Array>> {
  if (hashes.length === 0) return new Map()
  const replies = await store.connection.read(
    hashes.map((hash) => ({ command: 'hget', args: [store.keys.blob(tenant, hash), 'd'], binary: true })),
  )
  return new Map(hashes.flatMap((hash, i) => (Buffer.isBuffer(replies[i]) ? [[hash, replies[i]]] : [])))
}

/** Buckets hold blobs by the start of their hash, so they are walked in order and no list is ever sorted here. */
export async function listBlobs(
  store: Store,
  tenant: TenantId,
  { after, limit }: { readonly after?: Hash; readonly limit: number },
): Promise<BlobInfo[]> {
  const { keys } = store
  const found: BlobInfo[] = []
  let from = after
  let bucket = after === undefined ? 0 : keys.bucketOfBlob(after)
  while (found.length < limit && bucket < keys.buckets.length) {
    const wave = Array.from({ length: Math.min(BUCKETS_AT_ONCE, keys.buckets.length - bucket) }, (_, i) => bucket + i)
    const wanted = limit - found.length
    const lists = (await store.connection.read(
      wave.map((at) => ({
        command: 'zrangebylex',
        args: [keys.blobList(tenant, at), from === undefined ? '-' : `(${from}`, '+', 'LIMIT', '0', String(wanted)],
      })),
    )) as string[][]
    const hashes = lists.flat().slice(0, wanted)
    found.push(...(await describeBlobs(store, tenant, hashes)))
    // Blobs that were removed since they were listed leave a gap, and those behind them are still to come.
    const isFull = lists.flat().length > hashes.length || hashes.length === wanted
    from = hashes.at(-1) ?? from
    bucket = isFull && from !== undefined ? keys.bucketOfBlob(from) : bucket + wave.length
  }
  return found
}

async function describeBlobs(store: Store, tenant: TenantId, hashes: readonly Hash[]): Promise<BlobInfo[]> {
  if (hashes.length === 0) return []
  const rows = (await store.connection.read(
    hashes.map((hash) => ({ command: 'hmget', args: [store.keys.blob(tenant, hash), 't', 'n'] })),
  )) as (string | null)[][]
  return hashes.flatMap((hash, i) => {
    const [touch, size] = rows[i] ?? []
    return touch && size ? [{ hash, size: Number(size), touchedAt: Number(touch) / 1000 }] : []
  })
}

export async function removeBlob(store: Store, tenant: TenantId, hash: Hash, touchedAt: number): Promise<boolean> {
  const { scripts, keys } = store
  const reply = await store.connection.write({
    script: scripts['remove-blob'],
    keys: [keys.blob(tenant, hash), keys.blobList(tenant, keys.bucketOfBlob(hash))],
    args: [hash, String(Math.round(touchedAt * 1000))],
  })
  return reply === 1
}

async function writeAll(store: Store, calls: readonly ScriptCall[], durable: boolean): Promise<Reply[]> {
  if (calls.length === 0) return []
  return (await store.connection.flush(calls, true, durable)).map((outcome) => {
    if ('error' in outcome) throw toDriverError(outcome.error, true)
    return outcome.reply
  })
}
