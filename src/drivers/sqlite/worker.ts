import { parentPort, workerData } from 'node:worker_threads'
import type { Hash } from '../../log/contract.js'
import { appendOne } from './append.js'
import { unpackAppends } from './parcel/append-parcel.js'
import { getBlobs, listBlobs, putBlobs, removeBlob, touchBlobs } from './blobs.js'
import { type Connection, dataVersion, openConnection, openSecondConnection } from './connection/connection.js'
import { takeDue } from './index/due.js'
import { loadSqlite } from './connection/engine.js'
import { type PackedTail, readTail } from './entries.js'
import { captureFailure, SqliteFailure } from './connection/failure.js'
import { listSpaces, readItems, scanItems } from './items/item-reads.js'
import { sweepItems, writeItems } from './items/item-writes.js'
import { type Instant, instantOf } from './rows/lease.js'
import {
  bury,
  eraseLogs,
  listTenants,
  listTombstones,
  pruneLog,
  readTombstone,
  reindexLog,
  renewLease,
} from './logs.js'
import { migrate } from './connection/migrate.js'
import { MIGRATIONS } from './migrations/list.js'
import { type Parcel, transferOf } from './parcel/parcel.js'
import type { CallName, Calls, OpenedDatabase, Reply, Request, SessionCall, WorkerSettings } from './protocol.js'
import { READS } from './reads.js'
import { sameFileCheck } from './connection/same-file.js'
import { isSessionCall, UserSession } from './transact/user-session.js'

/** A call with the worker's side of it: the connection, and the time when it is asked for. */
type Handlers = {
  readonly [Name in Exclude<CallName, 'open' | 'close' | 'begin' | SessionCall>]: (
    db: Connection,
    now: () => Instant,
    ...args: Parameters<Calls[Name]>
  ) => ReturnType<Calls[Name]>
}

const handlers: Handlers = {
  ...READS,
  append: (db, now, batch) => {
    const tasks = unpackAppends(batch)
    return db.write(() => {
      // Read once the lock is held: a lease granted while we waited for it is not in our future.
      const instant = now()
      return tasks.map((task) => appendOne(db, task, instant))
    })
  },
  tails: (db, now, logs) => logs.map((log) => readTail(db, log, null, now())),
  takeDue: (db, now, query) => takeDue(db, query, now),
  dataVersion: (db) => dataVersion(db, false),
  renew: (db, now, log, incarnation, epoch, ms) => renewLease(db, log, incarnation, epoch, ms, now),
  prune: (db, _, log, incarnation, seq, standIn) => pruneLog(db, log, incarnation, seq, standIn),
  erase: (db, _, request) => eraseLogs(db, request),
  scrub: (db) => db.truncateLog(),
  tombstone: (db, _, tenant, thread) => readTombstone(db, tenant, thread),
  reindex: (db, _, log, expect, index, labels) => reindexLog(db, log, expect, index, labels),
  touchBlobs: (db, now, tenant, hashes) => touchBlobs(db, tenant, hashes, now),
  putBlobs: (db, now, tenant, blobs) => putBlobs(db, tenant, blobs, now),
  getBlobs: (db, _, tenant, hashes) => getBlobs(db, tenant, hashes),
  listBlobs: (db, _, tenant, after, limit) => listBlobs(db, tenant, after, limit),
  removeBlob: (db, _, tenant, hash, touchedAt) => removeBlob(db, tenant, hash, touchedAt),
  // Items go by the time that the caller gives, not by the reading that comes with a call.
  writeItems: (db, _, tenant, writes, now) => writeItems(db, tenant, writes, now),
  readItems: (db, _, tenant, space, keys, now, extendTo) => readItems(db, tenant, space, keys, now, extendTo),
  scanItems: (db, _, tenant, space, scan, now) => scanItems(db, tenant, space, scan, now),
  listSpaces: (db, _, tenant, after, limit) => listSpaces(db, tenant, after, limit),
  sweepItems: (db, _, now, limit) => sweepItems(db, now, limit),
  listTenants: (db) => listTenants(db),
  listTombstones: (db, _, after) => listTombstones(db, after),
  bury: (db, _, tenant, thread, tombstone) => bury(db, tenant, thread, tombstone),
}

/** Those that take the write lock, which a transaction of the user's holds: they wait for its end. */
const WRITES = new Set<CallName>([
  'append',
  'renew',
  'takeDue',
  'prune',
  'erase',
  'scrub',
  'reindex',
  'touchBlobs',
  'putBlobs',
  'removeBlob',
  'writeItems',
  'sweepItems',
  'bury',
  'begin',
])

