import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { RedisServer } from '../../scripts/services/redis.mjs'

async function newestFile(server: RedisServer): Promise<string> {
  const folder = join(server.dir, 'appendonlydir')
  const names = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof')).sort()
  return join(folder, names.at(-1) as string)
}

/** Where the append-only file ends. While a sync is under way, what was acknowledged waits to be written to it. */
export async function mark(server: RedisServer): Promise<number> {
  await expect.poll(() => server.command('INFO', 'persistence'), { timeout: 600_000 }).toContain('aof_buffer_length:0')
  return (await stat(await newestFile(server))).size
}

/** Power loss: the server is gone, and of what it acknowledged only the part up to a mark reached the disk. */
export async function losePower(server: RedisServer, kept: number): Promise<void> {
  await server.kill('SIGKILL')
  await truncate(await newestFile(server), kept)
  await server.restart()
}
