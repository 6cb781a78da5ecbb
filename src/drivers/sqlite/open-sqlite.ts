import { resolve } from 'node:path'
import type { Clock } from '../../core/time/clock.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { systemClock } from '../../core/time/system-clock.js'
import type { Capabilities, Driver, LogKey, Tail } from '../../log/contract.js'
import { checkBatch, checkStandIn } from '../shared/checks.js'
import { cursorAfter, parseCursor } from '../shared/cursor.js'
import { checkItemWrites } from '../shared/item-checks.js'
import { readTogether } from '../shared/read-together.js'
import type { PackedResult } from './append.js'
import { indexTaskOf, labelsOf, packAppends } from './parcel/append-parcel.js'
import { DirectConnection } from './direct.js'
import { describeDurability } from './connection/durability.js'
import { type PackedTail, unpackEntries, unpackHeaders } from './entries.js'
import { explainFailure } from './connection/explain-failure.js'
import type { SqliteFailure } from './connection/failure.js'
import { unpackHead } from './rows/head-row.js'
import { packItemWrites, unpackItems } from './parcel/item-parcel.js'
import { transferOf } from './parcel/parcel.js'
import type { Calls, WorkerSettings } from './protocol.js'
import type { ReadName } from './reads.js'
import { ChangeWatch } from './change-watch.js'
import { packBlobs, transact, unpackResult } from './transact/transact.js'
import { WorkerLink } from './worker-link.js'

export interface SqliteOptions {
  /**
   * 'full' (default): an acknowledged append survives a power loss. 'normal': it survives the end of the process, and
   * costs no disk sync.
   */
  readonly synchronous?: 'full' | 'normal'
  /** How long to wait for other writing processes before giving up. Default 10,000. */
  readonly busyTimeoutMs?: number
  /** Decides leases and the age of blobs. Default: the machine's. */
  readonly clock?: Clock
}

const CAPABILITIES: Capabilities = {
  multiProcess: true,
  persistent: true,
  storeAtomic: true,
  transactions: true,
  watch: true,
  messages: false,
  // One after another, but the second is there when the first is done.
  parallelBatches: 2,
  maxBatch: 512,
}

const BUSY_TIMEOUT_MS = 10_000
const MAX_BUSY_TIMEOUT_MS = 2 ** 31 - 1

