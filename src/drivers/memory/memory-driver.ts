import type { Clock } from '../../core/time/clock.js'
import { ClosedError } from '../../core/errors.js'
import type { TenantId, ThreadId } from '../../core/ids.js'
import {
  type Capabilities,
  type Driver,
  type Survives,
  type Head,
  type HeadQuery,
  type LogKey,
  MESSAGE_BYTES,
} from '../../log/contract.js'
import type { NamedTombstone } from '../../log/copy-contract.js'
import { checkBatch, checkStandIn } from '../shared/checks.js'
import { checkItemWrites } from '../shared/item-checks.js'
import { selectHeads } from '../shared/head-query.js'
import { findBlob, listBlobs, putBlob, removeBlob, touchBlob } from './blob-operations.js'
import { setIndex, takeDue } from './due.js'
import { listSpaces, readItems, scanItems, sweepItems } from './item-reads.js'
import { applyWrite, writeItem } from './item-writes.js'
import {
  appendToLog,
  copyEntry,
  entriesBetween,
  eraseLogs,
  headOf,
  isAsExpected,
  lastEntry,
  pruneLog,
} from './log-operations.js'
import {
  createMemoryStore,
  ensureThread,
  findLog,
  findThread,
  type MemoryLog,
  type MemoryStore,
} from './memory-store.js'

const CAPABILITIES: Capabilities = {
  multiProcess: false,
  persistent: false,
  storeAtomic: true,
  transactions: false,
  watch: true,
  messages: true,
  parallelBatches: 1,
  maxBatch: 1024,
}

const DURABILITY: Survives = {
  processKill: 'no',
  osCrash: 'no',
  powerLoss: 'no',
  failover: 'not-applicable',
  settings: {},
  note: 'Everything is gone when the process ends.',
}

/**
 * The reference: what the contract means, in the plainest code. Every operation runs without a pause between its check
 * and its write, so it is atomic. `store` opens data that another memory driver of this process has open.
 */
