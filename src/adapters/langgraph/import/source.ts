import { InvalidOptionError } from '../../../errors.js'

/** A checkpoint as a LangGraph database keeps it. Serialized values are still serialized. */
export interface SourceCheckpoint {
  readonly ns: string
  readonly id: string
  readonly parent: string | undefined
  /** Without its channel values if these are kept separately. */
  readonly checkpoint: Serialized
  readonly metadata: Serialized
  /** By channel, where they are kept apart. */
  readonly values?: ReadonlyMap<string, Serialized>
}

/** A write of a task that waits for the checkpoint after it. */
export interface SourceWrite {
  readonly ns: string
  readonly checkpoint: string
  readonly task: string
  /** Below 0 for the special ones: errors, interrupts, resumes. */
  readonly index: number
  readonly channel: string
  readonly value: Serialized
}

/** A value as LangGraph's serializer wrote it, or what a jsonb column made of it. */
export type Serialized = { readonly type: string; readonly bytes: Uint8Array | string } | { readonly json: unknown }

/** A database that an official saver wrote, opened to be read. */
export interface LangGraphSource {
  readonly name: 'SQLite' | 'Postgres'
  /** Ids of threads, ascending, above `after`; fewer than the limit only at the end. */
  threads(after: string | undefined, limit: number): Promise<readonly string[]>
  /** All checkpoints of a thread, by id: those are in the order of time. */
  checkpoints(thread: string): Promise<readonly SourceCheckpoint[]>
  /** All writes of a thread, by checkpoint, task and index. */
  writes(thread: string): Promise<readonly SourceWrite[]>
  /** What else it holds that is not imported, in plain words. */
  besides(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Opens `sqlite:agents.db`, the path of a file, or `postgres://…` (with `?schema=` if it is not public). */
export async function openSource(database: string): Promise<LangGraphSource> {
  if (typeof database !== 'string' || database === '')
    throw new InvalidOptionError('database', 'is not given', 'Pass sqlite:agents.db or postgres://user@host/database.')
  if (/^postgres(ql)?:/.test(database)) return (await import('./read-postgres.js')).openPostgresSource(database)
  if (/^(redis|rediss|memory|file|mongodb|https?):/.test(database)) {
    const scheme = database.slice(0, database.indexOf(':'))
    throw new InvalidOptionError(
      'database',
      `is a ${scheme} address`,
      'Pass a database of the official SQLite or Postgres saver: sqlite:agents.db or postgres://user@host/database.',
    )
  }
  return (await import('./read-sqlite.js')).openSqliteSource(database.replace(/^sqlite:(\/\/)?/, ''))
}

export function notLangGraph(where: string, table: string): InvalidOptionError {
  return new InvalidOptionError(
    'database',
    `has no table "${table}" ${where}`,
    'Pass a database that the official SQLite or Postgres saver of LangGraph.js wrote.',
  )
}
