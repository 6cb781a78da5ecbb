import { setTimeout as sleep } from 'node:timers/promises'
import type { Settings } from '../options.js'
import { loadPoolConstructor, type PgClientLike, type PgPoolLike, TEXT_ONLY } from '../pg-client.js'

/** Our own pool, and how to close it. */
export interface LentPool {
  readonly pool: PgPoolLike
  end(): Promise<void>
}

const GRACE_MS = 1000

/**
 * Opens nothing yet: the first connection is made when it is needed. `size` 1 and `url` are for the connection that
 * listens.
 */
export async function makePool(settings: Settings, url: string, size: number): Promise<LentPool> {
  const Pool = await loadPoolConstructor()
  const pool = new Pool({
    connectionString: url,
    max: size,
    connectionTimeoutMillis: settings.connectTimeoutMs,
    idleTimeoutMillis: 60_000,
    application_name: settings.applicationName,
    keepAlive: true,
    onConnect: (client) => prepareSession(client, settings),
  })
  const clients = new Set<PgClientLike>()
  pool.on('connect', (client: PgClientLike) => clients.add(client))
  pool.on('remove', (client: PgClientLike) => clients.delete(client))
  // An idle connection that the server closes is simply gone; without a listener it would end the process.
  pool.on('error', () => {})
  return {
    pool,
    async end() {
      await pool.end()
      // A connection whose other end is gone never says goodbye, and would keep the process alive for minutes.
      const deadline = performance.now() + GRACE_MS
      while (clients.size > 0 && performance.now() < deadline) await sleep(10)
      for (const client of clients) destroySocket(client)
    },
  }
}

/**
 * Sets what our own session needs, unless there is a pooler in between: there, a session is not ours to change. Poolers
 * report a different process id than the server's, and that is how they are recognized.
 */
async function prepareSession(client: PgClientLike, settings: Settings): Promise<void> {
  if (settings.pgbouncer === true) return
  await client.query({
    text: `SELECT set_config('default_transaction_isolation', 'read committed', false),
        CASE WHEN current_setting('statement_timeout') = '0' THEN set_config('statement_timeout', $2, false) END
      WHERE pg_backend_pid() = $1::integer`,
    // Less than our own timeout, because the server's answer is definite: it has rolled back.
    values: [client.processID ?? 0, String(Math.ceil(settings.statementTimeoutMs * 0.9))],
    rowMode: 'array',
    types: TEXT_ONLY,
    query_timeout: settings.connectTimeoutMs,
  })
}

function destroySocket(client: PgClientLike): void {
  const { connection } = client as { connection?: { stream?: { destroy?(): void } } }
  connection?.stream?.destroy?.()
}
