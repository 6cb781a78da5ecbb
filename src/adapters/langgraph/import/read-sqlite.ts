import { existsSync } from 'node:fs'
import { NotFoundError } from '../../../errors.js'
import {
  type LangGraphSource,
  notLangGraph,
  type Serialized,
  type SourceCheckpoint,
  type SourceWrite,
} from './source.js'

type Row = Readonly<Record<string, unknown>>

/** The part of a SQLite client that is used here. */
interface SqliteLike {
  prepare(sql: string): { all(...values: (string | number)[]): unknown[] }
  close(): void
}

/** A file of `@langchain/langgraph-checkpoint-sqlite`. Only read: nothing in it changes. */
export async function openSqliteSource(path: string): Promise<LangGraphSource> {
  if (!existsSync(path)) throw new NotFoundError(`There is no file ${path}.`, 'Check the path.', { path })
  const { DatabaseSync } = (await import('@photostructure/sqlite')) as unknown as {
    readonly DatabaseSync: new (path: string, options: { readonly readOnly: boolean }) => SqliteLike
  }
  const db = new DatabaseSync(path, { readOnly: true })
  const all = (sql: string, ...values: (string | number)[]): Row[] => db.prepare(sql).all(...values) as Row[]
  const tables = new Set(all("SELECT name FROM sqlite_master WHERE type = 'table'").map(({ name }) => name))
  for (const table of ['checkpoints', 'writes']) {
    if (tables.has(table)) continue
    db.close()
    throw notLangGraph('in this file', table)
  }
  return {
    name: 'SQLite',
    threads: async (after, limit) =>
      all(
        'SELECT DISTINCT thread_id FROM checkpoints WHERE thread_id > ? ORDER BY thread_id LIMIT ?',
        after ?? '',
        limit,
      ).map((row) => String(row['thread_id'])),
    checkpoints: async (thread) =>
      all(
        `SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
         WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns`,
        thread,
      ).map(readCheckpoint),
    writes: async (thread) =>
      all(
        `SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value FROM writes
         WHERE thread_id = ? ORDER BY checkpoint_id, task_id, idx`,
        thread,
      ).map(readWrite),
    besides: async () => [],
    close: async () => db.close(),
  }
}

function readCheckpoint(row: Row): SourceCheckpoint {
  return {
    ns: String(row['checkpoint_ns']),
    id: String(row['checkpoint_id']),
    parent: row['parent_checkpoint_id'] == null ? undefined : String(row['parent_checkpoint_id']),
    checkpoint: serialized(row['type'], row['checkpoint']),
    metadata: serialized(row['type'], row['metadata']),
  }
}

function readWrite(row: Row): SourceWrite {
  return {
    ns: String(row['checkpoint_ns']),
    checkpoint: String(row['checkpoint_id']),
    task: String(row['task_id']),
    index: Number(row['idx']),
    channel: String(row['channel']),
    value: serialized(row['type'], row['value']),
  }
}

function serialized(type: unknown, value: unknown): Serialized {
  return {
    type: type == null ? 'json' : String(type),
    bytes: value instanceof Uint8Array ? value : String(value ?? ''),
  }
}
