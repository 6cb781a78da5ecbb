import type { Redis } from 'ioredis'

/** Removes what a test left on a server that others use too. */
export async function removeKeys(node: Redis, prefix: string): Promise<void> {
  const keys: string[] = []
  for await (const batch of node.scanStream({ match: `${prefix}:*`, count: 1000 })) keys.push(...(batch as string[]))
  for (const key of keys) await node.unlink(key)
}
