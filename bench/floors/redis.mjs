// @ts-check
import { Redis } from 'ioredis'

/**
 * One SET per write over one connection; a crowd is pipelines of SETs.
 * @param {string} url
 * @param {string} prefix
 * @returns {Promise<import('../backends.mjs').Floor>}
 */
export async function openRedisFloor(url, prefix) {
  const client = new Redis(url)
  let id = 0
  return {
    write: (bytes) => client.set(`${prefix}:${id++}`, bytes),
    async writeTogether(list) {
      const pipeline = client.pipeline()
      for (const bytes of list) pipeline.set(`${prefix}:${id++}`, bytes)
      const results = (await pipeline.exec()) ?? []
      for (const [error] of results) if (error) throw error
    },
    putState: (name, json) => client.set(`${prefix}:state:${name}`, json),
    getState: async (name) => JSON.parse((await client.get(`${prefix}:state:${name}`)) ?? ''),
    close: () => client.quit(),
  }
}

/** @param {string} url @param {string} setting */
export async function setAppendFsync(url, setting) {
  const client = new Redis(url)
  await client.config('SET', 'appendfsync', setting)
  await client.quit()
}

/** Removes every key with this in its name. @param {string} url @param {string} part */
export async function removeKeys(url, part) {
  const client = new Redis(url)
  for await (const keys of client.scanStream({ match: `*${part}*`, count: 1000 })) {
    if (keys.length > 0) await client.unlink(...keys)
  }
  await client.quit()
}
