import { randomUUID } from 'node:crypto'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { driverSuite } from '#src/testing/driver-suite.js'
import { Redis } from 'ioredis'
import { describe } from 'vitest'
import { groupsOf } from '../support/groups.js'
import { removeKeys } from '../support/redis-keys.js'
import { rounds } from '../support/scale.js'
import { redisClusterUrls } from '../support/servers.js'

const clusterUrls = await redisClusterUrls()

/** What uses keys of several slots, or scripts whose keys must be in one. */
const SPREAD = [
  'append',
  'forks',
  'batches',
  'races',
  'prune',
  'erase',
  'blobs',
  'the index',
  'what is due',
  'labels',
  'pages',
  'tenants',
  'items',
  'items that appends carry',
  'items that are applied',
  'copies',
  'news',
  'opening and closing',
]

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
    { framework: groupsOf(SPREAD), shared: true, rounds: rounds(10, 1000) },
  )
})
