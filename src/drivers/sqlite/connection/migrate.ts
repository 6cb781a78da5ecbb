import type { Connection } from './connection.js'
import { SqliteFailure } from './failure.js'

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly version: number
  readonly name: string
  /** True if code that does not know this migration must not use the database anymore. */
  readonly breaking: boolean
  readonly sql: string
}

/** 'HFLD', in the header of the file: which application a database belongs to. */
const APPLICATION_ID = 0x48464c44

const VERSION_TABLE = `
CREATE TABLE IF NOT EXISTS schema_versions (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  breaking INTEGER NOT NULL,
  applied_at REAL NOT NULL
) STRICT`

/** Refuses a database of another application. Only reads, so it comes before any setting that writes. */
export function checkApplication(db: Connection): void {
  // Tables first: another opener makes tables and id in one transaction, and between two reads it may do so.
  const tables = Number(db.get('SELECT count(*) AS n FROM sqlite_schema')?.['n'])
  const id = Number(db.pragma('application_id'))
  if (id === APPLICATION_ID) return
  if (id === 0 && tables === 0) return
  const found = id === 0 ? `${tables} tables and indexes, no application id` : `application id ${id}`
  throw new SqliteFailure({ kind: 'foreign', found })
}

/**
 * Brings the schema up to date in one transaction. Every opener takes the write lock first, so of many that start at
 * once on an empty file one migrates and the others wait and find it done.
 */
export function migrate(db: Connection, migrations: readonly Migration[], now: number): void {
  db.write(() => {
    checkApplication(db)
    db.exec(VERSION_TABLE)
    const applied = db.all('SELECT version, breaking FROM schema_versions ORDER BY version')
    const supported = migrations.at(-1)?.version ?? 0
    const unknown = applied.find((row) => Number(row['version']) > supported && row['breaking'] === 1)
    if (unknown !== undefined) {
      throw new SqliteFailure({ kind: 'too-new', found: Number(applied.at(-1)?.['version']), supported })
    }
    const done = new Set(applied.map((row) => Number(row['version'])))
    for (const { version, name, breaking, sql } of migrations) {
      if (done.has(version)) continue
      // The version is claimed before its statements run: a second claim of it fails here and not halfway.
      db.run(
        'INSERT INTO schema_versions (version, name, breaking, applied_at) VALUES (?, ?, ?, ?)',
        version,
        name,
        breaking ? 1 : 0,
        now,
      )
      db.exec(sql)
    }
    if (Number(db.pragma('application_id')) === 0) db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  })
}
