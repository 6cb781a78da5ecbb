import { randomUUID } from 'node:crypto'
import { HoldfastError } from '#src/core/errors.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import type { RedisLike } from '#src/drivers/redis/client.js'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import type { LogKey } from '#src/log/contract.js'
import type { CarriedWrite, NewItem } from '#src/log/store-contract.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../scripts/services/index.mjs'
import { rounds } from '../support/scale.js'
import { orUndefined, redisUrl } from '../support/servers.js'

type RedisDriver = Awaited<ReturnType<typeof openRedis>>

const url = await redisUrl()
const tenant = parseTenantId('tenant')
const NOW = 1_700_000_000_000
const DAY_MS = 24 * 60 * 60 * 1000
const cleanups: (() => unknown)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function ownServer(options: Parameters<typeof startRedis>[0] = {}) {
  const server = await orUndefined(() => startRedis(options))
  if (server === undefined) throw new Error('the server was there a moment ago')
  cleanups.push(() => server.stop())
  return server
}

async function opened(target: Parameters<typeof openRedis>[0], options: Parameters<typeof openRedis>[1] = {}) {
  const driver = await openRedis(target, options)
  cleanups.push(() => driver.close())
  return driver
}

/** A driver in a namespace of its own, and a look at what it leaves there. */
async function ownStore() {
  const prefix = `test-${randomUUID()}`
  const redis = new Redis(url as string)
  cleanups.push(() => redis.disconnect())
  const driver = await opened(url as string, { prefix, buckets: 3 })

  async function keysOf(kind: string): Promise<string[]> {
    const keys: string[] = []
    for await (const batch of redis.scanStream({ match: `${prefix}:*:${kind}*`, count: 1000 })) keys.push(...batch)
    return [...new Set(keys)].sort()
  }

  /** The rows of all buckets of one kind, with times as they are. */
  async function rowsOf(kind: string): Promise<string[]> {
    const indexes = await Promise.all((await keysOf('index')).map((key) => redis.zrange(key, '0', '-1')))
    return indexes
      .flat()
      .filter((row) => row.startsWith(`${kind}\0`))
      .map((row) => row.slice(2))
      .sort()
  }
  return { driver, redis, prefix, keysOf, rowsOf }
}

async function failure(work: Promise<unknown>): Promise<HoldfastError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof HoldfastError)) throw new Error(`expected a HoldfastError, got ${String(error)}`)
  return error
}

function makeItem(options: Partial<NewItem> = {}): NewItem {
  return { value: Buffer.from('value'), version: randomUUID(), at: NOW, expiresAt: null, fields: [], ...options }
}

async function put(driver: RedisDriver, key: string, item = makeItem(), now = NOW): Promise<NewItem> {
  expect(await driver.writeItems(tenant, [{ space: 's', key, item }], now)).toEqual([{ status: 'written' }])
  return item
}

async function remove(driver: RedisDriver, key: string, now = NOW): Promise<void> {
  expect(await driver.writeItems(tenant, [{ space: 's', key, item: null }], now)).toEqual([{ status: 'written' }])
}

async function versionOf(driver: RedisDriver, key: string, now = NOW): Promise<string | undefined> {
  return (await driver.readItems(tenant, 's', [key], { now }))[0]?.version
}

async function newLog(driver: RedisDriver): Promise<{ log: LogKey; incarnation: string }> {
  const log = { tenant, thread: parseThreadId(randomUUID()), branch: parseBranchId('main') }
  const { incarnation } = await mustAppend(driver, makeAppend(log, null))
  return { log, incarnation }
}

function carried(key: string, item: NewItem | null, at = NOW): CarriedWrite {
  return { seq: 0, space: 's', key, item, at }
}

