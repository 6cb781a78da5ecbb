import { MissingDependencyError } from '../../core/errors.js'

/** One statement, in the form that `pg` takes. */
export interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  /** Makes it a prepared statement of its connection. */
  readonly name?: string
  readonly rowMode: 'array'
  readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown }
  /** Milliseconds after which `pg` gives up waiting. */
  readonly query_timeout?: number
}

/** A statement of the user's: rows as objects, values by the parsers that they set. */
interface PgUserQuery {
  readonly text: string
  readonly values: unknown[]
  /** Always by the protocol that refuses two statements in one. */
  readonly queryMode: 'extended'
}

interface PgResult {
  readonly rows: readonly unknown[]
  readonly rowCount?: number | null
  /** The first word of what was done: COMMIT, or ROLLBACK for a commit that could not be. */
  readonly command?: string
}

/** What we use of a client that a pool lends. */
export interface PgClientLike {
  query(query: PgQuery | PgUserQuery): Promise<PgResult>
  query(text: string): Promise<unknown>
  /** Gives it back; with an error or `true` it is thrown away. */
  release(destroy?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'end', listener: () => void): unknown
  on(event: 'notification', listener: (message: PgNotification) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  /** The process id that the other end gave when connecting. A pooler gives one of its own. */
  readonly processID?: number | null
}

interface PgNotification {
  readonly channel: string
  readonly payload?: string | undefined
}

/** What we use of a pool: `new pg.Pool()` fits. */
export interface PgPoolLike {
  connect(): Promise<PgClientLike>
}

/** A pool that we made, and end. */
interface OwnPool extends PgPoolLike {
  end(): Promise<void>
  on(event: string, listener: (...args: never[]) => void): unknown
}

interface OwnPoolConfig {
  readonly connectionString: string
  readonly max: number
  readonly connectionTimeoutMillis: number
  readonly idleTimeoutMillis: number
  readonly application_name: string
  readonly keepAlive: boolean
  readonly onConnect?: (client: PgClientLike) => Promise<void>
}

type PoolConstructor = new (config: OwnPoolConfig) => OwnPool

/** Loads `pg`, which only users of Postgres have to install. */
export async function loadPoolConstructor(): Promise<PoolConstructor> {
  try {
    const pg = await import('pg')
    return pg.default.Pool as unknown as PoolConstructor
  } catch (cause) {
    throw new MissingDependencyError('pg', 'npm install pg', { cause })
  }
}

/** Everything as the text the server sent: parsers that the user set for all of `pg` must not change our numbers. */
export const TEXT_ONLY: PgQuery['types'] = { getTypeParser: () => (text) => text }
