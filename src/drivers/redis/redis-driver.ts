import { ClosedError } from '../../core/errors.js'
import type { Capabilities, Driver, LogKey, Survives } from '../../log/contract.js'
import type { ItemDriver } from '../../log/store-contract.js'
import { checkBatch, checkStandIn } from '../shared/checks.js'
import { checkItemWrites } from '../shared/item-checks.js'
import { readTogether } from '../shared/read-together.js'
import { appendBatch } from './append.js'
import { Channel } from './channel.js'
import { bury, listTenants, listTombstones } from './census.js'
import { getBlobs, listBlobs, putBlobs, removeBlob, touchBlobs } from './blobs.js'
import { takeDue } from './index/due.js'
import { toDriverError } from './server/errors.js'
import { queryHeads, readPositions, readTime } from './index/heads.js'
import { listSpaces, readItems, scanItems } from './items/item-reads.js'
import { sweepItems } from './items/item-sweep.js'
import { applyWrites, writeItems } from './items/item-writes.js'
import {
  eraseLogs,
  pruneLog,
  readEntries,
  readHead,
  readHeaders,
  readTail,
  readTails,
  readTombstone,
  reindexLog,
  renewLease,
} from './logs.js'
import { scrubServers } from './server/scrub.js'
import type { Store } from './store.js'

const CAPABILITIES: Capabilities = {
  multiProcess: true,
  persistent: true,
  storeAtomic: false,
  transactions: false,
  watch: true,
  messages: true,
  parallelBatches: 2,
  maxBatch: 256,
}

/** The driver of an open store. `release` cleans up what was set up around it. */
export function createRedisDriver(store: Store, durability: Survives, release: () => void): Driver & ItemDriver {
  const { connection } = store
  const channel = new Channel(store)
  const newestTail = readTogether((logs: readonly LogKey[]) => readTails(store, logs))

  function checkOpen(): void {
    if (connection.isClosed) throw new ClosedError('The redis driver')
    if (connection.lost !== undefined) throw connection.lost
  }

  return {
    name: 'redis',
    capabilities: CAPABILITIES,
    survives: durability,

    async append(batch) {
      checkOpen()
      checkBatch(batch)
      return appendBatch(store, batch)
    },
    tail: (log, upTo) => (upTo === undefined ? newestTail(log) : readTail(store, log, upTo)),
    read: (log, from, limit) => readEntries(store, log, from, limit),
    confirm: (log) => connection.confirm(store.keys.log(log)),
    headers: (log, options) => readHeaders(store, log, options),
    head: (log) => readHead(store, log),
    renew: (log, incarnation, epoch, ms) => renewLease(store, log, incarnation, epoch, ms),
    heads: (query) => queryHeads(store, query),
    async prune(log, incarnation, seq, standIn) {
      checkStandIn(seq, standIn)
      return pruneLog(store, log, incarnation, seq, standIn)
    },
    erase: (request) => eraseLogs(store, request),
    async scrub() {
      checkOpen()
      return scrubServers(store.connection.client)
    },
    tombstone: (tenant, thread) => readTombstone(store, tenant, thread),
    reindex: (log, expect, index) => reindexLog(store, log, expect, index),

    async touchBlobs(tenant, hashes) {
      checkOpen()
      return touchBlobs(store, tenant, hashes)
    },
    async putBlobs(tenant, blobs) {
      checkOpen()
      await putBlobs(store, tenant, blobs)
    },
    async getBlobs(tenant, hashes) {
      checkOpen()
      return getBlobs(store, tenant, hashes)
    },
    async listBlobs(tenant, options) {
      checkOpen()
      return listBlobs(store, tenant, options)
    },
    removeBlob: (tenant, hash, touchedAt) => removeBlob(store, tenant, hash, touchedAt),

    async writeItems(tenant, writes, now) {
      checkOpen()
      checkItemWrites(writes)
      return writeItems(store, tenant, writes, now)
    },
    async readItems(tenant, space, keys, options) {
      checkOpen()
      return readItems(store, tenant, space, keys, options)
    },
    async scanItems(tenant, space, scan, now) {
      checkOpen()
      return scanItems(store, tenant, space, scan, now)
    },
    async listSpaces(tenant, options) {
      checkOpen()
      return listSpaces(store, tenant, options)
    },
    async sweepItems(now, limit) {
      checkOpen()
      return sweepItems(store, now, limit)
    },
    async applyWrites(log, incarnation, writes, options) {
      checkOpen()
      checkItemWrites(writes)
      return applyWrites(store, log, incarnation, writes, options)
    },

    async now() {
      checkOpen()
      return readTime(store)
    },

    async takeDue(query) {
      checkOpen()
      return takeDue(store, query)
    },
    async positions(logs) {
      checkOpen()
      return readPositions(store, logs)
    },
    publish: (topic, message) => channel.publish(topic, message),
    hasSubscribers: (topic) => channel.hasSubscribers(topic),
    async subscribe(topic, heard) {
      checkOpen()
      try {
        return await channel.subscribe(topic, heard)
      } catch (error) {
        throw toDriverError(error, false)
      }
    },

    async listTenants() {
      checkOpen()
      return listTenants(store)
    },
    async listTombstones({ cursor }) {
      checkOpen()
      return listTombstones(store, cursor)
    },
    bury: (tenant, thread, tombstone) => bury(store, tenant, thread, tombstone),

    async close() {
      release()
      await connection.settle()
      await Promise.all([connection.close(), channel.close()])
    },
  }
}