describe.skipIf(url === undefined)('what items leave in redis', () => {
  it('is nothing a day after they are removed', async () => {
    const { driver, keysOf, rowsOf } = await ownStore()
    await put(driver, 'small', makeItem({ expiresAt: NOW + 10 }))
    await put(driver, 'large', makeItem({ value: Buffer.alloc(5000) }))
    await put(driver, 'swept', makeItem({ expiresAt: NOW + 10, value: Buffer.alloc(5000) }))
    await driver.readItems(tenant, 's', ['small'], { now: NOW, extendTo: NOW + 50 })
    expect((await rowsOf('x')).length).toBe(2)
    for (const key of ['small', 'large', 'never-there']) await remove(driver, key, NOW + 5)
    expect(await driver.sweepItems(NOW + 10, 100)).toBe(1)
    expect(await rowsOf('x')).toEqual([])
    expect(await rowsOf('i')).toEqual([])
    expect((await rowsOf('r')).length).toBe(4)
    expect(await driver.sweepItems(NOW + DAY_MS, 100)).toBe(0)
    expect((await rowsOf('r')).length).toBe(4)
    expect(await driver.sweepItems(NOW + DAY_MS + 5, 100)).toBe(0)
    expect((await rowsOf('r')).length).toBe(1)
    expect(await driver.sweepItems(NOW + DAY_MS + 10, 100)).toBe(0)
    expect([...(await keysOf('items')), ...(await keysOf('keys')), ...(await rowsOf('r'))]).toEqual([])
  })

  it('holds no value that was overwritten with a small one, and only one row for each expiry', async () => {
    const { driver, redis, keysOf, rowsOf } = await ownStore()
    for (const expiresAt of [NOW + 10, NOW + 20, null, NOW + 30]) {
      await put(driver, 'k', makeItem({ expiresAt, value: Buffer.alloc(3000, 1) }))
      expect((await rowsOf('x')).length).toBe(expiresAt === null ? 0 : 1)
    }
    const [items = ''] = await keysOf('items')
    expect((await redis.hkeys(items)).sort()).toEqual(['mk', 'vk'])
    await put(driver, 'k')
    expect(await redis.hkeys(items)).toEqual(['mk'])
  })

  it('forgets many removed items in one sweep that may remove few', async () => {
    const { driver, rowsOf } = await ownStore()
    const keys = Array.from({ length: 600 }, (_, i) => `k${i}`)
    await driver.writeItems(
      tenant,
      keys.map((key) => ({ space: 's', key, item: null })),
      NOW,
    )
    expect((await rowsOf('r')).length).toBe(600)
    await driver.sweepItems(NOW + DAY_MS, 1)
    expect(await rowsOf('r')).toEqual([])
  })

  it('agrees with its index after any operations', async () => {
    const { driver, redis, keysOf, rowsOf } = await ownStore()
    const { log, incarnation } = await newLog(driver)
    const spaces = ['s', 't', 'é']
    for (let i = 0; i < rounds(300); i++) {
      const [space, key] = [spaces[i % 3] as string, `k${Math.floor(Math.random() * 4)}`]
      const now = NOW + i
      const value = Buffer.alloc(Math.random() < 0.3 ? 3000 : 10)
      const item = makeItem({ at: now, value, expiresAt: Math.random() < 0.5 ? now + 5 : null })
      const change = Math.random() < 0.3 ? null : item
      const kind = Math.floor(Math.random() * 4)
      if (kind === 0) await driver.writeItems(tenant, [{ space, key, item: change }], now)
      else if (kind === 1) await driver.readItems(tenant, space, [key], { now, extendTo: now + 20 })
      else if (kind === 2) await driver.sweepItems(now, 2)
      else {
        const write = { seq: i, space, key, item: change, at: now }
        await driver.applyWrites(log, incarnation, [write], { upTo: i, redo: Math.random() < 0.5 })
      }
    }
    const now = NOW - 1
    const expiring: string[] = []
    const held: string[] = []
    for (const space of spaces) {
      const items = await driver.scanItems(tenant, space, { limit: 100 }, now)
      if (items.length > 0) held.push(`${tenant}\0${space}`)
      for (const { key, expiresAt } of items) if (expiresAt !== null) expiring.push(`${tenant}\0${space}\0${key}`)
    }
    expect((await rowsOf('x')).map((row) => row.slice(17))).toHaveLength(expiring.length)
    expect((await rowsOf('x')).map((row) => row.slice(17)).sort()).toEqual(expiring.sort())
    expect(await rowsOf('i')).toEqual(held.sort())
    let [there, remembered] = [0, 0]
    for (const key of await keysOf('keys')) there += await redis.zcard(key)
    for (const key of await keysOf('items')) {
      remembered += (await redis.hkeys(key)).filter((field) => field.startsWith('m')).length
    }
    expect((await rowsOf('r')).length).toBe(remembered - there)
  })
})

