// @ts-check
import { findChromium } from './chromium.mjs'
import { MissingServerError } from './missing-server.mjs'
import { startPgBouncer } from './pgbouncer.mjs'
import { startPostgres } from './postgres.mjs'
import { startRedis } from './redis.mjs'
import { startRedisCluster } from './redis-cluster.mjs'
import { startS3 } from './s3.mjs'

export { findChromium } from './chromium.mjs'
export { MissingServerError } from './missing-server.mjs'
export { startPgBouncer } from './pgbouncer.mjs'
export { freePort } from './ports.mjs'
export { startPostgres } from './postgres.mjs'
export { startRedis } from './redis.mjs'
export { startRedisCluster } from './redis-cluster.mjs'
export { startS3 } from './s3.mjs'

/** @typedef {'postgres' | 'redis' | 'redis-cluster' | 'pgbouncer' | 'chromium' | 's3'} ServiceName */
/** @typedef {{ name: ServiceName, variable: string, value: string, about: string }} RunningService */

/**
 * @typedef {object} Services
 * @property {Record<string, string>} env the variables that the tests read; a server that isn't there has none
 * @property {RunningService[]} running the same, for people
 * @property {() => Promise<void>} stop
 */

/** @type {Record<ServiceName, string>} */
const variables = {
  postgres: 'HOLDFAST_TEST_POSTGRES_URL',
  redis: 'HOLDFAST_TEST_REDIS_URL',
  'redis-cluster': 'HOLDFAST_TEST_REDIS_CLUSTER_URLS',
  pgbouncer: 'HOLDFAST_TEST_PGBOUNCER_URL',
  chromium: 'HOLDFAST_TEST_CHROMIUM',
  s3: 'HOLDFAST_TEST_S3_URL',
}

/**
 * Starts (or finds) real servers, at the same time. They end with `stop()`, and in any case with this process.
 * @param {{ need?: readonly ServiceName[], log?: (line: string) => void, ci?: boolean }} [options]
 *   `ci`: a missing server is an error; otherwise it is a loud notice and its variable is left out
 * @returns {Promise<Services>}
 */
export async function startServices({
  need = ['postgres', 'redis', 'redis-cluster'],
  log = console.error,
  ci = process.env['CI'] === 'true',
} = {}) {
  /** @type {(() => Promise<void>)[]} */
  const stops = []

  /**
   * @param {ServiceName} name
   * @returns {Promise<RunningService | undefined>}
   */
  async function provide(name) {
    const variable = variables[name]
    const given = process.env[variable]
    if (given) return { name, variable, value: given, about: 'given in the environment' }
    const began = performance.now()
    try {
      const server = await start(name)
      stops.push(server.stop)
      const took = `${((performance.now() - began) / 1000).toFixed(1)} s`
      return { name, variable, value: server.value, about: `${server.version} (${server.from}), started in ${took}` }
    } catch (error) {
      if (ci || !(error instanceof MissingServerError)) throw error
      const frame = '!'.repeat(100)
      log(`${frame}\n!! ${name}: TESTS THAT NEED IT WILL BE SKIPPED\n!! ${error.message}\n${frame}`)
      return undefined
    }
  }

  /** @type {Promise<RunningService | undefined> | undefined} PgBouncer waits for the Postgres started beside it */
  let postgres

  /** @param {ServiceName} name */
  async function start(name) {
    switch (name) {
      case 'postgres': {
        const version = Number(process.env['HOLDFAST_TEST_POSTGRES_VERSION']) || undefined
        const server = await startPostgres(version ? { version } : {})
        return { ...server, value: server.url }
      }
      case 'redis': {
        const server = await startRedis({ log, install: ci })
        return { ...server, value: server.url }
      }
      case 'redis-cluster': {
        const cluster = await startRedisCluster({ nodes: 3, log, install: ci })
        return { ...cluster, value: cluster.urls.join(',') }
      }
      case 'chromium': {
        const { path, from } = await findChromium({ log })
        return { value: path, version: 'Chromium', from, stop: async () => {} }
      }
      case 's3': {
        const server = await startS3()
        return { ...server, value: server.url }
      }
      case 'pgbouncer': {
        const behind = await (postgres ??= provide('postgres'))
        if (!behind)
          throw new MissingServerError('PgBouncer', 'It needs a Postgres behind it: see the notice about that.')
        const server = await startPgBouncer({ postgresUrl: behind.value, log })
        return { ...server, value: server.url }
      }
    }
  }

  async function stop() {
    await Promise.all(stops.splice(0).map((end) => end()))
  }

  if (need.includes('postgres')) postgres = provide('postgres')
  const results = await Promise.allSettled(need.map((name) => (name === 'postgres' && postgres) || provide(name)))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) {
    // The others have started; with an error in hand nobody else would stop them before the process ends.
    await stop()
    throw failed.reason
  }
  const running = results.flatMap((result) => (result.status === 'fulfilled' && result.value ? [result.value] : []))
  return { env: Object.fromEntries(running.map(({ variable, value }) => [variable, value])), running, stop }
}
