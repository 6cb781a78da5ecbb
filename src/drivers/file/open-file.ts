import { resolve } from 'node:path'
import type { Clock } from '../../core/time/clock.js'
import { ClosedError, InvalidOptionError } from '../../core/errors.js'
import { systemClock } from '../../core/time/system-clock.js'
import type { Capabilities, Driver, LogKey } from '../../log/contract.js'
import type { ItemDriver } from '../../log/store-contract.js'
import { checkBatch } from '../shared/checks.js'
import { checkItemWrites } from '../shared/item-checks.js'
import { appendToLog } from './append.js'
import { bury, listTenants, listTombstones } from './census.js'
import { applyWrites } from './apply-writes.js'
import { mapSome, writeEach } from './batch.js'
import { getBlob, listBlobs, putBlob, removeBlob, touchBlob } from './blobs.js'
import { type FaultHook, openDisk } from './disk/disk.js'
import { toStorageError } from './disk/disk-errors.js'
import { probeDurability } from './disk/durability.js'
import { readEntries, readHeaders, readTail } from './entries.js'
import { eraseLogs } from './erase.js'
import { queryHeads } from './heads.js'
import { placeOf } from './items/item-chain.js'
import { listSpaces, scanItems } from './items/item-scan.js'
import { sweepItems } from './items/item-sweep.js'
import { readItem, writeItem } from './items/item-writes.js'
import { headOf, renewLease } from './records/lease.js'
import { findLog, flushLog } from './records/logs.js'
import { pruneLog, reindexLog } from './prune.js'
import { openRoot } from './disk/root.js'
import { type FileStore, logName, RecentMap, Turns } from './store.js'
import { findThreadOf } from './records/threads.js'

export interface FileOptions {
  readonly clock?: Clock
  /** Flush every append to the disk before it is acknowledged. Default true. */
  readonly fsync?: boolean
  /** Internal, for tests: see `FaultHook`. */
  readonly faults?: FaultHook
}

const CAPABILITIES: Capabilities = {
  multiProcess: true,
  persistent: true,
  storeAtomic: false,
  transactions: false,
  watch: false,
  messages: false,
  parallelBatches: 4,
  maxBatch: 64,
}

/** Logs and threads whose newest record is remembered, and items with long keys. */
const REMEMBERED = 10_000
const LOOK_IN_LOG = 'Look for each append in its log before repeating it.'
const LOOK_AT_ITEM = 'Look at each item before repeating its write.'

/** Opens a folder as a store, and creates it if there is none. Any number of processes may have it open. */
export async function openFile(folder: string, options: FileOptions = {}): Promise<Driver & ItemDriver> {
  if (typeof folder !== 'string' || folder === '' || folder.includes('\0')) {
    throw new InvalidOptionError('folder', 'is not a path', 'Pass the path of a folder.')
  }
  const clock = options.clock ?? systemClock()
  const fsync = options.fsync ?? true
  const root = resolve(folder)
  const disk = openDisk({ root, bootId: clock.bootId, fsync, faults: options.faults })
  const store: FileStore = {
    disk,
    clock,
    threads: new RecentMap(REMEMBERED),
    logs: new RecentMap(REMEMBERED),
    longNames: new RecentMap(REMEMBERED),
    writers: new Turns(),
    lastTouch: 0,
  }
  try {
    await openRoot(disk)
    return createDriver(store, await probeDurability(root, fsync))
  } catch (error) {
    throw toStorageError(error, 'nothing')
  }
}

function createDriver(store: FileStore, durability: Driver['survives']): Driver & ItemDriver {
  const underWay = new Set<Promise<unknown>>()
  let closed = false

  async function run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (closed) throw new ClosedError('The file driver')
    const promise = work()
    underWay.add(promise)
    try {
      return await promise
    } catch (error) {
      throw toStorageError(error, 'nothing')
    } finally {
      underWay.delete(promise)
    }
  }

  const write = <Result>(log: LogKey, work: () => Promise<Result>) => run(() => store.writers.take(logName(log), work))

  return {
    name: 'file',
    capabilities: CAPABILITIES,
    survives: durability,

    append: (batch) =>
      run(async () => {
        checkBatch(batch)
        return writeEach(batch, LOOK_IN_LOG, (append) =>
          store.writers.take(logName(append.log), () => appendToLog(store, append)),
        )
      }),
    tail: (log, upTo) => run(() => readTail(store, log, upTo)),
    read: (log, from, limit) => run(() => readEntries(store, log, from, limit)),
    confirm: (log) => run(() => flushLog(store, log)),
    headers: (log, options) => run(() => readHeaders(store, log, options)),
    head: (log) =>
      run(async () => {
        const state = await findLog(store, log)
        return state && headOf(store, state)
      }),
    renew: (log, incarnation, epoch, ms) => write(log, () => renewLease(store, log, incarnation, epoch, ms)),
    heads: (query) => run(() => queryHeads(store, query)),
    prune: (log, incarnation, seq, standIn) => write(log, () => pruneLog(store, log, incarnation, seq, standIn)),
    erase: (request) => run(() => eraseLogs(store, request)),
    tombstone: (tenant, thread) =>
      run(async () => (await findThreadOf(store, tenant, thread))?.record.tombstone ?? undefined),
    reindex: (log, expect, index) => write(log, () => reindexLog(store, log, expect, index)),

    touchBlobs: (tenant, hashes) =>
      run(async () => {
        const there = await mapSome(hashes, (hash) => touchBlob(store, tenant, hash))
        return hashes.filter((_, i) => !there[i])
      }),
    putBlobs: (tenant, blobs) =>
      run(async () => {
        await mapSome(blobs, ({ hash, bytes }) => putBlob(store, tenant, hash, bytes))
      }),
    getBlobs: (tenant, hashes) =>
      run(async () => {
        const found = await mapSome(hashes, async (hash) => [hash, await getBlob(store, tenant, hash)] as const)
        return new Map(found.filter((pair): pair is [string, Uint8Array] => pair[1] !== undefined))
      }),
    listBlobs: (tenant, options) => run(() => listBlobs(store, tenant, options)),
    removeBlob: (tenant, hash, touchedAt) => run(() => removeBlob(store, tenant, hash, touchedAt)),

    writeItems: (tenant, writes, now) =>
      run(async () => {
        checkItemWrites(writes)
        return writeEach(writes, LOOK_AT_ITEM, (write) => writeItem(store, tenant, write, now))
      }),
    readItems: (tenant, space, keys, { now, extendTo }) =>
      run(async () => {
        const places = [...new Set(keys)].map((key) => placeOf(store, tenant, space, key))
        const found = await mapSome(places, (place) => readItem(store, place, now, extendTo))
        return found.filter((item) => item !== undefined)
      }),
    scanItems: (tenant, space, scan, now) => run(() => scanItems(store, tenant, space, scan, now)),
    listSpaces: (tenant, options) => run(() => listSpaces(store, tenant, options)),
    sweepItems: (now, limit) => run(() => sweepItems(store, now, limit)),
    applyWrites: (log, incarnation, writes, options) =>
      run(() => applyWrites(store, log, incarnation, writes, options)),

    listTenants: () => run(() => listTenants(store)),
    listTombstones: () => run(async () => ({ tombstones: await listTombstones(store) })),
    bury: (tenant, thread, tombstone) => run(() => bury(store, tenant, thread, tombstone)),

    async close() {
      closed = true
      await Promise.allSettled(underWay)
    },
  }
}
