import type { Append, IndexFields, LogKey } from '../../log/contract.js'
import type { Connection } from './connection/connection.js'
import type { SqlValue } from './connection/engine.js'
import { putItemSql } from './items/item-writes.js'
import { carriedTaskOf } from './parcel/item-parcel.js'
import type { Instant } from './rows/lease.js'

/** What the head row must be, what it becomes, and the rest of the entry. */
const COLUMNS = [
  ...['id', 'incarnation', 'epoch', 'last_hash', 'created_at', 'expires_at', 'wake_at', 'lease_boot'],
  ...['status', 'seq', 'hash', 'lease_until', 'lease_ms', 'updated_at', 'origin', 'keyframe', 'header', 'body'],
]
const ITEM_COLUMNS = ['tenant', 'space', 'key', 'version', 'at', 'expires', 'fields', 'value', 'now']
const PUT_ITEM = putItemSql(
  ['tenant', 'space', 'key', 'version', 'at', 'at', 'expires', 'fields', 'value'].map((name) => `NEW.${name}`),
  'NEW.now',
)

/**
 * An append as one statement: a row for a view, which a trigger writes to the tables. By itself it is a transaction,
 * which takes the write lock before it looks. A head row that is another refuses it, and nothing is written.
 */
class Shape {
  readonly create: string
  readonly insert: string

  constructor(withStatus: boolean, withItem: boolean) {
    const view = `next_entry${withStatus ? '_status' : ''}${withItem ? '_item' : ''}`
    const columns = withItem ? [...COLUMNS, ...ITEM_COLUMNS] : COLUMNS
    // A status that is set rewrites its index, also where it is the same.
    this.create = `
      CREATE TEMP VIEW ${view} AS SELECT ${columns.map((name) => `NULL AS ${name}`).join(', ')};
      CREATE TEMP TRIGGER append_${view} INSTEAD OF INSERT ON ${view} BEGIN
        UPDATE logs SET ${withStatus ? 'status = NEW.status,' : ''} seq = NEW.seq, hash = unhex(NEW.hash),
          lease_until = NEW.lease_until, lease_ms = NEW.lease_ms, updated_at = NEW.updated_at, origin = NEW.origin
        WHERE id = NEW.id AND incarnation = NEW.incarnation AND seq = NEW.seq - 1 AND hash = unhex(NEW.last_hash)
          AND epoch = NEW.epoch AND created_at = NEW.created_at AND expires_at IS NEW.expires_at
          AND wake_at IS NEW.wake_at AND lease_boot = NEW.lease_boot ${withStatus ? '' : 'AND status = NEW.status'};
        SELECT RAISE(ABORT, 'the head row is another') WHERE changes() = 0;
        INSERT INTO entries (log, seq, keyframe, hash, header, body)
          VALUES (NEW.id, NEW.seq, NEW.keyframe, unhex(NEW.hash), NEW.header, NEW.body);
        ${withItem ? `${PUT_ITEM};` : ''}
      END;`
    this.insert = `INSERT INTO ${view} VALUES (${columns.map(() => '?').join(', ')})`
  }
}

const SHAPES = [new Shape(false, false), new Shape(true, false), new Shape(false, true), new Shape(true, true)]

/** More are forgotten: these are the logs that this process holds, and those that were never released. */
const MAX_ROWS = 1000

/** What a head row was when its owner wrote to it last, on this connection. */
interface KnownRow extends Pick<IndexFields, 'createdAt' | 'expiresAt' | 'wakeAt'> {
  readonly id: number
  readonly log: LogKey
  readonly boot: string
  status: string
}

/**
 * The append that most are: one more entry, by the owner of the log, who extends the lease and changes nothing that is
 * indexed but the status. One statement does what takes `appendOne` five, where it is known what the row was before.
 */
export class NextEntries {
  readonly #db: Connection
  /** By incarnation. */
  readonly #rows = new Map<string, KnownRow>()

  constructor(db: Connection) {
    this.#db = db
    for (const { create } of SHAPES) db.exec(create)
  }

  /** The id of the head row. Undefined, with nothing written, if the append is of another kind, or the row another. */
  append(append: Append, now: Instant): number | undefined {
    const { incarnation, expect, lease, index, entries } = append
    const row = this.#rows.get(incarnation)
    const entry = entries[0]
    if (row === undefined || entry === undefined || expect === null || lease.kind !== 'extend') return undefined
    if (!isNext(append, row) || lease.ms <= 0 || now.bootId !== row.boot) return undefined
    const item = itemOf(append)
    const shape = SHAPES[(index.status === row.status ? 0 : 1) + (item.length > 0 ? 2 : 0)] as Shape
    const landed = this.#db.commitOne(
      shape.insert,
      row.id,
      incarnation,
      expect.epoch,
      expect.hash,
      index.createdAt,
      index.expiresAt,
      index.wakeAt,
      row.boot,
      index.status,
      entry.seq,
      entry.hash,
      now.monotonic + lease.ms,
      lease.ms,
      index.updatedAt,
      JSON.stringify(index.origin),
      entry.keyframe,
      entry.header,
      entry.body,
      ...item,
    )
    if (!landed) {
      this.#rows.delete(incarnation)
      return undefined
    }
    row.status = index.status
    return row.id
  }

  /** Learns what a head row is from an append that landed otherwise. */
  note({ incarnation, log, lease, index }: Append, id: number, now: Instant): void {
    this.#rows.delete(incarnation)
    if (lease.kind === 'keep' || lease.kind === 'release' || lease.ms <= 0) return
    if (this.#rows.size >= MAX_ROWS) this.#rows.clear()
    const { status, createdAt, expiresAt, wakeAt } = index
    this.#rows.set(incarnation, { id, log, boot: now.bootId, status, createdAt, expiresAt, wakeAt })
  }
}

function isNext({ log, entries, index, labelsChanged, requires, carried }: Append, row: KnownRow): boolean {
  return (
    entries.length === 1 &&
    !labelsChanged &&
    requires === undefined &&
    (carried === undefined || carried.length === 0 || (carried.length === 1 && carried[0]?.item !== null)) &&
    index.wakeAt === row.wakeAt &&
    index.expiresAt === row.expiresAt &&
    index.createdAt === row.createdAt &&
    log.thread === row.log.thread &&
    log.branch === row.log.branch &&
    log.tenant === row.log.tenant
  )
}

/** The values of what is carried, if anything is. */
function itemOf({ log, carried }: Append): readonly SqlValue[] {
  const write = carried?.[0]
  const task = write && carriedTaskOf(write)
  if (!task?.item) return NOTHING
  const { version, at, expiresAt, fields, value } = task.item
  return [log.tenant, task.space, task.key, version, at, expiresAt, fields, value, task.at]
}

const NOTHING: readonly SqlValue[] = []
