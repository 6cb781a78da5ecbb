import type { SqlRows } from '../../shared/run-transaction.js'
import { appendOne, type PackedResult } from '../append.js'
import { type AppendTask, unpackAppends } from '../parcel/append-parcel.js'
import { putBlobs, touchBlobs } from '../blobs.js'
import type { Connection } from '../connection/connection.js'
import type { Row, SqlParam } from '../connection/engine.js'
import { captureFailure, resultCode, SqliteFailure } from '../connection/failure.js'
import type { Instant } from '../rows/lease.js'
import type { Parcel } from '../parcel/parcel.js'
import type { CallName, Calls, SessionCall } from '../protocol.js'

type SessionHandlers = {
  readonly [Name in SessionCall]: (
    db: Connection,
    now: () => Instant,
    ...args: Parameters<Calls[Name]>
  ) => ReturnType<Calls[Name]>
}

/** Result codes that concern the statement and not the database: an error in it, a constraint, a wrong type. */
const OF_THE_STATEMENT = new Set([1, 18, 19, 20, 25])

/** Opcodes of SQLite's programs by which one opens a table or index, and which operands name its root page and file. */
const REACHES: Readonly<Record<string, readonly [page: string, file: string]>> = {
  OpenRead: ['p2', 'p3'],
  OpenWrite: ['p2', 'p3'],
  ReopenIdx: ['p2', 'p3'],
  Clear: ['p1', 'p2'],
  Destroy: ['p1', 'p3'],
}

const OWN_TABLES = [
  'logs',
  'entries',
  'labels',
  'blobs',
  'blob_bytes',
  'last_touch',
  'tombstones',
  'items',
  'schema_versions',
]
const OWN_PAGES = `SELECT rootpage, tbl_name FROM sqlite_schema
  WHERE tbl_name IN (${OWN_TABLES.map((name) => `'${name}'`).join(', ')})`

/**
 * The worker's side of a transaction with the user's own SQL. It has its own connection, so that reads on the other one
 * continue and see nothing of it. One at a time. A statement that fails, and the end of its time, roll it back here:
 * the main thread may be stuck.
 */
export class UserSession {
  /** Called when a transaction was rolled back because its time was over. */
  onTimeout: () => void = () => {}
  readonly #connect: () => Connection
  #db: Connection | undefined
  #open: { readonly id: number; readonly timer: NodeJS.Timeout } | undefined
  /** Those whose time was over, and who do not know it yet. */
  readonly #timedOut = new Map<number, number>()

  constructor(connect: () => Connection) {
    this.#connect = connect
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  begin(id: number, timeoutMs: number): number {
    this.#db ??= this.#connect()
    this.#db.begin()
    const timer = setTimeout(() => {
      this.#timedOut.set(id, timeoutMs)
      this.#rollBack()
      this.onTimeout()
    }, timeoutMs)
    this.#open = { id, timer }
    return id
  }

  answer(call: SessionCall, now: () => Instant, args: readonly unknown[]): unknown {
    const id = args[0] as number
    if (this.#open?.id !== id || this.#db === undefined) {
      const over = this.#over(id)
      if (call === 'commit' || call === 'rollBack') this.#timedOut.delete(id)
      if (call === 'rollBack') return null
      throw over
    }
    if (call === 'commit' || call === 'rollBack') this.#finish()
    const handle = handlers[call] as (...args: unknown[]) => unknown
    try {
      return handle(this.#db, now, ...args)
    } catch (thrown) {
      // After some errors SQLite has rolled back by itself, and what came next would be committed on its own.
      const written = this.#rollBack() ? 'nothing' : 'unknown'
      throw captureFailure(thrown, written)
    }
  }

  /** Ends the open transaction, if there is one, keeping none of it. */
  abandon(): void {
    if (this.#open !== undefined) this.#rollBack()
  }

  close(): void {
    this.abandon()
    this.#db?.close()
  }

  #finish(): void {
    clearTimeout(this.#open?.timer)
    this.#open = undefined
  }

  #rollBack(): boolean {
    this.#finish()
    if (this.#db?.rollBack() !== false) return true
    // Closing it frees the lock; the next transaction gets another connection.
    this.#db.close()
    this.#db = undefined
    return false
  }

  #over(id: number): SqliteFailure {
    const timeoutMs = this.#timedOut.get(id)
    if (timeoutMs !== undefined) return new SqliteFailure({ kind: 'timeout', timeoutMs })
    return new SqliteFailure({ kind: 'bug', message: 'the transaction is over', written: 'nothing' })
  }
}

export function isSessionCall(call: CallName): call is SessionCall {
  return call in handlers
}

const handlers: SessionHandlers = {
  query: (db, _, _id, sql, params) => queryOne(db, sql, params),
  touchBlobsIn: (db, now, _id, tenant, hashes) => touchBlobs(db, tenant, hashes, now),
  putBlobsIn: (db, now, _id, tenant, blobs) => putBlobs(db, tenant, blobs, now),
  commit: (db, now, _id, append) => commit(db, now, append),
  rollBack: (db) => void db.rollBack(),
}

function commit(db: Connection, now: () => Instant, append: Parcel): PackedResult {
  const [task] = unpackAppends(append) as [AppendTask]
  const result = appendOne(db, task, now())
  if (typeof result === 'number') db.commit()
  else db.rollBack()
  return result
}

function queryOne(db: Connection, sql: string, params: readonly SqlParam[]): SqlRows {
  try {
    // What SQLite will do for the statement, step by step.
    const program = db.all(`EXPLAIN ${sql}`)
    refuseOwnTables(db, sql, program)
    const before = totalChanges(db)
    const returnsRows = program.some(({ opcode }) => opcode === 'ResultRow')
    // Where there are no rows to return: the package for Node 20 gives no result code with a failure of `all`.
    const rows = returnsRows ? db.all(sql, ...params) : (db.run(sql, ...params), [])
    return { rows, changes: totalChanges(db) === before ? 0 : Number(db.get('SELECT changes() AS n')?.['n']) }
  } catch (thrown) {
    if (thrown instanceof SqliteFailure) throw thrown
    const errcode = resultCode(thrown)
    if (errcode !== undefined && !OF_THE_STATEMENT.has(errcode & 0xff)) throw thrown
    const message = thrown instanceof Error ? thrown.message : String(thrown)
    throw new SqliteFailure({ kind: 'statement', sql, message, errcode })
  }
}

function totalChanges(db: Connection): number {
  return Number(db.get('SELECT total_changes() AS n')?.['n'])
}

/** Which tables a statement opens is in its program, also when they are behind views and triggers. */
function refuseOwnTables(db: Connection, sql: string, program: readonly Row[]): void {
  const own = new Map(db.all(OWN_PAGES).map((row) => [row['rootpage'], String(row['tbl_name'])]))
  for (const row of program) {
    const operands = REACHES[String(row['opcode'])]
    if (operands === undefined || row[operands[1]] !== 0) continue
    const table = own.get(row[operands[0]] ?? null)
    if (table !== undefined) throw new SqliteFailure({ kind: 'own-table', sql, table })
  }
}