export async function openMemory(
  options: { readonly clock?: Clock; readonly store?: MemoryStore } = {},
): Promise<Driver> {
  const store = options.store ?? createMemoryStore(options)
  const own = new Set<() => Promise<void>>()
  let closed = false

  function find(log: LogKey): MemoryLog | undefined {
    checkOpen()
    return findLog(store, log)
  }

  function checkOpen(): void {
    if (closed) throw new ClosedError('The memory driver')
  }

  return {
    name: 'memory',
    capabilities: CAPABILITIES,
    survives: DURABILITY,

    async append(batch) {
      checkOpen()
      checkBatch(batch)
      for (const { carried } of batch) if (carried) checkItemWrites(carried)
      return batch.map((append) => appendToLog(store, append))
    },

    async tail(log, upTo) {
      const found = find(log)
      if (found === undefined) return undefined
      const end = upTo ?? lastEntry(found).seq
      const [last] = entriesBetween(found, end, end + 1)
      const entries = last === undefined ? [] : entriesBetween(found, last.keyframe, end + 1)
      return { head: headOf(store, found), entries: entries.map(copyEntry) }
    },

    async read(log, from, limit) {
      const found = find(log)
      if (found === undefined) return []
      const start = Math.max(from, headOf(store, found).base.seq)
      return entriesBetween(found, start, start + limit).map(copyEntry)
    },

    async headers(log, { before, limit }) {
      const found = find(log)
      if (found === undefined) return []
      const end = Math.min(before ?? Number.POSITIVE_INFINITY, lastEntry(found).seq + 1)
      return entriesBetween(found, end - limit, end)
        .reverse()
        .map(({ seq, keyframe, hash, header, body }) => ({
          seq,
          keyframe,
          hash,
          header: new Uint8Array(header),
          size: body.length,
        }))
    },

    async head(log) {
      const found = find(log)
      return found && headOf(store, found)
    },

    async renew(log, incarnation, epoch, ms) {
      const found = find(log)
      if (found?.incarnation !== incarnation || found.owner === null || found.epoch !== epoch) return false
      found.leaseEnd = store.clock.monotonic() + ms
      return true
    },

    async heads(query) {
      checkOpen()
      return selectHeads(walkHeads(store, query), query, store.clock.now())
    },

    async prune(log, incarnation, seq, standIn) {
      const found = find(log)
      if (found?.incarnation !== incarnation) return 'conflict'
      checkStandIn(seq, standIn)
      return pruneLog(found, seq, standIn)
    },

    async erase(request) {
      checkOpen()
      return eraseLogs(store, request)
    },

    async tombstone(tenant, thread) {
      checkOpen()
      const found = findThread(store, tenant, thread)?.tombstone
      return found && { ...found }
    },

    async reindex(log, expect, index) {
      const found = find(log)
      if (found === undefined || !isAsExpected(found, expect)) return false
      setIndex(store, found, index)
      return true
    },

    async touchBlobs(tenant, hashes) {
      checkOpen()
      return hashes.filter((hash) => !touchBlob(store, tenant, hash))
    },

    async putBlobs(tenant, blobs) {
      checkOpen()
      for (const { hash, bytes } of blobs) putBlob(store, tenant, hash, bytes)
    },

    async getBlobs(tenant, hashes) {
      checkOpen()
      const found = new Map<string, Uint8Array>()
      for (const hash of hashes) {
        const blob = findBlob(store, tenant, hash)
        if (blob !== undefined) found.set(hash, new Uint8Array(blob.bytes))
      }
      return found
    },

    async listBlobs(tenant, { after, limit }) {
      checkOpen()
      return listBlobs(store, tenant, after, limit)
    },

    async removeBlob(tenant, hash, touchedAt) {
      checkOpen()
      return removeBlob(store, tenant, hash, touchedAt)
    },

    async writeItems(tenant, writes, now) {
      checkOpen()
      checkItemWrites(writes)
      return writes.map((write) => writeItem(store, tenant, write, now))
    },

    async readItems(tenant, space, keys, options) {
      checkOpen()
      return readItems(store, tenant, space, keys, options)
    },

    async scanItems(tenant, space, scan, now) {
      checkOpen()
      return scanItems(store, tenant, space, scan, now)
    },

    async listSpaces(tenant, { after, limit }) {
      checkOpen()
      return listSpaces(store, tenant, after, limit)
    },

    async sweepItems(now, limit) {
      checkOpen()
      return sweepItems(store, now, limit)
    },

    // Carried writes travel with the append here, so only what wraps this driver calls it.
    async applyWrites(log, incarnation, writes, { upTo, redo }) {
      const found = find(log)
      checkItemWrites(writes)
      if (found?.incarnation !== incarnation) return false
      for (const write of writes) applyWrite(store, log.tenant, incarnation, write, redo)
      found.applied = Math.max(found.applied, upTo)
      return true
    },

    async listTenants() {
      checkOpen()
      return [...new Set([...store.threads.keys(), ...store.blobs.keys(), ...store.items.keys()])]
    },

    async listTombstones() {
      checkOpen()
      return { tombstones: walkTombstones(store) }
    },

    async bury(tenant, thread, tombstone) {
      checkOpen()
      if ((findThread(store, tenant, thread)?.branches.size ?? 0) > 0) return false
      ensureThread(store, tenant, thread).tombstone = { ...tombstone }
      return true
    },

    async takeDue(query) {
      checkOpen()
      return takeDue(store, query, (log) => headOf(store, log))
    },

    async positions(logs) {
      checkOpen()
      return logs.map((key) => {
        const log = findLog(store, key)
        return log && { incarnation: log.incarnation, seq: lastEntry(log).seq }
      })
    },

    // In a microtask, because a listener that throws or appends must not do so in the middle of another's append.
    publish(topic, message) {
      if (Buffer.byteLength(message) > MESSAGE_BYTES) return
      queueMicrotask(() => {
        for (const listener of store.topics.get(topic) ?? []) listener(message)
      })
    },
    hasSubscribers: (topic) => store.topics.has(topic),
    async subscribe(topic, heard) {
      checkOpen()
      // Wrapped: the same function listening twice is two listeners, and ending one leaves the other.
      const listener = (message: string | undefined) => heard(message)
      const listeners = store.topics.get(topic) ?? new Set()
      store.topics.set(topic, listeners.add(listener))
      const end = async () => {
        listeners.delete(listener)
        if (listeners.size === 0 && store.topics.get(topic) === listeners) store.topics.delete(topic)
        own.delete(end)
      }
      own.add(end)
      return end
    },

    async close() {
      closed = true
      for (const end of own) await end()
    },
  }
}

/** Heads of the logs that a query can mean, narrowed by tenant and thread where it names them. */
function* walkHeads(store: MemoryStore, query: HeadQuery): Generator<Head> {
  const now = store.clock.monotonic()
  const tenants: Iterable<TenantId> = query.tenant === undefined ? store.threads.keys() : [query.tenant]
  for (const tenant of tenants) {
    const threads = store.threads.get(tenant)
    if (threads === undefined) continue
    const ids: Iterable<ThreadId> = query.thread === undefined ? threads.keys() : [query.thread]
    for (const id of ids) {
      for (const log of threads.get(id)?.branches.values() ?? []) yield headOf(store, log, now)
    }
  }
}

function walkTombstones(store: MemoryStore): NamedTombstone[] {
  const found: NamedTombstone[] = []
  for (const [tenant, threads] of store.threads) {
    for (const [thread, { tombstone }] of threads) if (tombstone) found.push({ tenant, thread, ...tombstone })
  }
  return found
}
