import { setTimeout as sleep } from 'node:timers/promises'
import { ClosedError, UnavailableError } from '../../../core/errors.js'
import { KeptClients } from './kept-clients.js'
import type { PgClientLike, PgPoolLike } from '../pg-client.js'
import { sendPlain, sendPrepared } from './prepared-query.js'
import { raceTimeout, TIMED_OUT } from './race-timeout.js'
import {
  isConnectionFailure,
  isReadOnly,
  isTransient,
  leavesConnectionUsable,
  translateConnectError,
  translateError,
} from './server-error.js'

export type Row = readonly (string | null)[]

export interface Statement {
  readonly text: string
  readonly values: unknown[]
  /** The same for the same text: used for a prepared statement where those are allowed. */
  readonly name?: string | undefined
}

export interface SessionSettings {
  readonly target: string
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
}

/** A connection that was lent out. */
export interface LentClient {
  readonly client: PgClientLike
  /** Set when it is free of every transaction; otherwise it is thrown away. */
  usable: boolean
  send(statement: Statement): Promise<readonly Row[]>
}

interface Progress {
  /** What would make the write last was sent: the statement, or the commit of a transaction. */
  sent: boolean
  inTransaction: boolean
}

const READ_ATTEMPTS = 4

/**
 * Runs statements on borrowed connections: one statement, one transaction, one round trip. A write is sent at most
 * once; whether a write that failed may have landed is in the error. Reads are sent again on another connection.
 * Nothing waits longer than for a connection plus for an answer.
 */
export class Sessions {
  /** Prepared statements by name. */
  prepare = false
  /**
   * Begin and commit explicitly, for sessions that we can't change and that are not 'read committed' by themselves:
   * compare-and-append would fail there instead of seeing what the other has written.
   */
  explicit = false
  readonly #pool: PgPoolLike
  readonly #settings: SessionSettings
  /** Between statements, where the pool is ours. */
  #kept: KeptClients | undefined
  readonly #lastUse = new WeakMap<PgClientLike, number>()
  #suspectBefore = Number.NEGATIVE_INFINITY
  #closed = false
  readonly #running = new Set<Promise<unknown>>()

  constructor(pool: PgPoolLike, settings: SessionSettings) {
    this.#pool = pool
    this.#settings = settings
  }

  /**
   * From now on a connection is not given back to the pool after each statement: taking it out again costs as much as the
   * statement itself. Only for a pool that nobody else uses.
   */
  keepClients(): void {
    this.#kept = new KeptClients()
  }

