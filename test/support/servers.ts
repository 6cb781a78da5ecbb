import {
  MissingServerError,
  startPostgres,
  startRedis,
  startRedisCluster,
  startS3,
} from '../../scripts/services/index.mjs'

// One server per test process at most, ended by the services module when the process ends.
let postgres: Promise<string | undefined> | undefined
let redis: Promise<string | undefined> | undefined
let s3: Promise<string> | undefined
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

/** The address of a bucket of an S3-compatible server, as an archive takes it. Its credentials are S3RVER and S3RVER. */
export function s3Url(): Promise<string> {
  const given = process.env['HOLDFAST_TEST_S3_URL']
  if (given) return Promise.resolve(given)
  s3 ??= startS3().then(({ url }) => url)
  return s3
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