describe.skipIf(url === undefined)('reading items from redis', () => {
  it('fills a page though thousands lie between, in steps that keep nobody waiting', async () => {
    const { driver } = await ownStore()
    const keys = Array.from({ length: 4500 }, (_, i) => `k${String(i).padStart(4, '0')}`)
    const wanted = new Set(['k0003', 'k2000', 'k4499'])
    const writes = keys.map((key) => {
      return { space: 's', key, item: makeItem({ fields: [['f', wanted.has(key) ? 'yes' : 'no']] }) }
    })
    await driver.writeItems(tenant, writes, NOW)
    for (const limit of [2, 3, 4]) {
      const found = await driver.scanItems(tenant, 's', { limit, where: [['f', ['yes']]] }, NOW)
      expect(found.map(({ key }) => key)).toEqual([...wanted].slice(0, limit))
    }
    expect((await driver.scanItems(tenant, 's', { limit: 5000 }, NOW)).map(({ key }) => key)).toEqual(keys)
    const found = await driver.scanItems(tenant, 's', { limit: 5000, prefix: 'k4', after: 'k4100' }, NOW)
    expect(found.length).toBe(399)
  })

  it('returns a page of many megabytes', async () => {
    const { driver } = await ownStore()
    for (let i = 0; i < 6; i++) await put(driver, `k${i}`, makeItem({ value: Buffer.alloc(1_500_000, i) }))
    const found = await driver.scanItems(tenant, 's', { limit: 10 }, NOW)
    expect(found.map(({ value }) => [value.length, value[0]])).toEqual([0, 1, 2, 3, 4, 5].map((i) => [1_500_000, i]))
  })

  it('reports a damaged item', async () => {
    const { driver, redis, keysOf } = await ownStore()
    await put(driver, 'k', makeItem({ value: Buffer.alloc(5000) }))
    const [items = ''] = await keysOf('items')
    const damages = [
      () => redis.hdel(items, 'vk'),
      () => redis.hset(items, 'mk', 'x'),
      () => redis.hset(items, 'mk', Buffer.of(0x97, 0xa1)),
    ]
    for (const damage of damages) {
      await damage()
      expect(await failure(driver.readItems(tenant, 's', ['k'], { now: NOW }))).toMatchObject({ code: 'corrupt' })
      expect(await failure(driver.scanItems(tenant, 's', { limit: 1 }, NOW))).toMatchObject({ code: 'corrupt' })
    }
    await redis.hdel(items, 'mk')
    expect(await failure(driver.scanItems(tenant, 's', { limit: 1 }, NOW))).toMatchObject({ code: 'corrupt' })
  })
})

describe.skipIf(url === undefined)('applying writes in redis', () => {
  it('remembers an applied removal for a day from then, however old its entry is', async () => {
    const { driver, rowsOf } = await ownStore()
    const { log, incarnation } = await newLog(driver)
    await driver.applyWrites(log, incarnation, [carried('k', null, 1)], { upTo: 0, redo: true })
    await driver.sweepItems(Date.now() + DAY_MS - 3_600_000, 10)
    expect((await rowsOf('r')).length).toBe(1)
    await driver.sweepItems(Date.now() + DAY_MS + 3_600_000, 10)
    expect(await rowsOf('r')).toEqual([])
  })

  it('forgets the log that wrote longest ago when a seventeenth writes', async () => {
    const { driver } = await ownStore()
    const logs: Awaited<ReturnType<typeof newLog>>[] = []
    for (let i = 0; i < 17; i++) logs.push(await newLog(driver))
    const apply = async (i: number, item: NewItem) => {
      const { log, incarnation } = logs[i] as (typeof logs)[number]
      await driver.applyWrites(log, incarnation, [carried('k', item)], { upTo: 0, redo: false })
    }
    for (let i = 0; i < 17; i++) await apply(i, makeItem())
    const before = await versionOf(driver, 'k')
    await apply(1, makeItem())
    expect(await versionOf(driver, 'k')).toBe(before)
    const again = makeItem()
    await apply(0, again)
    expect(await versionOf(driver, 'k')).toBe(again.version)
  })

  it('does not say that nothing was written when only the note in the log was refused', async () => {
    const client = new Redis(url as string, { autoResendUnfulfilledCommands: false })
    cleanups.push(() => client.disconnect())
    const driver = await opened({ client: client as unknown as RedisLike }, { prefix: `test-${randomUUID()}` })
    const { log, incarnation } = await newLog(driver)
    const item = makeItem()
    const send = client.call.bind(client) as (...args: unknown[]) => Promise<unknown>
    let refused = 0
    // The note is the only call with two keys, the log's among them, and a seq behind the incarnation.
    const isNote = (args: unknown[]) => args[2] === '2' && args[5] === incarnation && args[6] === '0'
    Object.assign(client, {
      call: (...args: unknown[]) => {
        return isNote(args) && ++refused === 1 ? Promise.reject(new Error('OOM command not allowed')) : send(...args)
      },
    })
    const work = driver.applyWrites(log, incarnation, [carried('k', item)], { upTo: 0, redo: false })
    expect(await failure(work)).toMatchObject({ code: 'storage', data: { written: 'unknown' } })
    expect(refused).toBe(1)
    expect(await versionOf(driver, 'k')).toBe(item.version)
    expect((await driver.head(log))?.applied).toBeUndefined()
    const other = await put(driver, 'k', makeItem({ at: NOW - 1 }))
    expect(await driver.applyWrites(log, incarnation, [carried('k', item)], { upTo: 0, redo: true })).toBe(true)
    expect(await versionOf(driver, 'k')).toBe(other.version)
    expect((await driver.head(log))?.applied).toBe(0)
  })
})

