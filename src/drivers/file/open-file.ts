import { resolve } from 'node:path'
import type { Clock } from '../../core/clock.js'
import {
  ClosedError,
  type HoldfastError,
  InvalidOptionError,
  isHoldfastError,
  StorageError,
} from '../../core/errors.js'
import { systemClock } from '../../core/system-clock.js'
import type { Append, AppendResult, Capabilities, Driver, LogKey } from '../../log/contract.js'
import { checkBatch } from '../shared/checks.js'
import { appendToLog } from './append.js'
import { getBlob, listBlobs, putBlob, removeBlob, touchBlob } from './blobs.js'
import { type FaultHook, openDisk } from './disk.js'
import { toStorageError } from './disk-errors.js'
import { probeDurability } from './durability.js'
import { readEntries, readHeaders, readTail } from './entries.js'
import { eraseLogs } from './erase.js'
import { queryHeads } from './heads.js'
import { headOf, renewLease } from './lease.js'
import { findLog } from './logs.js'
import { pruneLog, reindexLog } from './prune.js'
import { openRoot } from './root.js'
import { type FileStore, logName, RecentMap, Turns } from './store.js'
import { findThreadOf } from './threads.js'

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
  parallelBatches: 4,
  maxBatch: 64,
}

/** Appends of one batch, and blobs of one call, that are on their way to the disk at once. */
const AT_ONCE = 8
/** Logs and threads whose newest record is remembered. */
const REMEMBERED = 10_000

/** Opens a folder as a store, and makes it if there is none. Any number of processes may have it open. */
export async function openFile(folder: string, options: FileOptions = {}): Promise<Driver> {
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

function createDriver(store: FileStore, durability: Driver['durability']): Driver {
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
    durability,

    append: (batch) =>
      run(async () => {
        checkBatch(batch)
        return appendAll(store, batch)
      }),
    tail: (log, upTo) => run(() => readTail(store, log, upTo)),
    read: (log, from, limit) => run(() => readEntries(store, log, from, limit)),
    headers: (log, options) => run(() => readHeaders(store, log, options)),
    head: (log) =>
      run(async () => {
        const state = await findLog(store, log)
        return state && headOf(store, state)
      }),
    renew: (log, epoch, ms) => write(log, () => renewLease(store, log, epoch, ms)),
    heads: (query) => run(() => queryHeads(store, query)),
    prune: (log, incarnation, seq) => write(log, () => pruneLog(store, log, incarnation, seq)),
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

    async close() {
      closed = true
      await Promise.allSettled(underWay)
    },
  }
}

// A batch whose members fared differently is only reported as unwritten if that is true of each.
async function appendAll(store: FileStore, batch: readonly Append[]): Promise<AppendResult[]> {
  const results = await mapSome(batch, async (append) => {
    try {
      return await store.writers.take(logName(append.log), () => appendToLog(store, append))
    } catch (error) {
      return { status: 'failed', error: toStorageError(error, 'nothing') } as const
    }
  })
  const failed = results.filter((result) => result.status === 'failed')
  const [first] = failed
  if (first === undefined) return results.filter((result) => result.status !== 'failed')
  const isNothing = ({ error }: typeof first) => isHoldfastError(error) && error.data.written === 'nothing'
  if (batch.length === 1 || (failed.length === batch.length && failed.every(isNothing))) throw first.error
  throw doubtful(first.error)
}

function doubtful(error: unknown): HoldfastError {
  const message = error instanceof Error ? error.message : String(error)
  return new StorageError(
    `Some appends of a batch landed, and one did not: ${message}`,
    'Look for each append in its log before repeating it.',
    { reason: 'partial-batch', written: 'unknown', retryable: true, cause: error },
  )
}

/** All of them, a few at a time, in their order. */
async function mapSome<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const lane = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as Item)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, lane))
  return results
}
