import { SqliteFailure } from './failure.js'

export type SqlValue = string | number | null | Uint8Array

/** What users may bind. */
export type SqlParam = SqlValue | bigint

/** A row, without a prototype. */
export type Row = Record<string, SqlValue>

export interface StatementLike {
  run(...values: SqlParam[]): { readonly changes: number | bigint }
  get(...values: SqlValue[]): unknown
  all(...values: SqlParam[]): unknown[]
}

/** The part of a SQLite client that this driver uses. Node's own and the package for Node 20 both have it. */
export interface SqliteLike {
  exec(sql: string): void
  prepare(sql: string): StatementLike
  close(): void
}

/** Opens a file, which is created when it is not there. */
export type OpenSqliteFile = (path: string) => SqliteLike

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options: { readonly enableForeignKeyConstraints: boolean }) => SqliteLike
}

const PACKAGE = '@photostructure/sqlite'

/** Node's own SQLite where it can be used without a flag (from 22.13 on), else the package with the same API. */
export async function loadSqlite(): Promise<OpenSqliteFile> {
  const { DatabaseSync } = await importModule()
  // The schema has no foreign keys; checking for them would only slow statements down.
  return (path) => new DatabaseSync(path, { enableForeignKeyConstraints: false })
}

async function importModule(): Promise<SqliteModule> {
  if (hasBuiltIn(process.versions.node)) return loadBuiltIn()
  try {
    return (await import(PACKAGE)) as SqliteModule
  } catch (cause) {
    throw new SqliteFailure({ kind: 'no-engine', package: PACKAGE, message: String(cause) })
  }
}

// Node 22 and 24 call their SQLite experimental on stderr, which the user of a store did not ask for. Nothing else can warn
// while it is loaded.
function loadBuiltIn(): SqliteModule {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite') as SqliteModule
  } finally {
    process.emitWarning = emitWarning
  }
}

export function hasBuiltIn(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 13)
}
