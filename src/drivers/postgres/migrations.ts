import { readFile } from 'node:fs/promises'

export interface Migration {
  readonly version: number
  /** File in the folder `migrations`. Released files never change: a change is a new file with a new number. */
  readonly file: string
  /** Code that does not know this migration can't work with the schema anymore. */
  readonly breaking: boolean
  /** In a transaction after those before it: calls of functions that they replaced, which waited for them, are then over. */
  readonly after?: true
}

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, file: '0001-tables.sql', breaking: true },
  { version: 2, file: '0002-head.sql', breaking: true },
  { version: 3, file: '0003-append.sql', breaking: true },
  { version: 4, file: '0004-append-one.sql', breaking: true },
  { version: 5, file: '0005-prune.sql', breaking: true },
  { version: 6, file: '0006-erase.sql', breaking: true },
  { version: 7, file: '0007-reindex.sql', breaking: true },
  // Code that does not know of items neither reads nor writes any, and its logs are as they were.
  { version: 8, file: '0008-items.sql', breaking: false },
  { version: 9, file: '0009-write-items.sql', breaking: false },
  { version: 10, file: '0010-append-carrying.sql', breaking: false },
  { version: 11, file: '0011-extend-items.sql', breaking: false },
  { version: 12, file: '0012-scan-items.sql', breaking: false },
  // A log that was cut by it says so in its first entry, which code that does not know it refuses.
  { version: 13, file: '0013-prune-with-stand-in.sql', breaking: false },
  { version: 14, file: '0014-listened-topics.sql', breaking: false },
  { version: 15, file: '0015-due.sql', breaking: false },
  { version: 16, file: '0016-take-due.sql', breaking: false },
  { version: 17, file: '0017-prefer-warm.sql', breaking: false },
  // Replaces functions by others that take and return the same.
  { version: 18, file: '0018-lean-appends.sql', breaking: false },
  { version: 19, file: '0019-record-step.sql', breaking: false },
  { version: 20, file: '0020-append-several.sql', breaking: false },
  { version: 21, file: '0021-record-carrying.sql', breaking: false },
  { version: 22, file: '0022-status-groups.sql', breaking: false },
  { version: 23, file: '0023-index-status-groups.sql', breaking: false, after: true },
]

/** The SQL of a migration for this schema. `:schema` is the only thing that is filled in. */
export async function readMigration(migration: Migration, quotedSchema: string): Promise<string> {
  const text = await readFile(new URL(`./migrations/${migration.file}`, import.meta.url), 'utf8')
  return text.replaceAll(':schema', quotedSchema)
}