  async write(statement: Statement): Promise<readonly Row[]> {
    return this.#track(async () => {
      const client = await this.borrow(this.#settings.connectTimeoutMs)
      return this.#runOn(client, statement, true, this.#settings.statementTimeoutMs)
    })
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    const { connectTimeoutMs, statementTimeoutMs } = this.#settings
    const deadline = performance.now() + connectTimeoutMs + statementTimeoutMs
    const left = () => Math.max(1, deadline - performance.now())
    return this.#track(async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          const client = await this.borrow(Math.min(connectTimeoutMs, left()))
          return await this.#runOn(client, statement, false, Math.min(statementTimeoutMs, left()))
        } catch (error) {
          const { cause } = error as Error
          const again = cause !== undefined && (isConnectionFailure(cause) || isTransient(cause))
          if (!again || attempt === READ_ATTEMPTS || left() <= 1) throw error
          await sleep(Math.min(20 * 4 ** attempt, left()))
        }
      }
    })
  }

  /** Several statements in one transaction, for setting up the schema. */
  async transaction<T>(
    timeoutMs: number,
    work: (query: (statement: Statement) => Promise<readonly Row[]>) => Promise<T>,
  ): Promise<T> {
    return this.#track(async () => {
      const client = await this.borrow(this.#settings.connectTimeoutMs)
      return this.#within(client, timeoutMs, true, async (progress) => {
        progress.inTransaction = true
        await client.query(beginStatement(timeoutMs))
        const result = await work((statement) => this.#send(client, statement))
        await client.query('COMMIT')
        return result
      })
    })
  }

  /** A connection for as long as the work takes, which says whether it may be used again. */
  async lend<T>(work: (lent: LentClient) => Promise<T>): Promise<T> {
    return this.#track(async () => {
      const client = await this.borrow(this.#settings.connectTimeoutMs)
      const lent = { client, usable: false, send: (statement: Statement) => this.#send(client, statement) }
      client.on('error', ignore)
      try {
        return await work(lent)
      } catch (error) {
        if (this.#leadsAstray((error as Error).cause)) lent.usable = false
        throw error
      } finally {
        if (lent.usable) {
          this.#lastUse.set(client, performance.now())
          client.removeListener('error', ignore)
        }
        client.release(!lent.usable)
      }
    })
  }

  /** A connection, to be given back by its `release`. */
  async borrow(timeoutMs: number): Promise<PgClientLike> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const client = this.#kept?.take() ?? (await this.#connect(Math.max(1, deadline - performance.now())))
      // If one connection died silently, those that have been idle since then are likely dead as well, and each would
      // cost a caller the whole timeout to find out.
      if ((this.#lastUse.get(client) ?? Number.POSITIVE_INFINITY) >= this.#suspectBefore) return client
      client.release(true)
    }
  }

  /** One statement on a connection that the caller keeps, also when it fails. */
  async sendOn(client: PgClientLike, statement: Statement): Promise<readonly Row[]> {
    const { target, statementTimeoutMs } = this.#settings
    const rows = await raceTimeout(this.#send(client, statement), statementTimeoutMs).catch((error: unknown) => {
      throw translateError(error, target, true)
    })
    if (rows !== TIMED_OUT) return rows
    throw new UnavailableError(`${target} did not answer within ${statementTimeoutMs} ms.`, { written: 'unknown' })
  }

  /** Refuses what comes from now on, and waits for what is in progress. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.allSettled(this.#running)
    this.#kept?.close()
  }

  checkOpen(): void {
    if (this.#closed) throw new ClosedError('The Postgres driver')
  }

  async #track<T>(work: () => Promise<T>): Promise<T> {
    this.checkOpen()
    const promise = work()
    this.#running.add(promise)
    try {
      return await promise
    } finally {
      this.#running.delete(promise)
    }
  }

  async #connect(timeoutMs: number): Promise<PgClientLike> {
    const { target } = this.#settings
    let connecting: Promise<PgClientLike>
    try {
      connecting = this.#kept === undefined ? this.#pool.connect() : this.#kept.waitFor(this.#pool.connect())
      const client = await raceTimeout(connecting, timeoutMs)
      if (client !== TIMED_OUT) return client
    } catch (error) {
      throw translateConnectError(error, target)
    }
    // It may still come: then nobody waits for it anymore.
    connecting.then(
      (client) => client.release(),
      () => {},
    )
    throw new UnavailableError(`${target} gave no connection within ${Math.round(timeoutMs)} ms.`, {
      written: 'nothing',
      remedy: 'Check that the server is reachable; if it is, raise poolSize or connectTimeoutMs.',
      data: { reason: 'connect-timeout' },
    })
  }

  #runOn(client: PgClientLike, statement: Statement, isWrite: boolean, timeoutMs: number): Promise<readonly Row[]> {
    if (!this.explicit) return this.#within(client, timeoutMs, isWrite, () => this.#send(client, statement))
    return this.#within(client, timeoutMs, isWrite, async (progress) => {
      progress.inTransaction = true
      progress.sent = false
      await client.query(beginStatement(timeoutMs))
      const rows = await this.#send(client, statement)
      progress.sent = true
      await client.query('COMMIT')
      return rows
    })
  }

  /** Does the work with the connection and gives it back, or throws it away when its state is not certain. */
  async #within<T>(
    client: PgClientLike,
    timeoutMs: number,
    isWrite: boolean,
    work: (progress: Progress) => Promise<T>,
  ): Promise<T> {
    const progress: Progress = { sent: true, inTransaction: false }
    // A connection that breaks while it is lent out reports it here as well; unheard, that would end the process.
    const isGuarded = this.#kept?.guards(client) === true
    if (!isGuarded) client.on('error', ignore)
    let failure: unknown
    try {
      const result = await raceTimeout(work(progress), timeoutMs)
      if (result !== TIMED_OUT) {
        this.#lastUse.set(client, performance.now())
        const isKept = this.#kept?.keep(client) === true
        if (!isGuarded) client.removeListener('error', ignore)
        if (!isKept) client.release()
        return result
      }
    } catch (error) {
      failure = error
    }
    const mayHaveLanded = isWrite && progress.sent
    if (failure === undefined) {
      this.#suspectBefore = performance.now()
      client.release(true)
      throw new UnavailableError(`${this.#settings.target} did not answer within ${Math.round(timeoutMs)} ms.`, {
        written: mayHaveLanded ? 'unknown' : 'nothing',
        data: { reason: 'statement-timeout' },
      })
    }
    this.#leadsAstray(failure)
    await this.#giveBack(client, failure, progress.inTransaction)
    throw translateError(failure, this.#settings.target, mayHaveLanded)
  }

  /**
   * Whether the connection leads to a server that accepts no writes, as after a failover. Those that have been idle
   * since do so as well, and kept in the pool they would refuse every write for as long as the process runs.
   */
  #leadsAstray(failure: unknown): boolean {
    if (!isReadOnly(failure)) return false
    this.#suspectBefore = performance.now()
    return true
  }

  async #giveBack(client: PgClientLike, failure: unknown, inTransaction: boolean): Promise<void> {
    let usable = leavesConnectionUsable(failure)
    if (usable) {
      try {
        // Inside a failed transaction the connection would be of no use to the next.
        if (inTransaction) usable = (await raceTimeout(client.query('ROLLBACK'), 1000)) !== TIMED_OUT
      } catch {
        usable = false
      }
    }
    if (usable) client.removeListener('error', ignore)
    client.release(!usable)
  }

  async #send(client: PgClientLike, statement: Statement): Promise<readonly Row[]> {
    if (!this.prepare) return sendPlain(client, { ...statement, name: undefined })
    // Only on clients that we made: what a user's pool lends may be of any kind.
    return (this.#kept && sendPrepared(client, statement)) ?? sendPlain(client, statement)
  }
}

// The limit ends a transaction whose process was stopped in the middle: its locks must not outlive our timeout.
export function beginStatement(timeoutMs: number): string {
  const limit = Math.ceil(timeoutMs)
  return `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = ${limit}`
}

function ignore(): void {}
