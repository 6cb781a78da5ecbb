import type { Connection } from './connection/connection.js'
import { readEntries, readHead, readHeaders, readPosition, readTail } from './entries.js'
import { findHeads } from './index/heads.js'
import type { Instant } from './rows/lease.js'
import type { Calls } from './protocol.js'

/** Reads of logs, which any thread with a connection can answer. */
export type ReadName = 'tail' | 'read' | 'headers' | 'head' | 'heads' | 'positions'

export const READS: {
  readonly [Name in ReadName]: (
    db: Connection,
    now: () => Instant,
    ...args: Parameters<Calls[Name]>
  ) => ReturnType<Calls[Name]>
} = {
  tail: (db, now, log, upTo) => readTail(db, log, upTo, now()),
  read: (db, _, log, from, limit) => readEntries(db, log, from, limit),
  headers: (db, _, log, before, limit) => readHeaders(db, log, before, limit),
  head: (db, now, log) => readHead(db, log, now()),
  heads: (db, now, task) => findHeads(db, task, now()),
  positions: (db, _, logs) => logs.map((log) => readPosition(db, log)),
}
