import { MissingServerError, startPostgres, startRedis, startRedisCluster } from '../../scripts/services/index.mjs'

// One server per test process at most, ended by the services module when the process ends.
let postgres: Promise<string | undefined> | undefined
let redis: Promise<string | undefined> | undefined
let redisCluster: Promise<string[] | undefined> | undefined

/** A Postgres with fsync, of a given major version if asked. Undefined where there is none; with CI=true an error. */
export function postgresUrl(): Promise<string | undefined> {
  const given = process.env['HOLDFAST_TEST_POSTGRES_URL']
  if (given) return Promise.resolve(given)
  const version = Number(process.env['HOLDFAST_TEST_POSTGRES_VERSION']) || undefined
  postgres ??= orUndefined(async () => (await startPostgres(version ? { version } : {})).url)
  return postgres
}

/** A Redis with AOF and fsync always. Undefined where there is none; with CI=true that is an error. */
export function redisUrl(): Promise<string | undefined> {
  const given = process.env['HOLDFAST_TEST_REDIS_URL']
  if (given) return Promise.resolve(given)
  redis ??= orUndefined(async () => (await startRedis()).url)
  return redis
}

/** The nodes of a Redis Cluster of three masters. */
export function redisClusterUrls(): Promise<string[] | undefined> {
  const given = process.env['HOLDFAST_TEST_REDIS_CLUSTER_URLS']
  if (given) return Promise.resolve(given.split(','))
  redisCluster ??= orUndefined(async () => (await startRedisCluster()).urls)
  return redisCluster
}

/** For servers that a test starts for itself, to kill or to flush them. */
export async function orUndefined<Server>(start: () => Promise<Server>): Promise<Server | undefined> {
  try {
    return await start()
  } catch (error) {
    if (error instanceof MissingServerError && process.env['CI'] !== 'true') return undefined
    throw error
  }
}
