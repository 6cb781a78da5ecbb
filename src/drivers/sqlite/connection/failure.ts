/** Why something failed in the worker, as plain data that can cross the thread boundary. */
export type Failure =
  | {
      readonly kind: 'sqlite'
      /** SQLite's extended result code; its low byte is the primary one. */
      readonly errcode: number
      readonly message: string
      readonly written: 'nothing' | 'unknown'
    }
  | { readonly kind: 'no-engine'; readonly package: string; readonly message: string }
  | { readonly kind: 'foreign'; readonly found: string }
  /** The name of the file leads to another file, or to none. */
  | { readonly kind: 'file-gone'; readonly written: 'nothing' | 'unknown' }
  | { readonly kind: 'too-new'; readonly found: number; readonly supported: number }
  /** Of a transaction with the user's own SQL, which was rolled back. */
  | { readonly kind: 'timeout'; readonly timeoutMs: number }
  | { readonly kind: 'own-table'; readonly sql: string; readonly table: string }
  | { readonly kind: 'statement'; readonly sql: string; readonly message: string; readonly errcode: number | undefined }
  | { readonly kind: 'bug'; readonly message: string; readonly written: 'nothing' | 'unknown' }

/** Primary result codes, by SQLite's own names. */
export const SQLITE = {
  /** Such as a table that isn't there. */
  ERROR: 1,
  BUSY: 5,
  LOCKED: 6,
  NOMEM: 7,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  PROTOCOL: 15,
  TOOBIG: 18,
  CONSTRAINT: 19,
  PERM: 3,
  NOTADB: 26,
  /** An extended code of READONLY. */
  READONLY_DBMOVED: 1032,
} as const

export class SqliteFailure extends Error {
  readonly failure: Failure

  constructor(failure: Failure) {
    super('message' in failure ? failure.message : failure.kind)
    this.failure = failure
  }
}

/** What was thrown, with what is known of the write it interrupted. */
export function captureFailure(thrown: unknown, written: 'nothing' | 'unknown'): SqliteFailure {
  if (thrown instanceof SqliteFailure) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  const errcode = resultCode(thrown)
  if (errcode === undefined) return new SqliteFailure({ kind: 'bug', message, written })
  return new SqliteFailure({ kind: 'sqlite', errcode, message, written })
}

export function resultCode(thrown: unknown): number | undefined {
  const code = (thrown as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code : undefined
}

/** True while another connection is in the way, which passes. */
export function isBusy(thrown: unknown): boolean {
  const code = (resultCode(thrown) ?? 0) & 0xff
  return code === SQLITE.BUSY || code === SQLITE.PROTOCOL
}
