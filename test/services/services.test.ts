import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, it, type TestContext } from 'vitest'
import { MissingServerError, startPostgres, startRedis, startServices } from '../../scripts/services/index.mjs'

/** On a contributor's machine without a server the tests of the servers are skipped; in CI that is an error. */
async function orSkip<T>(context: TestContext, start: () => Promise<T>): Promise<T> {
  try {
    return await start()
  } catch (error) {
    if (error instanceof MissingServerError && process.env['CI'] !== 'true') context.skip(error.message)
    throw error
  }
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows
  } finally {
    await client.end()
  }
}

async function redis<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url)
  try {
    return await use(client)
  } finally {
    client.disconnect()
  }
}

/** A zombie has ended: it waits only for an init process to count it. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : ''
  return !/\) Z /.test(stat)
}

describe('the Redis of the tests', () => {
  it('comes back on the same port with its data after SIGKILL, and empty when wiped', async (context) => {
    const server = await orSkip(context, () => startRedis({ appendfsync: 'everysec', requirepass: 'p@ss word' }))
    try {
      await redis(server.url, (client) => client.set('a', '1'))
      await server.kill('SIGKILL')
      await server.restart()
      expect(await redis(server.url, (client) => client.get('a'))).toBe('1')
      expect(await server.command('PING')).toBe('PONG')
      const fsync = await redis(server.url, (client) => client.config('GET', 'appendfsync'))
      expect(fsync).toEqual(['appendfsync', 'everysec'])
      await server.restart({ wipe: true })
      expect(await redis(server.url, (client) => client.get('a'))).toBeNull()
    } finally {
      await server.stop()
    }
    expect(existsSync(server.dir)).toBe(false)
  })
})

describe('the Postgres of the tests', () => {
  it('comes back on the same port with its data after an immediate stop, and after SIGKILL', async (context) => {
    const server = await orSkip(context, () => startPostgres())
    try {
      await query(server.url, 'create table t (a int)')
      await query(server.url, 'insert into t values (1)')
      await server.restart({ immediate: true })
      expect(await query(server.url, 'select a from t')).toEqual([{ a: 1 }])
      await server.kill('SIGKILL')
      await server.restart({ settings: { synchronous_commit: 'off' } })
      expect(await query(server.url, 'select a from t')).toEqual([{ a: 1 }])
      expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }])
      expect(await query(server.url, 'show synchronous_commit')).toEqual([{ synchronous_commit: 'off' }])
    } finally {
      await server.stop()
    }
    expect(existsSync(server.dataDir)).toBe(false)
  })
})

describe('the servers of the tests', () => {
  it('end, and their folders go, when the process that started them is killed with SIGKILL', async (context) => {
    await orSkip(context, async () => (await startRedis()).stop())
    const services = new URL('../../scripts/services/index.mjs', import.meta.url).href
    const script = `
      import { startRedis } from ${JSON.stringify(services)}
      const server = await startRedis()
      console.log(JSON.stringify({ pid: server.pid(), dir: server.dir }))
      setInterval(() => {}, 1000)`
    const parent = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string]
    const { pid, dir } = JSON.parse(line) as { pid: number; dir: string }
    expect(existsSync(dir)).toBe(true)
    parent.kill('SIGKILL')
    // The folder is removed after the server has ended, so that one look is enough.
    await expect.poll(() => existsSync(dir)).toBe(false)
    expect(isRunning(pid)).toBe(false)
  })

  it('are not started where the environment names others', async () => {
    const before = process.env['HOLDFAST_TEST_POSTGRES_URL']
    process.env['HOLDFAST_TEST_POSTGRES_URL'] = 'postgres://elsewhere/db'
    try {
      const services = await startServices({ need: ['postgres'] })
      expect(services.env).toEqual({ HOLDFAST_TEST_POSTGRES_URL: 'postgres://elsewhere/db' })
      await services.stop()
    } finally {
      if (before === undefined) delete process.env['HOLDFAST_TEST_POSTGRES_URL']
      else process.env['HOLDFAST_TEST_POSTGRES_URL'] = before
    }
  })
})
