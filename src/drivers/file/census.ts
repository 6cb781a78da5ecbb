import { join } from 'node:path'
import type { TenantId, ThreadId } from '../../core/ids.js'
import type { Tombstone } from '../../log/contract.js'
import type { NamedTombstone } from '../../log/copy-contract.js'
import { mapSome } from './batch.js'
import { hasCode } from './disk/disk.js'
import { toStorageError } from './disk/disk-errors.js'
import { loadNewest } from './items/item-chain.js'
import { decodeName, encodeName } from './records/names.js'
import { attempts, type FileStore } from './store.js'
import {
  beginThread,
  changeThread,
  findThread,
  findThreadOf,
  sweepThread,
  tenantFolder,
  threadFolder,
} from './records/threads.js'

/** Every tenant that has a folder with something in it. */
export async function listTenants(store: FileStore): Promise<TenantId[]> {
  const root = join(store.disk.root, 'tenants')
  const names = (await store.disk.list(root)) ?? []
  const found = await mapSome(names, async (name) => {
    const folder = join(root, name)
    return (await isInUse(store, folder))
      ? (decodeName(name) ?? (await findTenantName(store, folder, name)))
      : undefined
  })
  return found.filter((tenant) => tenant !== undefined) as TenantId[]
}

async function isInUse(store: FileStore, folder: string): Promise<boolean> {
  for (const name of (await store.disk.list(folder)) ?? []) {
    if (((await store.disk.list(join(folder, name))) ?? []).length > 0) return true
  }
  return false
}

// The folder of a long name holds a hash of it; the records inside have the name itself.
async function findTenantName(store: FileStore, folder: string, name: string): Promise<string | undefined> {
  const isIt = (tenant: string | undefined): boolean => tenant !== undefined && encodeName(tenant) === name
  for (const thread of (await store.disk.list(join(folder, 'threads'))) ?? []) {
    const found = (await findThread(store, join(folder, 'threads', thread)))?.record.tenant
    if (isIt(found)) return found
  }
  for (const space of (await store.disk.list(join(folder, 'items'))) ?? []) {
    for (const key of (await store.disk.list(join(folder, 'items', space))) ?? []) {
      const found = (await loadNewest(store.disk, join(folder, 'items', space, key)))?.record.tenant
      if (isIt(found)) return found
    }
  }
  return undefined
}

export async function listTombstones(store: FileStore): Promise<NamedTombstone[]> {
  const root = join(store.disk.root, 'tenants')
  const found: NamedTombstone[] = []
  for (const tenant of (await store.disk.list(root)) ?? []) {
    const threads = join(root, tenant, 'threads')
    const links = await mapSome((await store.disk.list(threads)) ?? [], (name) =>
      findThread(store, join(threads, name)),
    )
    for (const link of links) {
      if (!link?.record.tombstone) continue
      const { tenant, thread, tombstone } = link.record
      found.push({ tenant, thread, ...tombstone })
    }
  }
  return found
}

/** The directory's own compare-and-append decides between this and whoever creates a log of the thread. */
export async function bury(
  store: FileStore,
  tenant: TenantId,
  thread: ThreadId,
  { at, reason }: Tombstone,
): Promise<boolean> {
  const folder = threadFolder(store, tenant, thread)
  const tombstone = { at, reason }
  const again = attempts('the thread')
  for (;;) {
    const found = await findThreadOf(store, tenant, thread)
    if (found === undefined) {
      if (await beginBuried(store, tenant, thread, folder, tombstone)) return true
    } else {
      const { logs, removed } = found.record
      if (logs.length > 0) return false
      if ((await changeThread(store, folder, found, { logs, tombstone, removed })) !== undefined) return true
    }
    await again()
  }
}

// As a thread with its first log: made aside, and moved into its place, which fails if there is one.
async function beginBuried(
  store: FileStore,
  tenant: TenantId,
  thread: ThreadId,
  folder: string,
  tombstone: Tombstone,
): Promise<boolean> {
  const { disk } = store
  const parent = join(tenantFolder(store, tenant), 'threads')
  const aside = disk.temporary()
  await disk.ensureFolder(parent)
  await disk.makeFolder(aside)
  try {
    const directory = await beginThread(store, aside, tenant, thread, { logs: [], tombstone, removed: [] })
    await disk.flushFolder(aside)
    await disk.rename(aside, folder)
    store.threads.set(folder, directory)
  } catch (error) {
    await disk.removeTree(aside).catch(() => undefined)
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST') && !(process.platform === 'win32' && hasCode(error, 'EPERM')))
      throw error
    await sweepThread(store, folder)
    return false
  }
  try {
    await disk.flushFolder(parent)
  } catch (error) {
    throw toStorageError(error, 'unknown')
  }
  return true
}
