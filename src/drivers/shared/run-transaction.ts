import { InvalidValueError, isHoldfastError, TransactionError } from '../../core/errors.js'
import type { Append, AppendResult, BlobWriter, Driver, SqlSession } from '../../log/contract.js'

export interface SqlRows {
  readonly rows: readonly Record<string, unknown>[]
  readonly changes: number
}

/** What a driver does of a transaction that has begun. */
export interface Transaction {
  readonly blobs: BlobWriter
  query(sql: string, params: readonly unknown[]): Promise<SqlRows>
  /** Appends and commits; rolls back if the append does not land, and when it rejects. */
  commit(append: Append): Promise<AppendResult>
  /** Never rejects: a transaction that can't be told to end ends with its connection. */
  rollBack(): Promise<void>
}

/**
 * Leads a transaction from its begin to its end: the work, bounded in time, then the append. Statements go one after
 * another, also when the work does not wait for them.
 */
export async function runTransaction(
  transaction: Transaction,
  work: Parameters<NonNullable<Driver['transact']>>[0],
  timeoutMs: number,
): Promise<AppendResult> {
  const line = new StatementLine(timeoutMs)
  const sql: SqlSession = {
    query: <Row>(text: string, params: readonly unknown[] = []) =>
      line.send(async () => {
        checkParams(params)
        const { rows, changes } = await transaction.query(text, params)
        return { rows: rows as readonly Row[], changes }
      }),
  }
  const blobs: BlobWriter = {
    touchBlobs: (tenant, hashes) => line.send(() => transaction.blobs.touchBlobs(tenant, hashes)),
    putBlobs: (tenant, values) => line.send(() => transaction.blobs.putBlobs(tenant, values)),
  }
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(timedOut(timeoutMs)), timeoutMs)
  })
  let append: Append
  try {
    append = await Promise.race([(async () => work(sql, blobs))(), timeout])
    await Promise.race([line.end(), timeout])
  } catch (error) {
    line.stop()
    await transaction.rollBack()
    // What the database said may pass, whatever the work made of it; the caller tries again.
    throw isHoldfastError(line.failure) && line.failure.retryable ? line.failure : error
  } finally {
    clearTimeout(timer)
  }
  return transaction.commit(append)
}

export function timedOut(timeoutMs: number): TransactionError {
  return new TransactionError(
    'timeout',
    `The transaction took longer than ${timeoutMs} ms and was rolled back.`,
    'Do nothing in it but SQL, and no slow SQL, or raise timeoutMs.',
    { data: { timeoutMs } },
  )
}

class StatementLine {
  /** Of the first statement that failed. */
  failure: unknown
  readonly #timeoutMs: number
  #last: Promise<unknown> = Promise.resolve()
  #ended = false

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  send<T>(run: () => Promise<T>): Promise<T> {
    if (this.#ended) return Promise.reject(this.#over())
    const sent = this.#last.then(async () => {
      if (this.#ended) throw this.#over()
      if (this.failure !== undefined) throw this.failure
      try {
        return await run()
      } catch (error) {
        this.failure ??= error
        throw error
      }
    })
    // The failure of a statement that nobody waits for is told by `end`, and must not end the process.
    this.#last = sent.catch(() => {})
    return sent
  }

  /** Waits for every statement that was sent, and takes no more. Rejects if one failed, even if nobody cared. */
  async end(): Promise<void> {
    for (let last; last !== this.#last; ) {
      last = this.#last
      await last
    }
    this.#ended = true
    if (this.failure !== undefined) throw this.failure
  }

  /** Takes no more and waits for nothing. */
  stop(): void {
    this.#ended = true
  }

  #over(): TransactionError {
    return new TransactionError(
      'ended',
      'The transaction is over, and its session takes no more statements.',
      `Wait for every statement before the work returns, which has ${this.#timeoutMs} ms.`,
    )
  }
}

function checkParams(params: unknown): asserts params is readonly unknown[] {
  if (!Array.isArray(params)) throw new InvalidValueError('params', 'must be an array', 'Pass the values in order.')
  const missing = params.indexOf(undefined)
  if (missing !== -1) {
    throw new InvalidValueError(`params[${missing}]`, 'is undefined', 'Pass null for a missing value.')
  }
}
