import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { LogStore, ops } from 'holdfast/log'
import { HoldfastError } from '#src/core/errors.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { reconnectPause } from '#src/drivers/redis/server/connect.js'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { checkServer } from '#src/drivers/redis/server/probe.js'
import type { RedisLike } from '#src/drivers/redis/client.js'
import { DUE, type LogKey, PROGRAM_LABEL } from '#src/log/contract.js'
import { startChaosProxy } from '#src/testing/chaos-proxy.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../scripts/services/index.mjs'
import { orUndefined, redisClusterUrls, redisUrl } from '../support/servers.js'

const { push } = ops

const url = await redisUrl()
const clusterUrls = await redisClusterUrls()
const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function ownServer(options: Parameters<typeof startRedis>[0] = {}) {
  const server = await orUndefined(() => startRedis(options))
  if (server === undefined) throw new Error('the server was there a moment ago')
  cleanups.push(() => server.stop())
  return server
}

/** A primary and a replica that has caught up with it. */
async function ownPair() {
  const primary = await ownServer({ config: { 'repl-diskless-sync-delay': '0' } })
  const replica = await ownServer({ config: { replicaof: `127.0.0.1 ${primary.port}` } })
  const state = () => replica.command('INFO', 'replication')
  await expect.poll(state).toContain('master_link_status:up')
  return { primary, replica }
}

async function failure(opening: Promise<unknown>): Promise<HoldfastError> {
  const error = await opening.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof HoldfastError)) throw new Error(`expected a HoldfastError, got ${String(error)}`)
  expect(error.remedy).not.toBe('')
  return error
}

function newLog(): LogKey {
  return { tenant: parseTenantId('t'), thread: parseThreadId(randomUUID()), branch: parseBranchId('main') }
}

