import { randomUUID } from 'node:crypto'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { Redis } from 'ioredis'
import { describe, it } from 'vitest'
import { redisClusterUrls, redisUrl } from '../support/servers.js'

const url = await redisUrl()
const clusterUrls = await redisClusterUrls()

async function removeKeys(node: Redis, prefix: string): Promise<void> {
  const keys: string[] = []
  for await (const batch of node.scanStream({ match: `${prefix}:*`, count: 1000 })) keys.push(...(batch as string[]))
  for (const key of keys) await node.unlink(key)
}

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
    { framework: { describe, it } },
  )
})

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
    { framework: { describe, it } },
  )
})