describe.skipIf(url === undefined)('items of a redis that loses or refuses', () => {
  const operations: [string, (driver: RedisDriver, log: LogKey, incarnation: string) => Promise<unknown>][] = [
    ['writeItems', (driver) => put(driver, 'k')],
    ['readItems', (driver) => driver.readItems(tenant, 's', ['k'], { now: NOW })],
    ['readItems with extendTo', (driver) => driver.readItems(tenant, 's', ['k'], { now: NOW, extendTo: NOW + 1 })],
    ['scanItems', (driver) => driver.scanItems(tenant, 's', { limit: 1 }, NOW)],
    ['listSpaces', (driver) => driver.listSpaces(tenant, { limit: 1 })],
    ['sweepItems', (driver) => driver.sweepItems(NOW, 1)],
    [
      'applyWrites',
      (driver, log, incarnation) => {
        return driver.applyWrites(log, incarnation, [carried('k', makeItem())], { upTo: 0, redo: false })
      },
    ],
  ]

  it.each(operations)('takes an emptied server for data loss: %s', async (_, operation) => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const { log, incarnation } = await newLog(driver)
    await put(driver, 'k')
    await server.command('FLUSHALL')
    expect(await failure(operation(driver, log, incarnation))).toMatchObject({ code: 'data-loss' })
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('writes nothing when memory is full, says so, and still removes', async () => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const item = await put(driver, 'k', makeItem({ expiresAt: NOW + 10 }))
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    const write = driver.writeItems(tenant, [{ space: 's', key: 'other', item: makeItem() }], NOW)
    expect(await failure(write)).toMatchObject({ data: { reason: 'out-of-memory', written: 'nothing' } })
    expect(await versionOf(driver, 'k')).toBe(item.version)
    await remove(driver, 'k')
    expect(await versionOf(driver, 'k')).toBeUndefined()
  })

  it('acknowledges a write when the replica has it, and else says that it does not know', async () => {
    const primary = await ownServer({ config: { 'repl-diskless-sync-delay': '0' } })
    const replica = await ownServer({ config: { replicaof: `127.0.0.1 ${primary.port}` } })
    const state = () => replica.command('INFO', 'replication')
    await expect.poll(state).toContain('master_link_status:up')
    const patient = await opened(primary.url, { waitReplicas: { count: 1, timeoutMs: 20_000 } })
    await put(patient, 'k')
    expect(await replica.command('DBSIZE')).toBe(await primary.command('DBSIZE'))
    const driver = await opened(primary.url, { waitReplicas: { count: 1, timeoutMs: 300 } })
    await replica.kill('SIGSTOP')
    const error = await failure(driver.writeItems(tenant, [{ space: 's', key: 'k', item: makeItem() }], NOW))
    await replica.kill('SIGCONT')
    expect(error).toMatchObject({ code: 'unavailable', data: { written: 'unknown', reason: 'replicas' } })
  })
})
