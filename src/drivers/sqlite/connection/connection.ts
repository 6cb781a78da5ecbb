import { closeSync, openSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { OpenSqliteFile, Row, SqliteLike, SqlParam, SqlValue, StatementLike } from './engine.js'
import { captureFailure, isBusy, resultCode, SQLITE, SqliteFailure } from './failure.js'
import { checkApplication } from './migrate.js'

export interface ConnectionSettings {
  readonly path: string
  readonly synchronous: 'full' | 'normal'
  readonly busyTimeoutMs: number
}

/**
 * Pages in the write-ahead log before they are copied into the file and the log starts over. Overwriting the log is
 * faster to sync than extending it, so a larger number makes commits slower, not faster.
 */
const CHECKPOINT_PAGES = 1000
const MAX_IDLE_WAL_BYTES = 64 * 1024 * 1024
const RETRY_MS = 10
/** More than the driver has fixed statements; queries of the index come in many shapes. */
const MAX_STATEMENTS = 200

/** One open database: statements prepared once, and transactions that know their outcome. */
export class Connection {
  readonly #sqlite: SqliteLike
  readonly #statements = new Map<string, StatementLike>()
  #broken = false
  #inTransaction = false
  #isInUtf8: boolean | undefined

  constructor(sqlite: SqliteLike) {
    this.#sqlite = sqlite
  }

  run(sql: string, ...values: SqlParam[]): number {
    return Number(this.#prepare(sql).run(...values).changes)
  }

  get(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined
  }

  all(sql: string, ...values: SqlParam[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[]
  }

  exec(sql: string): void {
    this.#sqlite.exec(sql)
  }

  /** Sets a pragma, or reads it, and returns what SQLite answers. */
  pragma(text: string): SqlValue {
    const row = this.#sqlite.prepare(`PRAGMA ${text}`).get() as Row | undefined
    return row === undefined ? null : (Object.values(row)[0] ?? null)
  }

  /** Whether text is stored in UTF-8. A file is in what it was created with. */
  get isInUtf8(): boolean {
    this.#isInUtf8 ??= this.pragma('encoding') === 'UTF-8'
    return this.#isInUtf8
  }

  /**
   * All or nothing. Takes the write lock at once, so nothing that `work` read can change before it commits. Inside a
   * transaction that was begun with `begin` it is a part of that one.
   */
  write<T>(work: () => T): T {
    if (this.#inTransaction) return work()
    this.#start('BEGIN IMMEDIATE')
    let result: T
    try {
      result = work()
    } catch (thrown) {
      throw captureFailure(thrown, this.#rollBack() ? 'nothing' : 'unknown')
    }
    this.#commit()
    return result
  }

  /** One statement that is a transaction of its own. False if it was refused, by a constraint or by itself. */
  commitOne(sql: string, ...values: SqlParam[]): boolean {
    this.#checkUsable()
    try {
      this.#prepare(sql).run(...values)
      return true
    } catch (thrown) {
      const code = (resultCode(thrown) ?? 0) & 0xff
      if (code === SQLITE.CONSTRAINT) return false
      throw captureFailure(thrown, code === SQLITE.ERROR || leavesNothing(thrown) ? 'nothing' : 'unknown')
    }
  }

  /** Begins a transaction that stays open until `commit` or `rollBack`. */
  begin(): void {
    this.#start('BEGIN IMMEDIATE')
    this.#inTransaction = true
  }

  commit(): void {
    this.#inTransaction = false
    this.#commit()
  }

  /** False if it could not be rolled back: then this connection can't be used anymore. */
  rollBack(): boolean {
    this.#inTransaction = false
    return this.#rollBack()
  }

  /** Everything `work` reads is from one snapshot. */
  read<T>(work: () => T): T {
    this.#start('BEGIN')
    try {
      return work()
    } finally {
      this.#rollBack()
    }
  }

  /**
   * Copies the write-ahead log into the file and empties it. False while a reader or writer elsewhere prevents that.
   */
  truncateLog(): boolean {
    const row = this.#sqlite.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as Row | undefined
    return row?.['busy'] === 0
  }

  close(): void {
    this.#statements.clear()
    this.#sqlite.close()
  }

  #checkUsable(): void {
    if (!this.#broken) return
    throw new SqliteFailure({ kind: 'bug', message: 'a transaction could not be ended', written: 'nothing' })
  }

  #start(sql: string): void {
    this.#checkUsable()
    try {
      this.#prepare(sql).run()
    } catch (thrown) {
      throw captureFailure(thrown, 'nothing')
    }
  }

  #commit(): void {
    try {
      this.#prepare('COMMIT').run()
    } catch (thrown) {
      const rolledBack = this.#rollBack()
      throw captureFailure(thrown, rolledBack && leavesNothing(thrown) ? 'nothing' : 'unknown')
    }
  }

  // After some errors SQLite has rolled back by itself, and says so to a second request.
  #rollBack(): boolean {
    try {
      this.#prepare('ROLLBACK').run()
      return true
    } catch (thrown) {
      if (thrown instanceof Error && thrown.message.includes('no transaction is active')) return true
      this.#broken = true
      return false
    }
  }

  #prepare(sql: string): StatementLike {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#sqlite.prepare(sql)
      if (this.#statements.size >= MAX_STATEMENTS) this.#statements.clear()
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

/**
 * Whether a failed commit certainly left no trace. When the disk was full the commit record itself is missing; after
 * any other I/O error it may be in the write-ahead log, and recovery after a crash could still find it.
 */
function leavesNothing(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === SQLITE.FULL || code === SQLITE.BUSY || code === SQLITE.READONLY
}

/** Opens the file and sets it up for this driver, without touching another application's database. */
export async function openConnection(open: OpenSqliteFile, settings: ConnectionSettings): Promise<Connection> {
  createPrivately(settings.path)
  const db = new Connection(open(settings.path))
  try {
    db.pragma(`busy_timeout = ${settings.busyTimeoutMs}`)
    await persistently(settings.busyTimeoutMs, () => checkApplication(db))
    // Others that switch at the same moment make this fail at once, whatever the busy timeout says.
    const journal = await persistently(settings.busyTimeoutMs, () => db.pragma('journal_mode = WAL'))
    configure(db, settings, String(journal))
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

/**
 * A new file is readable only by its owner, and SQLite gives its -wal and -shm the same permissions. An empty file is
 * an empty database. What does not succeed here is for SQLite to explain.
 */
function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {}
}

/** Another connection to a file that this process has open, for the user's own SQL. */
export function openSecondConnection(open: OpenSqliteFile, settings: ConnectionSettings): Connection {
  const db = new Connection(open(settings.path))
  try {
    db.pragma(`busy_timeout = ${settings.busyTimeoutMs}`)
    configure(db, settings, String(db.pragma('journal_mode')))
    // Our tables have no foreign keys; those of the user are to be checked, as other clients do.
    db.pragma('foreign_keys = ON')
    return db
  } catch (thrown) {
    db.close()
    throw thrown
  }
}

/** The name of the file in a connection that may have to let go of it at any time. */
const FILE = 'file'

/**
 * Another connection to a file that this process has open, for the thread that must never wait: neither for a lock nor
 * for the write-ahead log to be copied into the file. The file is attached, because only what is attached can be let go
 * of at once: a client that is closed while it has prepared statements keeps its own file until they are collected.
 */
export function openDirectConnection(open: OpenSqliteFile, settings: ConnectionSettings): Connection {
  const db = new Connection(open(':memory:'))
  try {
    db.run(`ATTACH ? AS ${FILE}`, settings.path)
    db.pragma('busy_timeout = 0')
    configure(db, settings, String(db.pragma(`${FILE}.journal_mode`)), `${FILE}.`)
    db.pragma('wal_autocheckpoint = 0')
    return db
  } catch (thrown) {
    closeDirectConnection(db)
    throw thrown
  }
}

export function closeDirectConnection(db: Connection): void {
  try {
    db.exec(`DETACH ${FILE}`)
  } catch {
    // It was never attached, or a transaction could not be ended: then closing is all that is left.
  }
  db.close()
}

/** As SQLite counts the commits of other connections. */
export function dataVersion(db: Connection, isDirect: boolean): number {
  return Number(db.pragma(isDirect ? `${FILE}.data_version` : 'data_version'))
}

function configure(db: Connection, settings: ConnectionSettings, journal: string, of = ''): void {
  db.pragma(`${of}synchronous = ${synchronousLevel(settings.synchronous, journal)}`)
  if (settings.synchronous === 'full') {
    // On macOS a plain fsync leaves the data in the drive's cache.
    db.pragma('fullfsync = ON')
    db.pragma('checkpoint_fullfsync = ON')
  }
  db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  db.pragma(`${of}journal_size_limit = ${MAX_IDLE_WAL_BYTES}`)
  // What is deleted is overwritten with zeros: erasing a thread must not leave it in free pages.
  db.pragma(`${of}secure_delete = ON`)
  db.pragma('temp_store = MEMORY')
  db.pragma(`${of}cache_size = -16000`)
}

// If the file system doesn't support WAL, a commit is the deletion of the rollback journal, and only EXTRA syncs that.
function synchronousLevel(asked: 'full' | 'normal', journal: string): string {
  if (asked === 'normal') return 'NORMAL'
  return journal === 'wal' ? 'FULL' : 'EXTRA'
}

// By a deadline and not by a count: an attempt may itself wait for the busy timeout.
async function persistently<T>(timeoutMs: number, work: () => T): Promise<T> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return work()
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() >= deadline) throw thrown
    }
    await delay(RETRY_MS)
  }
}
