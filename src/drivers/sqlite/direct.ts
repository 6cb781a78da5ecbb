import type { Clock } from '../../core/time/clock.js'
import type { Append } from '../../log/contract.js'
import { appendOne, type PackedResult } from './append.js'
import { appendTaskOf } from './parcel/append-parcel.js'
import { closeDirectConnection, type Connection, dataVersion, openDirectConnection } from './connection/connection.js'
import { loadSqlite } from './connection/engine.js'
import { captureFailure, SqliteFailure } from './connection/failure.js'
import { READS, type ReadName } from './reads.js'
import { NextEntries } from './next-entry.js'
import { LoopTurn } from '../shared/loop-turn.js'
import { type Instant, instantNow } from './rows/lease.js'
import type { Calls, OpenedDatabase, WorkerSettings } from './protocol.js'
import { sameFileCheck } from './connection/same-file.js'

/** More at once means that many sessions write: then the worker commits while this thread prepares the next batch. */
const MOST_APPENDS = 4
/** Copying more than this into SQLite is felt by everything else on this thread. */
const MOST_BYTES = 64 * 1024
/** What takes longer costs the event loop more than the way to the worker and back would. */
const QUICK_MS = 1
/** After slow ones this thread stays out of the disk's way for so many times as long as it took. */
const REST = 50
/**
 * The worker gets every so many-th append: it copies the write-ahead log into the file when it commits, which this
 * connection never does. The log grows by a few pages with each append.
 */
const DIRECT_IN_A_ROW = 64
/** So many appends to one log in a row, and no other is being written: there is nobody to share a commit with. */
const ALONE_AFTER = 4

/**
 * Appends and reads on the calling thread, which takes half as long as the way to the worker and back. Only where it
 * doesn't hold anything up: it never waits for a lock, never copies the write-ahead log, and stops while the disk is
 * slow or what it reads is large.
 */
export class DirectConnection {
  readonly #db: Connection
  readonly #clock: Clock
  readonly #ownClock: boolean
  readonly #next: NextEntries
  readonly #isSameFile: () => boolean
  readonly #turn = new LoopTurn()
  readonly #appends = new Pace()
  readonly #reads = new Pace()
  #inARow = 0
  /** The incarnation of the log that was appended to last, if by itself, and how often in a row before. */
  #last: string | undefined
  #ofOneLog = 0
  /** The file was gone after the last append: the next one looks first. */
  #isGone = false
  #closed = false

  private constructor(db: Connection, settings: WorkerSettings, clock: Clock) {
    this.#db = db
    this.#next = new NextEntries(db)
    this.#clock = clock
    this.#ownClock = settings.ownClock
    this.#isSameFile = sameFileCheck(settings.path)
  }

  /**
   * On a file that the worker has open. Undefined where a reader would block it: only with a write-ahead log can two
   * connections work side by side.
   */
  static async open(
    settings: WorkerSettings,
    clock: Clock,
    { journalMode }: OpenedDatabase,
  ): Promise<DirectConnection | undefined> {
    if (journalMode !== 'wal') return undefined
    try {
      return new DirectConnection(openDirectConnection(await loadSqlite(), settings), settings, clock)
    } catch {
      // The worker has the file open and does everything that this would have done.
      return undefined
    }
  }

  /** Changes when another connection, also the worker's, committed. */
  dataVersion(): number {
    return dataVersion(this.#db, true)
  }

  /** Whether this batch is for this thread to try. Asked once for each batch. */
  takes(batch: readonly Append[]): boolean {
    if (batch.length > MOST_APPENDS || this.#appends.rests || bytesOf(batch) > MOST_BYTES) return false
    this.#inARow = (this.#inARow + 1) % DIRECT_IN_A_ROW
    return this.#inARow !== 0
  }

  /**
   * What became of each append; undefined if nothing was written, for whatever reason: the worker tries again, waits if
   * it has to, and says what is wrong. Throws a SqliteFailure if something may have been written.
   */
  append(batch: readonly Append[]): PackedResult[] | undefined {
    const began = performance.now()
    const only = batch.length === 1 ? batch[0] : undefined
    this.#ofOneLog = only !== undefined && only.incarnation === this.#last ? this.#ofOneLog + 1 : 0
    this.#last = only?.incarnation
    try {
      // An append that was made since the event loop turned last has looked.
      if ((this.#turn.begin(began) || this.#isGone) && !this.#isSameFile()) return undefined
      const next = only && this.#next.append(only, this.#now())
      const results = next === undefined ? this.#appendAll(batch) : [next]
      this.#isGone = !this.#isSameFile()
      if (this.#isGone) throw new SqliteFailure({ kind: 'file-gone', written: 'unknown' })
      return results
    } catch (thrown) {
      const captured = captureFailure(thrown, 'nothing')
      const { failure } = captured
      if ('written' in failure && failure.written === 'nothing') return undefined
      throw captured
    } finally {
      this.#appends.note(began)
    }
  }

  #appendAll(batch: readonly Append[]): PackedResult[] {
    const tasks = batch.map(appendTaskOf)
    const { results, now } = this.#db.write(() => {
      const now = this.#now()
      return { now, results: tasks.map((task) => appendOne(this.#db, task, now)) }
    })
    for (const [i, result] of results.entries()) {
      if (typeof result === 'number') this.#next.note(batch[i] as Append, result, now)
    }
    return results
  }

  /** What is asked, in a box; undefined if it is for the worker to answer, who also says what is wrong. */
  read<Name extends ReadName>(
    name: Name,
    args: Parameters<Calls[Name]>,
  ): { readonly found: ReturnType<Calls[Name]> } | undefined {
    if (this.#closed || this.#reads.rests) return undefined
    const began = performance.now()
    const read = READS[name] as (db: Connection, now: () => Instant, ...args: unknown[]) => ReturnType<Calls[Name]>
    try {
      // What is found in a file that is gone must not count as written.
      return this.#isSameFile() ? { found: read(this.#db, () => this.#now(), ...args) } : undefined
    } catch {
      return undefined
    } finally {
      this.#reads.note(began)
    }
  }

  /** Whether whoever made the last append may go on before the event loop turned. */
  get mayGoOn(): boolean {
    return this.#ofOneLog >= ALONE_AFTER && !this.#turn.isLong
  }

  #now(): Instant {
    return instantNow(this.#clock, this.#ownClock)
  }

  close(): void {
    if (!this.#closed) closeDirectConnection(this.#db)
    this.#closed = true
  }
}

/** Whether the last ones were quick enough to go on with. */
class Pace {
  #slowInARow = 0
  #restUntil = 0

  get rests(): boolean {
    return performance.now() < this.#restUntil
  }

  // A slow one may be anything; the second in a row is the disk.
  note(began: number): void {
    const now = performance.now()
    const took = now - began
    this.#slowInARow = took < QUICK_MS ? 0 : this.#slowInARow + 1
    if (this.#slowInARow > 1) this.#restUntil = now + REST * took
  }
}

function bytesOf(batch: readonly Append[]): number {
  let bytes = 0
  for (const { entries, carried = [] } of batch) {
    for (const { header, body } of entries) bytes += header.length + body.length
    for (const { item } of carried) bytes += item?.value.length ?? 0
  }
  return bytes
}
