import { isHoldfastError, TransactionError, UnavailableError } from '../../core/errors.js'
import type { Append, AppendResult, Driver } from '../../log/contract.js'
import { runTransaction, timedOut, type Transaction } from '../shared/run-transaction.js'
import { checkStatement, ownTables, POSTGRES_DIALECT } from '../shared/sql-check.js'
import { readAppendResults, type SortedBatch } from './statements/append-statement.js'
import type { BlobStatements } from './statements/blob-statements.js'
import { leavesConnectionUsable, ofTheStatement, translateError } from './connection/server-error.js'
import { raceTimeout, TIMED_OUT } from './connection/race-timeout.js'
import { beginStatement, type LentClient, type Sessions } from './connection/sessions.js'

export interface TransactSettings {
  readonly target: string
  readonly schema: string
  readonly statementTimeoutMs: number
  readonly timeoutMs: number
}

interface Statements {
  readonly blobs: BlobStatements
  /** Refuses an append that no correct caller makes. */
  append(append: Append): SortedBatch
}

const ROLLBACK_MS = 1000
const COUNTED = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE'])

/** One transaction with the user's own SQL, on one connection. Tells whether anybody wants to hear of the append. */
export async function transact(
  sessions: Sessions,
  settings: TransactSettings,
  statements: Statements,
  work: Parameters<NonNullable<Driver['transact']>>[0],
  noteListening: (listening: boolean) => void,
): Promise<AppendResult> {
  return sessions.lend(async (lent) => {
    const { target, timeoutMs } = settings
    const begin = `${beginStatement(timeoutMs)}; SET LOCAL statement_timeout = ${timeoutMs}`
    const begun = await raceTimeout(lent.client.query(begin), settings.statementTimeoutMs).catch((error: unknown) => {
      throw translateError(error, target, false)
    })
    if (begun === TIMED_OUT) throw noAnswer(target, settings.statementTimeoutMs, 'nothing')
    return runTransaction(new PostgresTransaction(lent, settings, statements, noteListening), work, timeoutMs)
  })
}

class PostgresTransaction implements Transaction {
  readonly blobs: Transaction['blobs']
  readonly #lent: LentClient
  readonly #settings: TransactSettings
  readonly #statements: Statements
  readonly #noteListening: (listening: boolean) => void
  readonly #deadline: number
  #underWay = 0

  constructor(
    lent: LentClient,
    settings: TransactSettings,
    statements: Statements,
    noteListening: (listening: boolean) => void,
  ) {
    this.#lent = lent
    this.#settings = settings
    this.#statements = statements
    this.#noteListening = noteListening
    this.#deadline = performance.now() + settings.timeoutMs
    this.blobs = {
      touchBlobs: async (tenant, hashes) => {
        const rows = await this.#run(() => lent.send(statements.blobs.touch(tenant, hashes)))
        const found = new Set(rows.map(([hash]) => hash))
        return hashes.filter((hash) => !found.has(hash))
      },
      putBlobs: async (tenant, blobs) => {
        for (const blob of blobs) await this.#run(() => lent.send(statements.blobs.put(tenant, [blob])))
      },
    }
  }

  async query(sql: string, params: readonly unknown[]): ReturnType<Transaction['query']> {
    const { tokens } = checkStatement(sql, POSTGRES_DIALECT)
    // Unquoted names are in lower case here, and so is a schema whose name was quoted.
    const own = this.#settings.schema.toLowerCase()
    if (tokens.some((token, i) => token === own && (tokens[i + 1] === '.' || tokens.includes('schema')))) {
      throw ownTables(sql, `the schema ${this.#settings.schema}`)
    }
    const query = { text: sql, values: [...params], queryMode: 'extended' as const }
    const { rows, rowCount, command = '' } = await this.#run(() => this.#lent.client.query(query), sql)
    return { rows: rows as readonly Record<string, unknown>[], changes: COUNTED.has(command) ? (rowCount ?? 0) : 0 }
  }

  async commit(append: Append): Promise<AppendResult> {
    const { target, timeoutMs, statementTimeoutMs } = this.#settings
    let answer: ReturnType<typeof readAppendResults>
    try {
      const { statement, order } = this.#statements.append(append)
      const left = Math.max(1, this.#deadline - performance.now())
      const rows = await raceTimeout(
        this.#run(() => this.#lent.send(statement)),
        left,
      )
      if (rows === TIMED_OUT) throw timedOut(timeoutMs)
      answer = readAppendResults(rows[0], order)
    } catch (error) {
      await this.rollBack()
      throw error
    }
    const [result] = answer.results as [AppendResult]
    if (result.status !== 'appended') {
      await this.rollBack()
      return result
    }
    // From here on it may have landed, whatever happens to the answer.
    const committed = await raceTimeout(this.#lent.client.query('COMMIT'), statementTimeoutMs).catch(
      (error: unknown) => {
        this.#lent.usable = leavesConnectionUsable(error)
        throw this.#lent.usable ? this.#explain(error) : translateError(error, target, true)
      },
    )
    if (committed === TIMED_OUT) throw noAnswer(target, statementTimeoutMs, 'unknown')
    this.#lent.usable = true
    this.#noteListening(answer.listening)
    return result
  }

  async rollBack(): Promise<void> {
    // One that does not answer would not answer this either. Without its connection it ends by itself.
    if (this.#underWay > 0) return
    const { client } = this.#lent
    const ended = await raceTimeout(client.query('ROLLBACK'), ROLLBACK_MS).catch(() => TIMED_OUT)
    this.#lent.usable = ended !== TIMED_OUT
  }

  async #run<T>(send: () => Promise<T>, sql?: string): Promise<T> {
    this.#underWay++
    try {
      return await send()
    } catch (error) {
      throw this.#explain(error, sql)
    } finally {
      this.#underWay--
    }
  }

  #explain(error: unknown, sql?: string): Error {
    if (isHoldfastError(error)) return error
    const reply = ofTheStatement(error)
    if (reply === 'timeout') return timedOut(this.#settings.timeoutMs)
    if (reply === undefined) return translateError(error, this.#settings.target, false)
    return new TransactionError(
      'statement',
      `Postgres refused a statement: ${reply.message}.`,
      'Correct the statement or its values; to allow for rows that are there, use ON CONFLICT.',
      { data: { sqlstate: reply.code, ...(sql === undefined ? {} : { sql }) }, cause: error },
    )
  }
}

function noAnswer(target: string, ms: number, written: 'nothing' | 'unknown'): UnavailableError {
  return new UnavailableError(`${target} did not answer within ${ms} ms.`, {
    written,
    data: { reason: 'statement-timeout' },
  })
}
