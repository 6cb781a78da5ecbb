import { setTimeout as delay } from 'node:timers/promises'
import type { Scrubbed } from '../../../log/contract.js'
import type { RedisLike } from '../client.js'
import { serversOf } from './generations.js'
import { parseInfo } from './probe.js'

const POLL_MS = 50
const MOST_MS = 10 * 60_000

/** Has every server rewrite its persistence files, so that none of them contain what was removed. */
export async function scrubServers(client: RedisLike): Promise<Scrubbed> {
  const problems = await Promise.all(serversOf(client).map(rewrite))
  const problem = problems.find((found) => found !== undefined)
  if (problem === undefined) {
    return {
      complete: true,
      note: 'Redis rewrote its append-only file and its snapshot; replicas and backups keep their own.',
    }
  }
  return {
    complete: false,
    note: `Redis may still hold it in its files: ${problem} Run BGREWRITEAOF and BGSAVE on the server.`,
  }
}

/** What prevents it, if anything. */
async function rewrite(server: RedisLike): Promise<string | undefined> {
  try {
    const before = await persistence(server)
    if (before['aof_enabled'] === '1') {
      await whileBusy(() => server.call('bgrewriteaof'))
      const after = await settled(server, ['aof_rewrite_in_progress', 'aof_rewrite_scheduled'])
      if (after['aof_last_bgrewrite_status'] !== 'ok') return 'the last BGREWRITEAOF failed.'
    }
    const [, points = ''] = ((await server.call('config', 'get', 'save').catch(() => [])) ?? []) as string[]
    if (points !== '' || before['aof_enabled'] !== '1') {
      const last = Number(before['rdb_last_save_time'])
      await whileBusy(() => server.call('bgsave'))
      const after = await settled(server, ['rdb_bgsave_in_progress'])
      if (after['rdb_last_bgsave_status'] !== 'ok' || Number(after['rdb_last_save_time']) < last) {
        return 'the last BGSAVE failed.'
      }
    }
    return undefined
  } catch (error) {
    return `${(error as Error).message}.`
  }
}

// One that another began before may have read what was removed since: only one that starts now counts.
async function whileBusy(start: () => Promise<unknown>): Promise<void> {
  const deadline = performance.now() + MOST_MS
  for (;;) {
    try {
      await start()
      return
    } catch (error) {
      const isBusy = /in progress|already|another child|can't be scheduled/i.test((error as Error).message)
      if (!isBusy || performance.now() > deadline) throw error
    }
    await delay(POLL_MS)
  }
}

async function settled(server: RedisLike, flags: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const deadline = performance.now() + MOST_MS
  for (;;) {
    const info = await persistence(server)
    if (flags.every((flag) => info[flag] === '0')) return info
    if (performance.now() > deadline) throw new Error('the server did not finish writing its files')
    await delay(POLL_MS)
  }
}

async function persistence(server: RedisLike): Promise<Readonly<Record<string, string>>> {
  return parseInfo(String(await server.call('info', 'persistence')))
}
