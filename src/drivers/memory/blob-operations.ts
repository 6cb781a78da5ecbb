import type { TenantId } from '../../core/ids.js'
import type { BlobInfo, Hash } from '../../log/contract.js'
import { takeSmallest } from '../shared/take-smallest.js'
import type { MemoryBlob, MemoryStore } from './memory-store.js'

export function putBlob(store: MemoryStore, tenant: TenantId, hash: Hash, bytes: Uint8Array): void {
  let blobs = store.blobs.get(tenant)
  if (blobs === undefined) {
    blobs = new Map()
    store.blobs.set(tenant, blobs)
  }
  const existing = blobs.get(hash)
  if (existing !== undefined) existing.touchedAt = nextTouch(store)
  else blobs.set(hash, { bytes: new Uint8Array(bytes), touchedAt: nextTouch(store) })
}

/** Whether the blob was there. */
export function touchBlob(store: MemoryStore, tenant: TenantId, hash: Hash): boolean {
  const blob = findBlob(store, tenant, hash)
  if (blob === undefined) return false
  blob.touchedAt = nextTouch(store)
  return true
}

export function findBlob(store: MemoryStore, tenant: TenantId, hash: Hash): MemoryBlob | undefined {
  return store.blobs.get(tenant)?.get(hash)
}

export function listBlobs(store: MemoryStore, tenant: TenantId, after: Hash | undefined, limit: number): BlobInfo[] {
  const blobs = store.blobs.get(tenant) ?? new Map<Hash, MemoryBlob>()
  return takeSmallest(candidates(), limit, (a, b) => (a.hash < b.hash ? -1 : 1))

  function* candidates(): Generator<BlobInfo> {
    for (const [hash, { bytes, touchedAt }] of blobs) {
      if (after === undefined || hash > after) yield { hash, size: bytes.length, touchedAt }
    }
  }
}

export function removeBlob(store: MemoryStore, tenant: TenantId, hash: Hash, touchedAt: number): boolean {
  if (findBlob(store, tenant, hash)?.touchedAt !== touchedAt) return false
  const blobs = store.blobs.get(tenant)
  blobs?.delete(hash)
  if (blobs?.size === 0) store.blobs.delete(tenant)
  return true
}

// Every touch of a store is later than all before it, so a blob that was removed and put again within one
// millisecond differs from the one a second collector still has on its list.
function nextTouch(store: MemoryStore): number {
  store.lastTouch = Math.max(store.clock.now(), store.lastTouch + 0.001)
  return store.lastTouch
}
