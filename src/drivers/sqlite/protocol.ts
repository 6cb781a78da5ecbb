import type { BlobInfo, DueQuery, EraseRequest, Expect, Hash, LogKey, Position, Tombstone } from '../../log/contract.js'
import type { NamedTombstone } from '../../log/copy-contract.js'
import type { ItemScan, ItemWriteResult } from '../../log/store-contract.js'
import type { PackedResult } from './append.js'
import type { IndexTask, Labels } from './parcel/append-parcel.js'
import type { ConnectionSettings } from './connection/connection.js'
import type { PackedDue } from './index/due.js'
import type { PackedTail } from './entries.js'
import type { Failure } from './connection/failure.js'
import type { PackedHead } from './rows/head-row.js'
import type { HeadsTask } from './index/heads.js'
import type { StandIn } from './logs.js'
import type { Parcel } from './parcel/parcel.js'
import type { SqlRows } from '../shared/run-transaction.js'
import type { SqlParam } from './connection/engine.js'

/** What the worker is started with. */
export interface WorkerSettings extends ConnectionSettings {
  readonly bootId: string
  /** The readings sent along are of the machine's own clock, which the worker can read on. */
  readonly ownClock: boolean
  readonly now: number
}

/** What the worker can be asked, one at a time, in the order it was asked. */
export interface Calls {
  /** Answered when the database is open; sent by the worker's own start. */
  open(): OpenedDatabase
  append(batch: Parcel): PackedResult[]
  tail(log: LogKey, upTo: number | null): PackedTail | null
  tails(logs: readonly LogKey[]): (PackedTail | null)[]
  read(log: LogKey, from: number, limit: number): Parcel
  headers(log: LogKey, before: number | null, limit: number): Parcel
  head(log: LogKey): PackedHead | null
  takeDue(query: DueQuery): PackedDue
  positions(logs: readonly LogKey[]): (Position | null)[]
  /** Another number than before when another connection, of any process, committed since. */
  dataVersion(): number
  renew(log: LogKey, incarnation: string, epoch: number, ms: number): boolean
  heads(task: HeadsTask): PackedHead[]
  prune(log: LogKey, incarnation: string, seq: number, standIn: StandIn | null): number | 'conflict'
  erase(request: EraseRequest): number | 'conflict'
  /** False while another reads or writes. */
  scrub(): boolean
  tombstone(tenant: string, thread: string): Tombstone | null
  reindex(log: LogKey, expect: Expect, index: IndexTask, labels: Labels): boolean
  touchBlobs(tenant: string, hashes: readonly Hash[]): Hash[]
  putBlobs(tenant: string, blobs: Parcel): void
  getBlobs(tenant: string, hashes: readonly Hash[]): [Hash, Uint8Array][]
  listBlobs(tenant: string, after: Hash | null, limit: number): BlobInfo[]
  removeBlob(tenant: string, hash: Hash, touchedAt: number): boolean
  writeItems(tenant: string, writes: Parcel, now: number): ItemWriteResult[]
  readItems(tenant: string, space: string, keys: readonly string[], now: number, extendTo: number | null): Parcel
  scanItems(tenant: string, space: string, scan: ItemScan, now: number): Parcel
  listSpaces(tenant: string, after: string | null, limit: number): string[]
  sweepItems(now: number, limit: number): number
  listTenants(): string[]
  listTombstones(after: readonly [string, string] | null): NamedTombstone[]
  bury(tenant: string, thread: string, tombstone: Tombstone): boolean
  /** Answered when the transaction has begun, with its number. Other calls that write wait until it ends. */
  begin(timeoutMs: number): number
  query(session: number, sql: string, params: readonly SqlParam[]): SqlRows
  touchBlobsIn(session: number, tenant: string, hashes: readonly Hash[]): Hash[]
  putBlobsIn(session: number, tenant: string, blobs: Parcel): void
  /** Appends and commits, or rolls back if the append does not land. */
  commit(session: number, append: Parcel): PackedResult
  rollBack(session: number): void
  close(): void
}

export type CallName = keyof Calls

/** The calls of a transaction that has begun. */
export type SessionCall = 'query' | 'touchBlobsIn' | 'putBlobsIn' | 'commit' | 'rollBack'

/** The settings that decide durability, as SQLite reports them after opening. */
export interface OpenedDatabase {
  readonly journalMode: string
  readonly synchronous: number
  readonly sqliteVersion: string
}

/** Arrays, because an object costs its keys at every crossing. The arguments of the call follow. */
export type Request = readonly [
  id: number,
  call: CallName,
  wall: number,
  monotonic: number,
  /** When the clock was read, by `machineMs`. */
  sentAt: number,
  ...args: unknown[],
]

export type Reply = readonly [id: number, value: unknown] | readonly [id: number, value: null, failure: Failure]