interface Opened {
  readonly db: Connection
  readonly session: UserSession
  /** Whether others may read while one writes. */
  readonly readsGoOn: boolean
  isSameFile(): boolean
}

async function open(settings: WorkerSettings): Promise<Opened> {
  // Node 22 and 24 call their SQLite experimental on stderr; this thread has no other warnings to show.
  process.removeAllListeners('warning')
  const openFile = await loadSqlite()
  const db = await openConnection(openFile, settings)
  try {
    migrate(db, MIGRATIONS, settings.now)
    const session = new UserSession(() => openSecondConnection(openFile, settings))
    const readsGoOn = db.pragma('journal_mode') === 'wal'
    return { db, session, readsGoOn, isSameFile: sameFileCheck(settings.path) }
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

function describe(db: Connection): OpenedDatabase {
  return {
    journalMode: String(db.pragma('journal_mode')),
    synchronous: Number(db.pragma('synchronous')),
    sqliteVersion: String(db.get('SELECT sqlite_version() AS v')?.['v']),
  }
}

async function main(): Promise<void> {
  const port = parentPort
  if (port === null) throw new Error("This file is the SQLite driver's worker thread and does nothing by itself.")
  const settings = workerData as WorkerSettings
  let opened: Opened
  try {
    opened = await open(settings)
    port.postMessage([0, describe(opened.db)] satisfies Reply)
  } catch (thrown) {
    port.postMessage([0, null, captureFailure(thrown, 'nothing').failure] satisfies Reply)
    return
  }
  const waiting: Request[] = []
  const reply = (request: Request): void => {
    const answered = answer(opened, settings, request)
    port.postMessage(answered, buffersOf(request[1], answered))
    if (request[1] === 'close') port.close()
  }
  const replyWaiting = (): void => {
    while (waiting.length > 0 && !opened.session.isOpen) reply(waiting.shift() as Request)
  }
  opened.session.onTimeout = replyWaiting
  port.on('message', (request: Request) => {
    if (opened.session.isOpen && mustWait(opened, request)) waiting.push(request)
    else reply(request)
    replyWaiting()
  })
}

function mustWait({ readsGoOn }: Opened, request: Request): boolean {
  return takesLock(request) || (!readsGoOn && request[1] in handlers)
}

// Reading items writes when it extends their expiry, which is its last argument.
function takesLock([, call, , , , ...args]: Request): boolean {
  return WRITES.has(call) || (call === 'readItems' && args.at(-1) !== null)
}

function answer(opened: Opened, settings: WorkerSettings, request: Request): Reply {
  const { db, session } = opened
  const [id, call] = request
  try {
    if (call === 'close') {
      session.close()
      db.close()
      return [id, null]
    }
    // Also before a read: what is found in a file that is gone must not count as written.
    if (!opened.isSameFile()) {
      if (isSessionCall(call)) session.abandon()
      throw new SqliteFailure({ kind: 'file-gone', written: 'nothing' })
    }
    const reply: Reply = [id, perform(opened, settings, request)]
    if ((takesLock(request) || isSessionCall(call)) && !opened.isSameFile())
      throw new SqliteFailure({ kind: 'file-gone', written: 'unknown' })
    return reply
  } catch (thrown) {
    return [id, null, captureFailure(thrown, 'nothing').failure]
  }
}

function perform({ db, session }: Opened, settings: WorkerSettings, request: Request): unknown {
  const [id, call, wall, monotonic, sentAt, ...args] = request
  const now = (): Instant => instantOf({ wall, monotonic, sentAt }, settings.bootId, settings.ownClock)
  if (call === 'begin') return session.begin(id, ...(args as Parameters<Calls['begin']>))
  if (isSessionCall(call)) return session.answer(call, now, args)
  const handle = handlers[call as keyof Handlers] as (...args: unknown[]) => unknown
  return handle(db, now, ...args)
}

/** What is handed over instead of copied; the worker is done with it. */
function buffersOf(call: CallName, [, value]: Reply): ArrayBuffer[] {
  if (value === null) return []
  switch (call) {
    case 'tail':
      return transferOf((value as PackedTail).entries)
    case 'tails':
      return (value as (PackedTail | null)[]).flatMap((tail) => (tail === null ? [] : transferOf(tail.entries)))
    case 'read':
    case 'headers':
    case 'readItems':
    case 'scanItems':
      return transferOf(value as Parcel)
    case 'getBlobs':
      return (value as [Hash, Uint8Array<ArrayBuffer>][]).map(([, bytes]) => bytes.buffer)
    default:
      return []
  }
}

await main()