/**
 * The embedded default: one file, its own thread, one transaction per batch. The file is created if it doesn't exist;
 * its folder is not.
 */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<Driver> {
  const { synchronous = 'full', busyTimeoutMs = BUSY_TIMEOUT_MS } = options
  checkOptions(path, synchronous, busyTimeoutMs)
  const clock = options.clock ?? systemClock()
  const settings: WorkerSettings = {
    // Absolute, so that a later chdir does not matter and nothing in the name is taken for a URI.
    path: resolve(path),
    synchronous,
    busyTimeoutMs,
    bootId: clock.bootId,
    ownClock: options.clock === undefined,
    now: clock.now(),
  }
  const { link, database } = await WorkerLink.open(settings, clock)
  const direct = await DirectConnection.open(settings, clock, database)
  const changes = new ChangeWatch(async () => {
    const workers = await link.call('dataVersion', [])
    return direct === undefined ? [workers] : [workers, direct.dataVersion()]
  })
  // Behind others that wait for the worker, this one waits for them too: what is asked first is answered first.
  const look = async <Name extends ReadName>(
    name: Name,
    args: Parameters<Calls[Name]>,
  ): Promise<ReturnType<Calls[Name]>> => {
    const seen = link.isIdle ? direct?.read(name, args) : undefined
    if (seen === undefined) return link.call(name, args)
    await turn()
    return seen.found
  }
  const newestTail = readTogether(async (logs: readonly LogKey[]) => {
    const [only] = logs
    const single = only !== undefined && logs.length === 1
    const found = single ? [await look('tail', [only, null])] : await link.call('tails', [logs])
    return found.map((tail) => () => unpackTail(tail))
  })

  return {
    name: 'sqlite',
    capabilities: CAPABILITIES,
    survives: describeDurability(database),

    async append(batch) {
      checkBatch(batch)
      // Behind others that wait for the worker, this one waits for them too: what is asked first is answered first.
      if (direct !== undefined && link.isIdle && direct.takes(batch)) {
        let results: PackedResult[] | undefined
        try {
          results = direct.append(batch)
        } catch (thrown) {
          throw await explainFailure((thrown as SqliteFailure).failure, settings.path)
        }
        if (results !== undefined) {
          if (!direct.mayGoOn) await turn()
          return results.map(unpackResult)
        }
      }
      const parcel = packAppends(batch)
      const results = await link.call('append', [parcel], transferOf(parcel))
      // Node takes messages for as long as there are some. Two threads that answer each other as quickly as this would
      // keep everything else on this one waiting.
      await turn()
      return results.map(unpackResult)
    },

    async tail(log, upTo) {
      return upTo === undefined ? newestTail(keyOf(log)) : unpackTail(await look('tail', [keyOf(log), upTo]))
    },

    async read(log, from, limit) {
      return unpackEntries(await look('read', [keyOf(log), from, rowLimit(limit)]))
    },

    async headers(log, { before, limit }) {
      return unpackHeaders(await look('headers', [keyOf(log), before ?? null, rowLimit(limit)]))
    },

    async head(log) {
      const found = await look('head', [keyOf(log)])
      return found === null ? undefined : unpackHead(found)
    },

    async renew(log, incarnation, epoch, ms) {
      return link.call('renew', [keyOf(log), incarnation, epoch, ms])
    },

    async heads({ limit, cursor, ...query }) {
      const after = cursor === undefined ? null : parseCursor(cursor)
      // One more than the page tells whether another page follows.
      const task = { query, after, limit: rowLimit(limit + 1) }
      // A thread has few branches; other queries may look through everything there is.
      const packed = await (query.thread === undefined ? link.call('heads', [task]) : look('heads', [task]))
      const heads = packed.slice(0, limit).map(unpackHead)
      const last = heads.at(-1)
      if (packed.length <= limit || last === undefined) return { heads }
      return { heads, cursor: cursorAfter(last, { ...query, limit }) }
    },

    async prune(log, incarnation, seq, standIn) {
      checkStandIn(seq, standIn)
      const { hash, header, body } = standIn ?? {}
      const given = hash === undefined || !header || !body ? null : { hash, header, body }
      const removed = await link.call('prune', [keyOf(log), incarnation, seq, given])
      return removed === 'conflict' ? removed : { removed }
    },

    async erase(request) {
      const erased = await link.call('erase', [request])
      return erased === 'conflict' ? erased : { erased }
    },

    async scrub() {
      const complete = await link.call('scrub', [])
      const note = complete
        ? 'SQLite overwrote it with zeros and emptied its write-ahead log.'
        : 'SQLite overwrote it with zeros, but its write-ahead log may still hold it: another process reads. Erase again.'
      return { complete, note }
    },

    async tombstone(tenant, thread) {
      return (await link.call('tombstone', [tenant, thread])) ?? undefined
    },

    async reindex(log, { incarnation, seq, hash, epoch }, index) {
      const expect = { incarnation, seq, hash, epoch }
      return link.call('reindex', [keyOf(log), expect, indexTaskOf(index), labelsOf(index)])
    },

    async touchBlobs(tenant, hashes) {
      return link.call('touchBlobs', [tenant, hashes])
    },

    async putBlobs(tenant, blobs) {
      const packed = packBlobs(blobs)
      await link.call('putBlobs', [tenant, packed], transferOf(packed))
    },

    async getBlobs(tenant, hashes) {
      return new Map(await link.call('getBlobs', [tenant, hashes]))
    },

    async listBlobs(tenant, { after, limit }) {
      return link.call('listBlobs', [tenant, after ?? null, rowLimit(limit)])
    },

    async removeBlob(tenant, hash, touchedAt) {
      return link.call('removeBlob', [tenant, hash, touchedAt])
    },

    async writeItems(tenant, writes, now) {
      checkItemWrites(writes)
      const parcel = packItemWrites(writes)
      return link.call('writeItems', [tenant, parcel, now], transferOf(parcel))
    },

    async readItems(tenant, space, keys, { now, extendTo }) {
      return unpackItems(await link.call('readItems', [tenant, space, keys, now, extendTo ?? null]))
    },

    async scanItems(tenant, space, scan, now) {
      const bounded = { ...scan, limit: rowLimit(scan.limit) }
      return unpackItems(await link.call('scanItems', [tenant, space, bounded, now]))
    },

    async listSpaces(tenant, { after, limit }) {
      return link.call('listSpaces', [tenant, after ?? null, limit])
    },

    async sweepItems(now, limit) {
      return link.call('sweepItems', [now, rowLimit(limit)])
    },

    async listTenants() {
      return (await link.call('listTenants', [])) as TenantId[]
    },

    async listTombstones({ cursor }) {
      const after = cursor === undefined ? null : (JSON.parse(cursor) as [string, string])
      const tombstones = await link.call('listTombstones', [after])
      const last = tombstones.at(-1)
      return { tombstones, ...(last && { cursor: JSON.stringify([last.tenant, last.thread]) }) }
    },

    async bury(tenant, thread, { at, reason }) {
      return link.call('bury', [tenant, thread, { at, reason }])
    },

    async takeDue({ limit, ...rest }) {
      const query = { ...rest, limit: rowLimit(limit) }
      const { heads, ...page } = await link.call('takeDue', [query])
      return { ...page, heads: heads.map(unpackHead) }
    },

    async positions(logs) {
      return (await look('positions', [logs.map(keyOf)])).map((position) => position ?? undefined)
    },

    watchChanges(changed) {
      return changes.add(changed)
    },

    transact(work, options) {
      return transact(link, work, options.timeoutMs)
    },

    close() {
      changes.close()
      direct?.close()
      return link.close()
    },
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function unpackTail(found: PackedTail | null): Tail | undefined {
  return found === null ? undefined : { head: unpackHead(found.head), entries: unpackEntries(found.entries) }
}

// Callers may pass more than the key, such as a head; only the key crosses to the worker.
function keyOf<Key extends { tenant: unknown; thread: unknown; branch: unknown }>(log: Key): Key {
  const { tenant, thread, branch } = log
  return { tenant, thread, branch } as Key
}

// To SQLite a negative limit means all rows, and one without end is an error.
function rowLimit(limit: number): number {
  return Math.max(0, Math.min(limit, 2 ** 32))
}

function checkOptions(path: unknown, synchronous: unknown, busyTimeoutMs: unknown): void {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new InvalidOptionError('path', 'is not the name of a file', 'Pass a path such as "agents.db".')
  }
  if (path === ':memory:') {
    throw new InvalidOptionError(
      'path',
      'is ":memory:", which would vanish with its thread and could not be opened twice',
      'Use the memory driver ("memory:") for a store without a file.',
      { path },
    )
  }
  if (synchronous !== 'full' && synchronous !== 'normal') {
    throw new InvalidOptionError('synchronous', 'is neither "full" nor "normal"', 'Leave it out for "full".')
  }
  if (typeof busyTimeoutMs !== 'number' || !(busyTimeoutMs >= 0 && busyTimeoutMs <= MAX_BUSY_TIMEOUT_MS)) {
    throw new InvalidOptionError(
      'busyTimeoutMs',
      `must be a number of milliseconds from 0 to ${MAX_BUSY_TIMEOUT_MS}`,
      `Leave it out for ${BUSY_TIMEOUT_MS}.`,
    )
  }
}
