import { join } from 'node:path'
import { InvalidValueError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import type { BlobInfo, Hash } from '../../log/contract.js'
import { writeTemporary } from './records/chain.js'
import { hasCode } from './disk/disk.js'
import type { FileStore } from './store.js'
import { tenantFolder } from './records/threads.js'

/**
 * A blob is one file, `<hash>.<touchedAt in microseconds>`. Its time is part of its name, so a touch renames the file
 * from the name it was last seen under, and a removal removes exactly that name: whichever comes second finds nothing
 * under it, and no lock is needed.
 */
interface BlobFile {
  readonly hash: Hash
  readonly touched: number
  readonly path: string
}

/** Whether the blob was there. */
export async function touchBlob(store: FileStore, tenant: TenantId, hash: Hash): Promise<boolean> {
  const folder = blobFolder(store, tenant, hash)
  for (;;) {
    const files = await findBlob(store, folder, hash)
    const newest = files.at(-1)
    if (newest === undefined) return false
    try {
      await store.disk.rename(newest.path, blobPath(folder, hash, nextTouch(store, newest.touched)))
      // Whoever put it may have been killed before its name was durable.
      await store.disk.ensureFolder(folder)
      await store.disk.flushFolder(folder)
      return true
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }
}

export async function putBlob(store: FileStore, tenant: TenantId, hash: Hash, bytes: Uint8Array): Promise<void> {
  if (!isHash(hash)) {
    throw new InvalidValueError('hash', 'is not 64 lower-case hex digits', 'Pass the hash of the blob.')
  }
  if (await touchBlob(store, tenant, hash)) return
  const { disk } = store
  const folder = blobFolder(store, tenant, hash)
  await disk.ensureFolder(folder)
  const temporary = disk.temporary()
  await writeTemporary(disk, temporary, bytes)
  try {
    await disk.rename(temporary, blobPath(folder, hash, nextTouch(store, 0)))
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    throw error
  }
  await disk.flushFolder(folder)
}

export async function getBlob(store: FileStore, tenant: TenantId, hash: Hash): Promise<Uint8Array | undefined> {
  const folder = blobFolder(store, tenant, hash)
  for (let absences = 0; ; ) {
    const newest = (await findBlob(store, folder, hash)).at(-1)
    // A list may miss a file that is renamed while the list is read, so absence is only believed the second time.
    if (newest === undefined && ++absences > 1) return undefined
    const bytes = newest && (await store.disk.read(newest.path))
    // Touched in between: found under its new name the next time.
    if (bytes !== undefined) return new Uint8Array(bytes)
  }
}

export async function listBlobs(
  store: FileStore,
  tenant: TenantId,
  { after = '', limit }: { readonly after?: Hash; readonly limit: number },
): Promise<BlobInfo[]> {
  const root = join(tenantFolder(store, tenant), 'blobs')
  const found: BlobInfo[] = []
  for (const first of await fanNames(store, root, after.slice(0, 2))) {
    const low = first === after.slice(0, 2) ? after.slice(2, 4) : ''
    for (const second of await fanNames(store, join(root, first), low)) {
      const newest = new Map((await listFolder(store, join(root, first, second))).map((file) => [file.hash, file]))
      for (const { hash, touched, path } of newest.values()) {
        if (hash <= after) continue
        if (found.length >= limit) return found
        const info = await describe(store, join(root, first, second), { hash, touched, path })
        if (info !== undefined) found.push(info)
      }
    }
  }
  return found
}

async function describe(store: FileStore, folder: string, file: BlobFile): Promise<BlobInfo | undefined> {
  for (let seen: BlobFile | undefined = file; seen !== undefined; ) {
    const identity = await store.disk.identify(seen.path)
    if (identity !== undefined) return { hash: seen.hash, size: Number(identity.size), touchedAt: seen.touched / 1000 }
    seen = (await findBlob(store, folder, file.hash)).at(-1)
  }
  return undefined
}

export async function removeBlob(store: FileStore, tenant: TenantId, hash: Hash, touchedAt: number): Promise<boolean> {
  const folder = blobFolder(store, tenant, hash)
  const files = await findBlob(store, folder, hash)
  const newest = files.at(-1)
  if (newest === undefined || newest.touched / 1000 !== touchedAt) return false
  // Two processes that put the same blob at once leave two files; the older ones go first, so that the last one
  // decides.
  for (const older of files.slice(0, -1)) await store.disk.remove(older.path)
  const grave = store.disk.temporary()
  try {
    // Moved, not removed: only a rename says whether it was still there.
    await store.disk.rename(newest.path, grave)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
  await store.disk.remove(grave)
  return true
}

function blobFolder(store: FileStore, tenant: TenantId, hash: Hash): string {
  return join(tenantFolder(store, tenant), 'blobs', hash.slice(0, 2), hash.slice(2, 4))
}

function isHash(hash: Hash): boolean {
  return /^[0-9a-f]{64}$/.test(hash)
}

function blobPath(folder: string, hash: Hash, touched: number): string {
  return join(folder, `${hash}.${String(touched).padStart(16, '0')}`)
}

async function findBlob(store: FileStore, folder: string, hash: Hash): Promise<BlobFile[]> {
  // Anything else is not a valid name, and must not become part of a path that is looked at.
  if (!isHash(hash)) return []
  return (await listFolder(store, folder)).filter((file) => file.hash === hash)
}

/** The blobs of a folder by hash, and those of one hash by time. */
async function listFolder(store: FileStore, folder: string): Promise<BlobFile[]> {
  const names = ((await store.disk.list(folder)) ?? []).filter((name) => /^[0-9a-f]{64}\.\d{16}$/.test(name))
  return names.sort().map((name) => ({
    hash: name.slice(0, 64),
    touched: Number(name.slice(65)),
    path: join(folder, name),
  }))
}

async function fanNames(store: FileStore, folder: string, from: string): Promise<string[]> {
  const names = (await store.disk.list(folder)) ?? []
  return names.filter((name) => /^[0-9a-f]{2}$/.test(name) && name >= from).sort()
}

// In microseconds, including those of the monotonic clock, which all processes share: a blob that one process removed
// and another put again within a millisecond differs from the one a collector still has on its list.
function nextTouch(store: FileStore, before: number): number {
  const micros = Math.floor(store.clock.monotonic() * 1000) % 1000
  store.lastTouch = Math.max(Math.floor(store.clock.now()) * 1000 + micros, before + 1, store.lastTouch + 1)
  return store.lastTouch
}
