import assert from 'node:assert/strict'
import type { HoldfastError } from '../../../core/errors.js'
import type { Append, AppendResult, Driver, SqlSession } from '../../../log/contract.js'
import { expectAfter, makeAppend } from '../../entries.js'
import { logKey, type SuiteContext, type SuiteTest } from '../suite-context.js'

/** A driver with transactions. */
export type SqlStore = Driver & Required<Pick<Driver, 'transact'>>

export interface SqlContext extends Omit<SuiteContext, 'driver'> {
  readonly driver: SqlStore
  /** A table of the user's with the columns `id` (text, the key) and `n` (an integer), empty and only for this test. */
  readonly table: string
}

export const PLENTY_MS = 60_000

function lacksTransactions({ capabilities }: Driver): string | undefined {
  return capabilities.transactions ? undefined : 'capabilities.transactions is false'
}

export function withSql(driver: Driver): SqlStore {
  assert.ok(driver.transact, 'a driver with transactions has transact')
  return driver as SqlStore
}

/** A test with a table of its own. Its statements hold no values to bind: databases write placeholders differently. */
export function sqlTest(name: string, run: (context: SqlContext) => Promise<void>, timeoutMs?: number): SuiteTest {
  return {
    name,
    exempt: lacksTransactions,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async run(context) {
      const driver = withSql(context.driver)
      const table = `suite_${context.tenant.replaceAll(/[^a-z0-9]/g, '_')}`
      const setup = logKey(context.tenant, 'the table')
      const made = makeAppend(setup, null)
      await commitSql(driver, made, `CREATE TABLE ${table} (id text PRIMARY KEY, n integer NOT NULL)`)
      try {
        await run({ ...context, driver, table })
      } finally {
        await commitSql(driver, makeAppend(setup, expectAfter(made)), `DROP TABLE ${table}`)
      }
    },
  }
}

/** Runs statements and appends, and gives the result. */
export function transactSql(driver: SqlStore, append: Append, ...statements: string[]): Promise<AppendResult> {
  return driver.transact(
    async (sql) => {
      for (const statement of statements) await sql.query(statement)
      return append
    },
    { timeoutMs: PLENTY_MS },
  )
}

/** The same; anything but success is an error. */
export async function commitSql(driver: SqlStore, append: Append, ...statements: string[]): Promise<void> {
  assert.equal((await transactSql(driver, append, ...statements)).status, 'appended')
}

/** The rows of the table as others see them, by a transaction that keeps nothing. */
export async function rowsOf(driver: SqlStore, table: string): Promise<Record<string, number>> {
  const stop = new Error('only looking')
  let rows: readonly { readonly id: string; readonly n: number }[] = []
  const looking = driver.transact(
    async (sql) => {
      ;({ rows } = await sql.query<{ id: string; n: number }>(`SELECT id, n FROM ${table} ORDER BY id`))
      throw stop
    },
    { timeoutMs: PLENTY_MS },
  )
  await assert.rejects(looking, stop)
  return Object.fromEntries(rows.map(({ id, n }) => [id, Number(n)]))
}

export function insertRow(table: string, id: string, n = 1): string {
  return `INSERT INTO ${table} (id, n) VALUES ('${id}', ${n})`
}

/** A check for `assert.rejects`: a TransactionError for this reason, with nothing written. */
export function refusedFor(reason: string) {
  return (error: HoldfastError): true => {
    assert.equal(error.code, 'transaction', String(error))
    assert.equal(error.data['reason'], reason)
    assert.equal(error.data['written'], 'nothing')
    return true
  }
}

/** A transaction that stands still after its statements until it is told to continue. */
export function pausedTransaction(driver: SqlStore, append: Append, ...statements: string[]) {
  let goOn = (): void => {}
  let begun = (): void => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const started = new Promise<void>((resolve) => {
    begun = resolve
  })
  const result = driver.transact(
    async (sql: SqlSession) => {
      for (const statement of statements) await sql.query(statement)
      begun()
      await gate
      return append
    },
    { timeoutMs: PLENTY_MS },
  )
  return { started: Promise.race([started, result]), goOn, result }
}
