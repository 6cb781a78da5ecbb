import { randomUUID } from 'node:crypto'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { removeKeys } from '../support/redis-keys.js'
import { rounds } from '../support/scale.js'
import { redisUrl } from '../support/servers.js'

const url = await redisUrl()

describe.skipIf(url === undefined)('on one server', () => {
  driverSuite(
    'redis',
    async () => {
      const prefix = `test-${randomUUID()}`
      return {
        open: () => openRedis(url as string, { prefix }),
        async cleanup() {
          const redis = new Redis(url as string)
          await removeKeys(redis, prefix)
          redis.disconnect()
        },
      }
    },
    { framework: { describe, it, afterAll }, shared: true, rounds: rounds(40, 1000) },
  )
})
