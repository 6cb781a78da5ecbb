import type { Value } from '../codec/value.js'
import type { SqlSession } from '../log/contract.js'

/** One chunk on its way into the sink. */
export interface Row<Item> {
  /** Derived from pipeline, document, content and position: the same chunk always has the same id. */
  readonly id: string
  readonly document: string
  /** The hash of the content that the chunk came from. */
  readonly hash: string
  /** From 0. */
  readonly position: number
  readonly item: Item
  /** The document's metadata. */
  readonly metadata: Readonly<Record<string, Value>>
}

/** Identifies the rows to remove. */
export interface Removal {
  readonly document: string
  /** Rows of this content stay. Absent: all rows of the document are removed. */
  readonly keepHash?: string
}

/** Writes with SQL in the same transaction as the progress: exactly once. SQLite and Postgres only. */
export interface TransactionalSink<Item> {
  readonly transactional: true
  /** Creates what the sink needs, such as its table. Called at the start of every run; must be safe to repeat. */
  readonly setUp?: (sql: SqlSession) => Promise<void>
  readonly write: (rows: readonly Row<Item>[], sql: SqlSession) => Promise<void>
  readonly remove: (removal: Removal, sql: SqlSession) => Promise<void>
}

/**
 * Writes to an external system. A batch may be written again after a crash: rows must replace those with the same id.
 */
export interface UpsertSink<Item> {
  readonly transactional?: false
  readonly setUp?: () => Promise<void>
  readonly write: (rows: readonly Row<Item>[]) => Promise<void>
  readonly remove: (removal: Removal) => Promise<void>
}

/** Where the chunks of a pipeline end up. */
export type Sink<Item> = TransactionalSink<Item> | UpsertSink<Item>