describe.skipIf(url === undefined)('opening redis', () => {
  const target = url as string

  it.each([
    ['what is no URL', 'what'],
    ['another scheme', 'http://127.0.0.1:6379'],
    ['a database that is no number', 'redis://127.0.0.1/abc'],
    ['a password that is not percent-encoded', 'redis://user:100%@127.0.0.1'],
  ])('refuses %s', async (_, bad) => {
    expect(await failure(openRedis(bad))).toMatchObject({ code: 'invalid-option', data: { field: 'url' } })
  })

  it('never shows the password of a URL in a message', async () => {
    const error = await failure(openRedis('redis://user:secret@127.0.0.1/abc'))
    expect(`${error.message} ${JSON.stringify(error.data)}`).not.toContain('secret')
  })

  it('refuses a database that the server does not have, and does not go on in database 0', async () => {
    expect(await failure(openRedis(`${target}/4000`))).toMatchObject({ code: 'invalid-option', data: { field: 'url' } })
  })

  it('refuses a prefix with braces, and numbers out of range', async () => {
    for (const options of [{ prefix: 'a{b}' }, { prefix: '' }, { buckets: 0 }, { commandTimeoutMs: -1 }]) {
      expect(await failure(openRedis(target, options))).toMatchObject({ code: 'invalid-option' })
    }
  })

  it('reports a host that refuses as unavailable', async () => {
    const error = await failure(openRedis('redis://127.0.0.1:1', { connectTimeoutMs: 5000 }))
    expect(error).toMatchObject({ code: 'unavailable', retryable: true, data: { written: 'nothing' } })
  })

  it('reports a host that never answers as unavailable, within the connect timeout', async () => {
    const { hostname, port } = new URL(target)
    await using proxy = await startChaosProxy({ target: { host: hostname, port: Number(port) } })
    proxy.stall()
    const error = await failure(openRedis(proxy.url(target), { connectTimeoutMs: 300 }))
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(error.message).toContain('300 ms')
  })

  it('reports a wrong password and a missing one', async () => {
    const server = await ownServer({ requirepass: 'right' })
    const driver = await openRedis(server.url)
    await driver.close()
    for (const bad of [server.url.replace('right', 'wrong'), `redis://127.0.0.1:${server.port}`]) {
      expect(await failure(openRedis(bad))).toMatchObject({ code: 'storage', data: { reason: 'authentication' } })
    }
  })

  it('refuses an evicting policy unless it is allowed', async () => {
    const server = await ownServer({ maxmemoryPolicy: 'allkeys-lru' })
    expect(await failure(openRedis(server.url))).toMatchObject({
      code: 'storage',
      data: { reason: 'eviction' },
      remedy: expect.stringContaining('{ redis: { allowEviction: true } }'),
    })
    const driver = await openRedis(server.url, { allowEviction: true })
    expect(driver.survives.note).toContain('evicted')
    await driver.close()
  })

  it('takes a policy that evicts only keys with an expiry: Holdfast sets none', async () => {
    const server = await ownServer({ maxmemoryPolicy: 'volatile-lru' })
    await (await openRedis(server.url)).close()
  })

  it('looks for a server that went away at least twice a second, however long that was', () => {
    const pauses = Array.from({ length: 2000 }, (_, attempt) => reconnectPause(attempt + 1))
    expect(Math.max(...pauses)).toBeLessThanOrEqual(500)
    expect(Math.min(...pauses)).toBeGreaterThan(40)
  })

  it('refuses a server older than 6.2', () => {
    const probe = { isCluster: false, role: 'master', replicas: 0, settings: {} }
    for (const version of ['5.0.14', '6.0.16']) {
      expect(() => checkServer({ ...probe, version }, { allowEviction: false })).toThrow('6.2 or later')
    }
    for (const version of ['6.2.0', '7.0.15', '8.0.1']) checkServer({ ...probe, version }, { allowEviction: false })
  })

  it('refuses a replica', async () => {
    const { replica } = await ownPair()
    expect(await failure(openRedis(replica.url))).toMatchObject({ code: 'storage', data: { reason: 'replica' } })
  })

  it('refuses cluster mode on a server that is no cluster', async () => {
    expect(await failure(openRedis(target, { cluster: true }))).toMatchObject({ data: { field: 'cluster' } })
  })

  it.skipIf(clusterUrls === undefined)('finds out by itself that one URL is a node of a cluster', async () => {
    const prefix = `test-${randomUUID()}`
    const driver = await openRedis((clusterUrls as string[])[0] as string, { prefix })
    // Threads of all slots: on a single connection two of three would be turned away.
    for (let i = 0; i < 20; i++) await mustAppend(driver, makeAppend(newLog(), null))
    await driver.close()
  })

  it('keeps the number of buckets a store was made with', async () => {
    const prefix = `test-${randomUUID()}`
    const log = newLog()
    const first = await openRedis(target, { prefix, buckets: 3 })
    await mustAppend(first, makeAppend(log, null))
    await first.close()
    const second = await openRedis(target, { prefix })
    expect(await second.head(log)).toBeDefined()
    await second.close()
    expect(await failure(openRedis(target, { prefix, buckets: 4 }))).toMatchObject({ data: { field: 'buckets' } })
  })

  it('refuses a store of a newer layout', async () => {
    const prefix = `test-${randomUUID()}`
    await (await openRedis(target, { prefix })).close()
    const redis = new Redis(target)
    await redis.hset(`${prefix}:store`, 'layout', '99')
    redis.disconnect()
    expect(await failure(openRedis(target, { prefix }))).toMatchObject({ code: 'schema-too-new' })
  })

  it('finds what is due of a store that an older version wrote', async () => {
    const server = await ownServer()
    const log = newLog()
    const first = await openRedis(server.url)
    const index = { wakeAt: DUE, metadata: { [PROGRAM_LABEL]: 'p' } }
    await mustAppend(first, makeAppend(log, null, { index }))
    await first.close()
    // As it was before there were rows by program: neither in the log nor in the index.
    const asBefore = `
      for _, key in ipairs(redis.call('KEYS', '*:log:*')) do
        local head = redis.call('HGET', key, 'h')
        redis.call('HSET', key, 'h', (string.gsub(head, '\\t[^\\n]*', '', 1)))
      end
      for _, key in ipairs(redis.call('KEYS', '*:index')) do
        redis.call('ZREMRANGEBYLEX', key, '[m\\0', '(m\\1')
        redis.call('ZREMRANGEBYLEX', key, '[d\\0', '(d\\1')
      end
      return redis.call('HDEL', 'holdfast:store', 'turns')`
    await server.command('EVAL', asBefore, '0')
    const driver = await openRedis(server.url)
    cleanups.push(() => driver.close())
    const due = { programs: ['p'], now: 'now', limit: 10, reserveMs: 1000 } as const
    expect((await driver.takeDue?.(due))?.heads.map((head) => head.log)).toEqual([log])
    expect((await driver.tail(log))?.head.index).toMatchObject(index)
  })

  it('keeps stores of different prefixes and databases apart', async () => {
    const prefix = `test-${randomUUID()}`
    const log = newLog()
    const drivers = await Promise.all([
      openRedis(target, { prefix }),
      openRedis(target, { prefix: `${prefix}-other` }),
      openRedis(`${target}/1`, { prefix }),
    ])
    await mustAppend(drivers[0] as (typeof drivers)[number], makeAppend(log, null))
    expect(await Promise.all(drivers.map(async (driver) => (await driver.head(log)) !== undefined))).toEqual([
      true,
      false,
      false,
    ])
    for (const driver of drivers) await driver.close()
  })

  it('opens ten times at once on an empty server', async () => {
    const prefix = `test-${randomUUID()}`
    const drivers = await Promise.all(Array.from({ length: 10 }, () => openRedis(target, { prefix })))
    const log = newLog()
    await mustAppend(drivers[0] as (typeof drivers)[number], makeAppend(log, null))
    for (const driver of drivers) expect(await driver.head(log)).toBeDefined()
    for (const driver of drivers) await driver.close()
  })
})

