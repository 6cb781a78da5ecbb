import { randomUUID } from 'node:crypto'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import type { Backend } from './backends.js'
import { runSql } from './postgres.js'

/** A table of the user's in the database that a store lies in, seen by a client that knows nothing of the store. */
export interface UserTable {
  readonly name: string
  /** The nth placeholder. */
  mark(n: number): string
  /** One statement, outside of Holdfast. */
  run(sql: string): Promise<Record<string, unknown>[]>
  ids(): Promise<string[]>
}

/** Makes a table with `id` (text, not unique, so that a repeated insert shows) and `n` (integer). */
export async function makeUserTable(backend: Backend, url: string): Promise<UserTable> {
  const name = `orders_${randomUUID().slice(0, 8)}`
  const run = userSql(backend, url)
  const table: UserTable = {
    name,
    mark: (n) => (backend.name === 'Postgres' ? `$${n}` : '?'),
    run,
    ids: async () => (await run(`SELECT id FROM ${name} ORDER BY id`)).map((row) => String(row['id'])),
  }
  await run(`CREATE TABLE ${name} (id text NOT NULL, n integer NOT NULL)`)
  return table
}

/** Runs statements in the database that a store lies in, outside of Holdfast. */
export function userSql(backend: Backend, url: string): UserTable['run'] {
  return backend.name === 'Postgres' ? runOnPostgres(url) : runOnSqlite(url)
}

function runOnPostgres(url: string): UserTable['run'] {
  const target = new URL(url)
  target.searchParams.delete('schema')
  return (sql) => runSql(target.href, sql)
}

function runOnSqlite(url: string): UserTable['run'] {
  return async (sql) => {
    const db = (await loadSqlite())(url.slice('sqlite:'.length))
    try {
      db.exec('PRAGMA busy_timeout = 10000')
      return db.prepare(sql).all() as Record<string, unknown>[]
    } finally {
      db.close()
    }
  }
}
