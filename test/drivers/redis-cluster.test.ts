import { randomUUID } from 'node:crypto'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { Redis } from 'ioredis'
import { afterAll, describe, it } from 'vitest'
import { removeKeys } from '../support/redis-keys.js'
import { rounds } from '../support/scale.js'
import { redisClusterUrls } from '../support/servers.js'

const clusterUrls = await redisClusterUrls()

describe.skipIf(clusterUrls === undefined)('on a cluster of three nodes', () => {
  driverSuite(
    'redis cluster',
    async () => {
      const prefix = `test-${randomUUID()}`
      return {
        open: () => openRedis(clusterUrls as string[], { prefix }),
        async cleanup() {
          const nodes = (clusterUrls as string[]).map((node) => new Redis(node))
          await Promise.all(nodes.map((node) => removeKeys(node, prefix)))
          for (const node of nodes) node.disconnect()
        },
      }
    },
    { framework: { describe, it, afterAll }, shared: true, rounds: rounds(10, 1000) },
  )
})