describe.skipIf(url === undefined)('what redis says of its durability', () => {
  it.each([
    [{ appendfsync: 'always' }, { processKill: 'yes', osCrash: 'yes', powerLoss: 'yes', failover: 'not-applicable' }],
    [
      { appendfsync: 'everysec' },
      { processKill: 'yes', osCrash: 'recent-loss', powerLoss: 'recent-loss', lossWindowMs: 2000 },
    ],
    [{ appendfsync: 'no' }, { processKill: 'yes', osCrash: 'no', powerLoss: 'no' }],
    [{ appendonly: 'no' }, { processKill: 'yes', osCrash: 'no', powerLoss: 'no' }],
    [
      { appendonly: 'no', config: { save: '3600 1 60 10000' } },
      { osCrash: 'recent-loss', powerLoss: 'recent-loss', lossWindowMs: 3_600_000 },
    ],
  ] as const)('is probed: %j', async (options, expected) => {
    const server = await ownServer(options)
    const driver = await openRedis(server.url)
    expect(driver.survives).toMatchObject(expected)
    await driver.close()
  })

  it('promises less where CONFIG is forbidden', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'managed', 'on', '>secret', '~*', '&*', '+@all', '-config', '-script')
    const driver = await openRedis(server.url.replace('redis://', 'redis://managed:secret@'))
    await mustAppend(driver, makeAppend(newLog(), null))
    expect(driver.survives).toMatchObject({ osCrash: 'recent-loss', powerLoss: 'recent-loss' })
    expect(driver.survives.settings).toMatchObject({ appendonly: 'yes', 'maxmemory-policy': 'noeviction' })
    await driver.close()
  })

  it('needs no more permissions than its page asks for', async () => {
    const page = await readFile(new URL('../../docs/backends/redis.md', import.meta.url), 'utf8')
    const rule = /^ACL SETUSER holdfast (.*)$/m.exec(page)?.[1] ?? ''
    const server = await ownServer({ appendfsync: 'everysec' })
    await server.command('ACL', 'SETUSER', 'holdfast', ...rule.split(' '))
    const driver = await openRedis(server.url.replace('redis://', 'redis://holdfast:password@'))
    expect(driver.survives.lossWindowMs).toBe(2000)
    const log = newLog()
    let at = await mustAppend(driver, makeAppend(log, null))
    const stop = await driver.subscribe?.('topic', () => {})
    driver.publish?.('topic', 'message')
    at = await mustAppend(driver, makeAppend(log, at, { index: { status: 'other' } }))
    expect((await driver.tail(log))?.entries.length).toBe(1)
    expect((await driver.heads({ limit: 10 })).heads.length).toBe(1)
    await driver.putBlobs(log.tenant, [{ hash: 'cd'.repeat(32), bytes: new Uint8Array(3000) }])
    expect((await driver.listBlobs(log.tenant, { limit: 10 })).length).toBe(1)
    const item = { value: new Uint8Array(3000), version: 'v', at: 1, expiresAt: 2, fields: [] }
    await driver.writeItems(log.tenant, [{ space: 's', key: 'k', item }], 1)
    expect((await driver.scanItems(log.tenant, 's', { limit: 10 }, 1)).length).toBe(1)
    const carried = [{ seq: 0, space: 's', key: 'other', item: null, at: 1 }]
    expect(await driver.applyWrites(log, at.incarnation, carried, { upTo: 0, redo: false })).toBe(true)
    expect(await driver.sweepItems(2, 10)).toBe(1)
    expect(await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })).toEqual({ erased: 1 })
    expect(at.seq).toBe(1)
    await stop?.()
    await driver.close()
  })

  it('knows that replication runs behind', async () => {
    const { primary } = await ownPair()
    const plain = await openRedis(primary.url)
    expect(plain.survives).toMatchObject({ powerLoss: 'yes', failover: 'no' })
    await plain.close()
    const waiting = await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 1000 } })
    expect(waiting.survives).toMatchObject({ powerLoss: 'yes', failover: 'recent-loss' })
    await waiting.close()
  })
})

