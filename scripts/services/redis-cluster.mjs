// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from './redis.mjs'
import { makeRunFolder } from './run-folder.mjs'

const slotCount = 16_384

/**
 * @typedef {object} RedisCluster
 * @property {string[]} urls one for each node
 * @property {import('./redis.mjs').RedisServer[]} nodes to kill and restart one of them
 * @property {string} version
 * @property {string} from
 * @property {() => Promise<void>} stop
 */

/**
 * A real Redis Cluster on 127.0.0.1: masters only, all slots assigned, every node sees the cluster as ok.
 * @param {{ nodes?: number, log?: (line: string) => void, install?: boolean, folder?: string,
 *   config?: Record<string, string> }} [options]
 * @returns {Promise<RedisCluster>}
 */
export async function startRedisCluster({ nodes: count = 3, config = {}, ...options } = {}) {
  const runFolder = options.folder ? undefined : await makeRunFolder('redis-cluster')
  const folder = options.folder ?? /** @type {{ path: string }} */ (runFolder).path
  const started = await Promise.allSettled(
    Array.from({ length: count }, () =>
      startRedis({
        ...options,
        folder,
        config: { 'cluster-enabled': 'yes', 'cluster-node-timeout': '2000', ...config },
      }),
    ),
  )
  const nodes = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  async function stop() {
    await Promise.all(nodes.map((node) => node.stop()))
    await runFolder?.remove()
  }
  try {
    for (const result of started) if (result.status === 'rejected') throw result.reason
    await join(nodes)
  } catch (error) {
    await stop()
    throw error
  }
  const [{ version, from }] = /** @type {[import('./redis.mjs').RedisServer]} */ (nodes)
  return { urls: nodes.map((node) => node.url), nodes, version, from, stop }
}

/** @param {import('./redis.mjs').RedisServer[]} nodes */
async function join(nodes) {
  await Promise.all(
    nodes.map(async (node, index) => {
      // Different epochs from the start: nodes with the same one would argue over slots before they settle.
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
      await node.command('CLUSTER', 'ADDSLOTS', ...slotsOf(index, nodes.length))
    }),
  )
  const [first, ...others] = nodes
  if (!first) throw new Error('a cluster needs at least one node')
  for (const other of others) await first.command('CLUSTER', 'MEET', '127.0.0.1', String(other.port))

  const deadline = Date.now() + 30_000
  for (const node of nodes) {
    for (;;) {
      const info = await node.command('CLUSTER', 'INFO')
      // The state alone says ok too early on a node that hasn't heard of all the others yet.
      if (/cluster_state:ok/.test(info) && info.includes(`cluster_known_nodes:${nodes.length}\r\n`)) break
      if (Date.now() > deadline) throw new Error(`the Redis cluster did not form within 30 s:\n${info}`)
      await sleep(50)
    }
  }
}

/**
 * One by one rather than as a range: ADDSLOTSRANGE came with 7.0, and 6.2 is supported.
 * @param {number} index
 * @param {number} count
 */
function slotsOf(index, count) {
  const from = Math.floor((slotCount * index) / count)
  const to = Math.floor((slotCount * (index + 1)) / count)
  return Array.from({ length: to - from }, (_, offset) => String(from + offset))
}
