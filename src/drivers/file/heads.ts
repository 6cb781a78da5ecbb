import { join } from 'node:path'
import type { Head, HeadPage, HeadQuery } from '../../log/contract.js'
import { selectHeads } from '../shared/head-query.js'
import { headOf } from './records/lease.js'
import { findLog } from './records/logs.js'
import { encodeName } from './records/names.js'
import type { FileStore } from './store.js'
import { findThread } from './records/threads.js'

const AT_ONCE = 16
const CHUNK = 512

/**
 * One page of the thread index, by walking through the folders: there is no index to keep in sync with the logs, and a
 * page costs a look at every log that matches the query's tenant and thread. Holds a few pages at a time.
 */
export async function queryHeads(store: FileStore, query: HeadQuery): Promise<HeadPage> {
  const now = store.clock.now()
  // One more than the page, so that the last selection still knows whether another page follows.
  const wider: HeadQuery = { ...query, limit: query.limit + 1 }
  let best: readonly Head[] = selectHeads([], wider, now).heads
  let pending: Head[] = []
  for await (const heads of walkThreads(store, query)) {
    pending.push(...heads)
    if (pending.length < CHUNK) continue
    best = selectHeads([...best, ...pending], wider, now).heads
    pending = []
  }
  return selectHeads([...best, ...pending], query, now)
}

async function* walkThreads(store: FileStore, query: HeadQuery): AsyncGenerator<Head[]> {
  const tenants = join(store.disk.root, 'tenants')
  for (const tenant of await names(store, tenants, query.tenant)) {
    const threads = join(tenants, tenant, 'threads')
    const found = await names(store, threads, query.thread)
    for (let at = 0; at < found.length; at += AT_ONCE) {
      const folders = found.slice(at, at + AT_ONCE).map((name) => join(threads, name))
      const heads = await Promise.all(folders.map((folder) => headsOf(store, folder, query)))
      yield heads.flat()
    }
  }
}

async function names(store: FileStore, folder: string, id: string | undefined): Promise<string[]> {
  return id === undefined ? ((await store.disk.list(folder)) ?? []) : [encodeName(id)]
}

async function headsOf(store: FileStore, folder: string, query: HeadQuery): Promise<Head[]> {
  const thread = await findThread(store, folder)
  if (thread === undefined) return []
  const { tenant, thread: id, logs } = thread.record
  const heads: Head[] = []
  for (const { branch } of logs) {
    if (query.branch !== undefined && branch !== query.branch) continue
    const state = await findLog(store, { tenant, thread: id, branch })
    if (state !== undefined) heads.push(await headOf(store, state))
  }
  return heads
}