describe.skipIf(url === undefined)('waiting for replicas', () => {
  it('acknowledges when the replica has the entry, and else says that it does not know', async () => {
    const { primary, replica } = await ownPair()
    const patient = await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 20_000 } })
    const driver = await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 300 } })
    const log = newLog()
    const at = await mustAppend(patient, makeAppend(log, null))
    expect(await replica.command('DBSIZE')).toBe(await primary.command('DBSIZE'))
    await patient.putBlobs(log.tenant, [{ hash: 'ab'.repeat(32), bytes: new Uint8Array(10) }])
    await patient.close()

    await replica.kill('SIGSTOP')
    const append = makeAppend(log, at)
    const error = await failure(driver.append([append]))
    expect(error).toMatchObject({ code: 'unavailable', data: { written: 'unknown', reason: 'replicas' } })
    // It did land on the primary: the writer finds it there.
    expect((await driver.head(log))?.hash).toBe(append.entries[0]?.hash)
    await replica.kill('SIGCONT')
    await driver.close()
  })

  it('counts no entry as written that only the primary has, also when the writer finds it there', async () => {
    const { primary, replica } = await ownPair()
    const patient = await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 20_000 } })
    const log = newLog()
    const note = (text: string) => () => [{ kind: 'input', ops: [push('notes', text)] }]
    await (await new LogStore(patient).open(log)).update(note('one'))

    await replica.kill('SIGSTOP')
    const store = new LogStore(await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 100 } }), {
      retryMs: 0,
    })
    const handle = await store.open(log)
    const error = await failure(handle.update(note('two')))
    expect(error).toMatchObject({ code: 'unavailable', data: { reason: 'replicas' } })
    // Whoever reads it may; who asks whether it is safe is told, also over a connection that wrote nothing.
    const other = await openRedis(primary.url, { waitReplicas: { count: 1, timeoutMs: 100 } })
    expect((await other.head(log))?.seq).toBe(1)
    expect(await failure(other.confirm?.(log) as Promise<unknown>)).toMatchObject({ data: { reason: 'replicas' } })

    await replica.kill('SIGCONT')
    await patient.confirm?.(log)
    const again = await new LogStore(patient).open(log)
    await again.update(note('three'))
    expect(again.fold.state).toEqual({ notes: ['one', 'two', 'three'] })
    await Promise.all([other.close(), patient.close(), store.close()])
  })
})

describe.skipIf(url === undefined)('a client given by the user', () => {
  it('is used as it is, and not closed', async () => {
    const client = new Redis(url as string, { autoResendUnfulfilledCommands: false })
    const driver = await openRedis({ client: client as unknown as RedisLike }, { prefix: `test-${randomUUID()}` })
    const log = newLog()
    await mustAppend(driver, makeAppend(log, null))
    await driver.close()
    expect(await client.ping()).toBe('PONG')
    client.disconnect()
  })

  it.each([
    ['sends commands again after a reconnect', {}],
    ['changes the names of keys', { autoResendUnfulfilledCommands: false, keyPrefix: 'x:' }],
  ])('is refused when it %s', async (_, options) => {
    const client = new Redis(url as string, options)
    expect(await failure(openRedis({ client: client as unknown as RedisLike }))).toMatchObject({
      code: 'invalid-option',
    })
    client.disconnect()
  })
})
