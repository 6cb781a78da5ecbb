import type { Driver } from '../../log/contract.js'
import { Channel } from './channel.js'
import { migrate } from './migrate.js'
import { describeTarget, parseOptions, type PostgresOptions, type Settings } from './options.js'
import { type LentPool, makePool } from './connection/own-pool.js'
import type { PgPoolLike } from './pg-client.js'
import { PostgresDriver } from './postgres-driver.js'
import { PROBE_TEXT, type Probe, readProbe } from './connection/probe.js'
import { Sessions } from './connection/sessions.js'

const MAX_BATCH = 256
const PARALLEL_BATCHES = 4

/**
 * Opens a Postgres database, 13 or later, and sets up its schema if needed. A pool that you pass is shared, and
 * stays open when the driver closes.
 */
export async function openPostgres(
  target: string | { readonly pool: PgPoolLike },
  options: PostgresOptions = {},
): Promise<Driver> {
  const settings = parseOptions(target, options)
  const opened: LentPool[] = []
  try {
    return await connect(settings, opened)
  } catch (error) {
    await Promise.allSettled(opened.map((pool) => pool.end()))
    throw error
  }
}

async function connect(settings: Settings, opened: LentPool[]): Promise<Driver> {
  const own = async (url: string, size: number) => {
    const lent = await makePool(settings, url, size)
    opened.push(lent)
    return lent.pool
  }
  const pool = settings.pool ?? (await own(settings.url as string, settings.poolSize))
  const stopIgnoring = settings.pool === undefined ? undefined : ignoreIdleErrors(settings.pool)
  const sessions = new Sessions(pool, {
    target: describeTarget(settings),
    connectTimeoutMs: settings.connectTimeoutMs,
    statementTimeoutMs: settings.statementTimeoutMs,
  })
  const { probe, pooled } = await probeServer(sessions, settings)
  sessions.prepare = settings.prepare ?? !pooled
  sessions.explicit = probe.isolation !== 'read committed'
  await migrate(sessions, settings)
  // Not before: whoever fails to open ends the pool, which waits for its connections.
  if (settings.pool === undefined) sessions.keepClients()

  const listenUrl = settings.listenUrl ?? (pooled ? undefined : settings.url)
  const listenPool = listenUrl ? await own(listenUrl, 1) : pooled ? undefined : settings.pool
  const channel = new Channel(sessions, {
    schema: settings.schema,
    quotedSchema: settings.quotedSchema,
    listenPool,
    notify: settings.notify,
    timeoutMs: settings.connectTimeoutMs,
  })
  return new PostgresDriver({
    settings,
    sessions,
    channel,
    durability: probe.durability,
    capabilities: {
      multiProcess: true,
      persistent: true,
      storeAtomic: true,
      transactions: true,
      watch: channel.canSubscribe,
      messages: channel.canSubscribe,
      parallelBatches: Math.min(PARALLEL_BATCHES, settings.poolSize),
      maxBatch: MAX_BATCH,
    },
    async end() {
      stopIgnoring?.()
      await Promise.all(opened.map((lent) => lent.end()))
    },
  })
}

/** Asks the server what it is, and finds out whether there is a pooler in between. */
async function probeServer(sessions: Sessions, settings: Settings): Promise<{ probe: Probe; pooled: boolean }> {
  const client = await sessions.borrow(settings.connectTimeoutMs)
  let destroy = true
  try {
    const [row] = await sessions.sendOn(client, { text: PROBE_TEXT, values: [] })
    destroy = false
    const probe = readProbe(row ?? [], describeTarget(settings))
    return { probe, pooled: settings.pgbouncer ?? client.processID !== probe.serverProcessId }
  } finally {
    client.release(destroy)
  }
}

// A pool without a listener for errors ends the process when the server closes an idle connection.
function ignoreIdleErrors(pool: PgPoolLike): () => void {
  const emitter = pool as Partial<Record<'on' | 'removeListener', (event: string, listener: () => void) => unknown>>
  const ignore = () => {}
  emitter.on?.('error', ignore)
  return () => emitter.removeListener?.('error', ignore)
}
