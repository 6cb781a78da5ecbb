import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HoldfastError, isHoldfastError } from '#src/core/errors.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import type { Append, Driver, Expect, LogKey } from '#src/log/contract.js'
import type { ItemDriver } from '#src/log/store-contract.js'
import { startChaosProxy } from '#src/testing/chaos-proxy.js'
import { expectAfter, makeAppend, mustAppend } from '#src/testing/entries.js'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis, startRedisCluster } from '../../scripts/services/index.mjs'
import { rounds } from '../support/scale.js'
import { orUndefined, redisUrl } from '../support/servers.js'

const url = await redisUrl()
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

async function opened(target: string | string[], options: Parameters<typeof openRedis>[1] = {}): Promise<Driver> {
  const driver = await openRedis(target, options)
  cleanups.push(() => driver.close())
  return driver
}

async function failure(work: Promise<unknown>): Promise<HoldfastError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof HoldfastError)) throw new Error(`expected a HoldfastError, got ${String(error)}`)
  return error
}

function newLog(thread: string = randomUUID()): LogKey {
  return { tenant: parseTenantId('t'), thread: parseThreadId(thread), branch: parseBranchId('main') }
}

/** Asks until the backend answers again. */
async function eventually<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!isHoldfastError(error, 'unavailable')) throw error
      await sleep(50)
    }
  }
}

/**
 * A writer as the log layer is one: after an error that may hide a landed entry it looks for that entry, and never
 * sends it twice. One that was not there may still come late, and is then in the way of the next.
 */
function makeWriter(driver: Driver, log: LogKey, start: Expect) {
  const open = new Map<string, Append>()
  const writer = {
    at: start,
    async writeOne(): Promise<void> {
      const append = makeAppend(log, writer.at)
      const hash = append.entries[0]?.hash as string
      try {
        const [result] = await driver.append([append])
        if (result?.status === 'appended') return landed(append)
        if (result?.status !== 'conflict') throw new Error(`the only writer got a ${result?.status}`)
        landedLate(result.head?.hash)
      } catch (error) {
        if (!isHoldfastError(error, 'unavailable')) throw error
        if (error.data['written'] === 'unknown') open.set(hash, append)
        await writer.look()
      }
    },
    /** Finds out whether something landed after all. */
    async look(): Promise<void> {
      const head = await eventually(() => driver.head(log))
      if (head?.hash !== writer.at.hash) landedLate(head?.hash)
      else expect(head.seq).toBe(writer.at.seq)
    },
  }
  const landed = (append: Append) => {
    writer.at = expectAfter(append)
    open.clear()
  }
  const landedLate = (hash: string | undefined) => {
    const late = open.get(hash ?? '')
    if (late === undefined)
      throw new Error('the log ends with an entry that nobody sent, or that was not to be written')
    landed(late)
  }
  return writer
}

async function checkGapFree(driver: Driver, log: LogKey, last: Expect): Promise<void> {
  const entries = await driver.read(log, 0, last.seq + 100)
  expect(entries.map(({ seq }) => seq)).toEqual(Array.from({ length: last.seq + 1 }, (_, seq) => seq))
  expect(entries.at(-1)?.hash).toBe(last.hash)
}

describe.skipIf(url === undefined)('redis that is killed', () => {
  it('loses nothing that it acknowledged, with the append-only file synced always', async () => {
    const server = await ownServer({ appendfsync: 'always' })
    const driver = await opened(server.url, { commandTimeoutMs: 30_000 })
    expect(driver.survives.osCrash).toBe('yes')
    const logs = Array.from({ length: 5 }, () => newLog())
    const writers = await Promise.all(
      logs.map(async (log) => makeWriter(driver, log, await mustAppend(driver, makeAppend(log, null)))),
    )
    for (let round = 0; round < rounds(3); round++) {
      let running = true
      const writing = writers.map(async (writer) => {
        while (running) await writer.writeOne()
      })
      await sleep(100 + Math.random() * 200)
      await server.kill('SIGKILL')
      await server.restart()
      running = false
      await Promise.all(writing)
      for (const [i, log] of logs.entries()) {
        await writers[i]?.look()
        await checkGapFree(driver, log, writers[i]?.at as Expect)
      }
    }
  })

  it('comes back at an older place of the same history with everysec, and refuses to go on from the lost one', async () => {
    const server = await ownServer({ appendfsync: 'everysec' })
    const driver = await opened(server.url, { commandTimeoutMs: 30_000 })
    expect(driver.survives).toMatchObject({ osCrash: 'recent-loss', lossWindowMs: 2000 })
    const old = newLog()
    let at = await mustAppend(driver, makeAppend(old, null))
    const history: Expect[] = [at]
    for (let i = 0; i < 50; i++) history.push((at = await mustAppend(driver, makeAppend(old, at))))
    const young = newLog()
    const youngEnd = await mustAppend(driver, makeAppend(young, null))

    // Where the disk is busy, the server puts off writing to the file.
    await expect.poll(() => server.command('INFO', 'persistence')).toContain('aof_buffer_length:0')
    // What a power loss does to a file whose end was not synced: a torn end, in the middle of a write.
    await server.kill('SIGKILL')
    await cutNewestFile(join(server.dir, 'appendonlydir'), 6000)
    await server.restart()

    const head = await eventually(() => driver.head(old))
    expect(head?.seq).toBeLessThan(at.seq)
    expect(head?.hash).toBe(history[head?.seq ?? -1]?.hash)
    await checkGapFree(driver, old, history[head?.seq ?? -1] as Expect)
    const [result, lost] = await driver.append([makeAppend(old, at), makeAppend(young, youngEnd)])
    expect(result).toMatchObject({ status: 'conflict', head: { seq: head?.seq, hash: head?.hash } })
    expect(lost).toEqual({ status: 'conflict', head: undefined })
  })

  it('reports data loss when it comes back empty, to every operation and until it is opened again', async () => {
    const server = await ownServer()
    const driver = await opened(server.url, { commandTimeoutMs: 30_000 })
    const log = newLog()
    const at = await mustAppend(driver, makeAppend(log, null))
    await server.kill('SIGKILL')
    await server.restart({ wipe: true })
    const operations: (() => Promise<unknown>)[] = [
      () => driver.append([makeAppend(log, at)]),
      () => driver.append([makeAppend(newLog(), null)]),
      () => driver.tail(log),
      () => driver.head(log),
      () => driver.heads({ limit: 10 }),
      () => driver.renew(log, at.incarnation, 0, 1000),
      () => driver.getBlobs(log.tenant, ['ab'.repeat(32)]),
    ]
    for (const operation of operations) {
      expect(await failure(eventually(operation))).toMatchObject({ code: 'data-loss' })
    }
    const again = await opened(server.url)
    expect(await again.head(log)).toBeUndefined()
  })
})

describe.skipIf(url === undefined)('redis that is flushed under a live driver', () => {
  const operations: [string, (driver: Driver, log: LogKey, at: Expect) => Promise<unknown>][] = [
    ['an append', (driver, log, at) => driver.append([makeAppend(log, at)])],
    ['a creation', (driver) => driver.append([makeAppend(newLog(), null)])],
    ['a tail', (driver, log) => driver.tail(log)],
    ['a read', (driver, log) => driver.read(log, 0, 10)],
    ['headers', (driver, log) => driver.headers(log, { limit: 10 })],
    ['a head', (driver, log) => driver.head(log)],
    ['a page of the index', (driver) => driver.heads({ limit: 10 })],
    ['the heads of a thread', (driver, { tenant, thread }) => driver.heads({ tenant, thread, limit: 10 })],
    ['a renewal', (driver, log, at) => driver.renew(log, at.incarnation, 0, 100)],
    ['a prune', (driver, log, at) => driver.prune(log, at.incarnation, 0)],
  ]
  it.each(operations)('is noticed by %s', async (_, operation) => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const log = newLog()
    const at = await mustAppend(driver, makeAppend(log, null))
    await server.command('FLUSHALL')
    expect(await failure(operation(driver, log, at))).toMatchObject({ code: 'data-loss' })
    expect(await failure(driver.touchBlobs(log.tenant, []))).toMatchObject({ code: 'data-loss' })
  })
})

describe.skipIf(url === undefined)('redis that refuses', () => {
  it('takes appends again after it forgot its scripts', async () => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const log = newLog()
    let at = await mustAppend(driver, makeAppend(log, null))
    await server.command('SCRIPT', 'FLUSH')
    at = await mustAppend(driver, makeAppend(log, at))
    await server.command('SCRIPT', 'FLUSH')
    const results = await driver.append([makeAppend(log, at), makeAppend(newLog(), null), makeAppend(newLog(), null)])
    expect(results.map(({ status }) => status)).toEqual(['appended', 'appended', 'appended'])
    expect((await driver.tail(log))?.entries.length).toBe(1)
  })

  const appends: [string, Parameters<typeof makeAppend>[2]][] = [
    ['a record', {}],
    ['a claim', { lease: { kind: 'claim', owner: 'a', ms: 1000, force: true } }],
    ['a change of status', { index: { status: 'active' } }],
    [
      'a claim that changes the index',
      { lease: { kind: 'claim', owner: 'a', ms: 1000, force: true }, index: { status: 'active', wakeAt: 5 } },
    ],
    ['a release that changes the index', { lease: { kind: 'release' }, index: { status: 'done', wakeAt: null } }],
  ]
  it.each(appends)('writes nothing of %s when its memory is full, and says so', async (_, change) => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const log = newLog()
    const lease = { kind: 'claim', owner: 'b', ms: 60_000, force: false } as const
    const at = await mustAppend(driver, makeAppend(log, null, { lease, index: { wakeAt: 7 } }))
    const before = await driver.head(log)
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    const creation = change?.lease?.kind === 'release' ? [] : [makeAppend(newLog(), null, change)]
    for (const append of [makeAppend(log, at, change), ...creation]) {
      const error = await failure(driver.append([append]))
      expect(error).toMatchObject({ code: 'storage', data: { reason: 'out-of-memory', written: 'nothing' } })
    }
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    expect(await driver.head(log)).toEqual({ ...before, lease: expect.objectContaining({ owner: 'b' }) })
    await mustAppend(driver, makeAppend(log, at, change))
  })

  it('writes no item when its memory is full, also in the place of one that expires', async () => {
    const server = await ownServer()
    const driver = (await opened(server.url)) as Driver & ItemDriver
    const { tenant } = newLog()
    const item = (version: string, expiresAt: number | null) => ({
      value: new Uint8Array(10),
      version,
      at: 1,
      expiresAt,
      fields: [],
    })
    const write = (version: string, expiresAt: number | null) =>
      driver.writeItems(tenant, [{ space: 's', key: 'k', item: item(version, expiresAt) }], 1)
    await write('one', 1000)
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    for (const expiresAt of [null, 1000, 2000]) {
      expect(await failure(write('two', expiresAt))).toMatchObject({ data: { reason: 'out-of-memory' } })
    }
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    expect((await driver.readItems(tenant, 's', ['k'], { now: 1 })).map((found) => found?.version)).toEqual(['one'])
    for (const expiresAt of [1000, 2000, null, 5]) await write('two', expiresAt)
    expect(await driver.sweepItems(10, 10)).toBe(1)
    expect(await driver.sweepItems(3000, 10)).toBe(0)
  })

  it('lets an owner keep its claim, and let go of it, while its memory is full', async () => {
    const server = await ownServer()
    const driver = await opened(server.url)
    const log = newLog()
    const at = await mustAppend(
      driver,
      makeAppend(log, null, { lease: { kind: 'claim', owner: 'a', ms: 1000, force: false } }),
    )
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await driver.renew(log, at.incarnation, at.epoch, 60_000)).toBe(true)
    expect((await driver.head(log))?.lease?.remainingMs).toBeGreaterThan(1000)
    expect(await driver.renew(log, at.incarnation, at.epoch, 0)).toBe(true)
    expect((await driver.head(log))?.lease).toBeNull()
  })

  it('writes nothing while it is a replica, and goes on when it is a primary again', async () => {
    const server = await ownServer()
    const driver = await opened(server.url, { commandTimeoutMs: 30_000 })
    const log = newLog()
    const at = await mustAppend(driver, makeAppend(log, null))
    await server.command('REPLICAOF', '127.0.0.1', '1')
    expect(await failure(driver.append([makeAppend(log, at)]))).toMatchObject({
      code: 'unavailable',
      data: { reason: 'replica', written: 'nothing' },
    })
    await server.command('REPLICAOF', 'NO', 'ONE')
    await eventually(() => mustAppend(driver, makeAppend(log, at)))
  })
})

describe.skipIf(url === undefined)('a network that fails', () => {
  // Only where it has to run out is it short. `beside` does what must not fail.
  async function throughProxy(commandTimeoutMs = 30_000) {
    const target = new URL(url as string)
    const proxy = await startChaosProxy({ target: { host: target.hostname, port: Number(target.port) } })
    cleanups.push(() => proxy.close())
    const prefix = `test-${randomUUID()}`
    const beside = await opened(url as string, { prefix })
    const driver = await eventually(() => opened(proxy.url(url as string), { prefix, commandTimeoutMs }))
    return { proxy, driver, beside }
  }

  it('rejects as unknown an append whose reply is lost, and never sends it twice', async () => {
    const { proxy, driver, beside } = await throughProxy()
    const log = newLog()
    const at = await mustAppend(driver, makeAppend(log, null))
    const append = makeAppend(log, at, { index: { status: 'changed', updatedAt: 1_800_000_000_000 } })
    const lost = proxy.dropAfterRequest(1)
    expect(await failure(driver.append([append]))).toMatchObject({ code: 'unavailable', data: { written: 'unknown' } })
    expect(await lost).toBe(1)
    await expect.poll(() => beside.head(log)).toMatchObject({ seq: 1, hash: append.entries[0]?.hash })
    // The index followed in the same step, though its writer heard nothing of it.
    for (const order of ['created', 'updated'] as const) {
      const { heads } = await beside.heads({ tenant: log.tenant, status: ['changed'], order, limit: 10 })
      expect(heads.map(({ seq }) => seq)).toEqual([1])
    }
    expect((await beside.heads({ tenant: log.tenant, status: ['idle'], limit: 10 })).heads).toEqual([])
    await eventually(() => driver.head(log))
    await sleep(200)
    expect((await beside.read(log, 0, 10)).length).toBe(2)
  })

  it.each(['stall', 'halfOpen'] as const)('ends an append in time when the line goes dead (%s)', async (fault) => {
    const { proxy, driver, beside } = await throughProxy(500)
    const log = newLog()
    const at = await mustAppend(beside, makeAppend(log, null))
    proxy[fault]()
    expect(await failure(driver.append([makeAppend(log, at)]))).toMatchObject({
      code: 'unavailable',
      data: { written: 'unknown' },
    })
    await proxy.heal()
    expect((await eventually(() => driver.head(log)))?.seq).toBeLessThanOrEqual(1)
  })

  it('warns of no leak while many calls wait for a connection', async () => {
    const { proxy, driver } = await throughProxy(20_000)
    const warnings: string[] = []
    const note = (warning: Error) => warnings.push(warning.name)
    process.on('warning', note)
    cleanups.push(async () => process.off('warning', note))
    await proxy.refuse()
    proxy.cut()
    await expect.poll(() => proxy.counters.active).toBe(0)
    const reads = Array.from({ length: 30 }, () => driver.head(newLog()))
    await proxy.heal()
    const heads = await Promise.allSettled(reads)
    expect(heads.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0)
    expect(warnings).toEqual([])
  })

  it('says that nothing was written when there is no connection at all', async () => {
    const { proxy, driver, beside } = await throughProxy(300)
    const log = newLog()
    const at = await mustAppend(beside, makeAppend(log, null))
    await proxy.refuse()
    proxy.cut()
    await expect.poll(() => proxy.counters.active).toBe(0)
    await sleep(100)
    // What has come in by now is handled: also on a process that stood still, whose timers go first.
    for (let i = 0; i < 5; i++) await new Promise(setImmediate)
    const error = await failure(driver.append([makeAppend(log, at)]))
    expect(error).toMatchObject({ code: 'unavailable', data: { written: 'nothing' } })
    await proxy.heal()
    const writer = makeWriter(driver, log, at)
    while (writer.at.seq === at.seq) await writer.writeOne()
  })

  it('loses no acknowledged entry and writes none twice under random faults', async () => {
    const { proxy, driver, beside } = await throughProxy(400)
    const logs = Array.from({ length: 4 }, () => newLog())
    const writers = await Promise.all(
      logs.map(async (log) => makeWriter(driver, log, await mustAppend(beside, makeAppend(log, null)))),
    )
    const countFaults = () => Object.values(proxy.counters.faults).reduce((a, b) => a + b)
    const faults = proxy.randomFaults(20_261_115)
    await Promise.all(
      writers.map(async (writer) => {
        while (countFaults() < rounds(15)) await writer.writeOne()
      }),
    )
    await faults.stop()
    for (const [i, log] of logs.entries()) {
      await writers[i]?.look()
      await checkGapFree(beside, log, writers[i]?.at as Expect)
    }
  })

  it('hears again what others publish after the connection of its subscribers broke, and that some was missed', async () => {
    const { proxy, driver, beside } = await throughProxy()
    const heard: (string | undefined)[] = []
    await driver.subscribe?.('topic', (message) => heard.push(message))
    const isHeard = async (message: string) => {
      beside.publish?.('topic', message)
      await sleep(20)
      return heard.includes(message)
    }
    await expect.poll(() => isHeard('before'), { timeout: 600_000 }).toBe(true)
    proxy.reset()
    await expect.poll(() => isHeard('after'), { timeout: 600_000 }).toBe(true)
    expect(heard).toContain(undefined)
  })
})

describe.skipIf(url === undefined)('two processes', () => {
  it('race for one log: a thousand appends land, each once and in order', async () => {
    const prefix = `test-${randomUUID()}`
    const log = newLog()
    const driver = await opened(url as string, { prefix })
    const created = await mustAppend(driver, makeAppend(log, null))
    const wanted = 500
    const racers = ['a', 'b'].map((name) => startRacer(name, { url: url as string, prefix, log, wanted }))
    const landed = await Promise.all(racers.map(linesOf))
    expect(landed.map(({ length }) => length)).toEqual([wanted, wanted])
    const entries = await driver.read(log, 0, 2 * wanted + 10)
    expect(entries.length).toBe(2 * wanted + 1)
    expect(new Set(entries.map(({ hash }) => hash))).toEqual(new Set([created.hash, ...landed.flat()]))
    await checkGapFree(driver, log, { ...created, seq: 2 * wanted, hash: entries.at(-1)?.hash as string })
  })
})

describe.skipIf(url === undefined)('a cluster that loses a node', () => {
  it('goes on with the others, recovers by itself, and notices a node that came back empty', async () => {
    const cluster = await orUndefined(() =>
      startRedisCluster({ config: { 'cluster-require-full-coverage': 'no', 'cluster-node-timeout': '2000' } }),
    )
    if (cluster === undefined) throw new Error('the server was there a moment ago')
    cleanups.push(() => cluster.stop())
    const driver = await opened(cluster.urls, { commandTimeoutMs: 2000 })
    const logs = Array.from({ length: 30 }, () => newLog())
    const ends = await Promise.all(logs.map((log) => mustAppend(driver, makeAppend(log, null))))
    const [node] = cluster.nodes
    await node?.kill('SIGKILL')
    const countDown = async () => {
      const results = await Promise.allSettled(
        logs.map((log, i) => driver.append([makeAppend(log, ends[i] as Expect)])),
      )
      return results.filter(({ status }) => status === 'rejected').length
    }
    let down = await countDown()
    // All of them only where this machine stood still for as long as a command may take.
    while (down === logs.length) down = await countDown()
    expect(down).toBeGreaterThan(0)

    await node?.restart()
    for (const [i, log] of logs.entries()) {
      const head = await eventually(() => driver.head(log))
      expect(head?.seq).toBeGreaterThanOrEqual((ends[i] as Expect).seq)
    }
    expect((await eventually(() => driver.heads({ limit: 100 }))).heads.length).toBe(logs.length)

    await node?.command('FLUSHALL')
    expect(await failure(driver.heads({ limit: 100 }))).toMatchObject({ code: 'data-loss' })
    expect(await failure(openRedis(cluster.urls))).toMatchObject({ code: 'data-loss' })
    const rest = await opened(cluster.urls, { acceptDataLoss: true })
    const { heads } = await rest.heads({ limit: 100 })
    expect(heads.length).toBeGreaterThan(0)
    expect(heads.length).toBeLessThan(logs.length)
    await mustAppend(rest, makeAppend(newLog(), null))
  })
})

async function cutNewestFile(folder: string, bytes: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.incr.aof')).sort()
  const file = join(folder, names.at(-1) as string)
  const { size } = await stat(file)
  await truncate(file, size - bytes)
}

/** Appends until it landed `wanted` times, reading the head anew after every conflict; prints the hashes that landed. */
function startRacer(
  name: string,
  settings: { url: string; prefix: string; log: LogKey; wanted: number },
): ChildProcess {
  const program = `
    const { openRedis } = await import('#src/drivers/redis/open-redis.js')
    const { makeAppend, expectAfter } = await import('#src/testing/entries.js')
    const { url, prefix, log, wanted } = ${JSON.stringify(settings)}
    const driver = await openRedis(url, { prefix })
    let at = await driver.head(log)
    for (let landed = 0; landed < wanted; ) {
      const append = makeAppend(log, at)
      const [result] = await driver.append([append])
      if (result.status === 'appended') {
        console.log(append.entries[0].hash)
        landed += 1
        at = expectAfter(append)
      } else at = result.head
    }
    await driver.close()`
  return spawn(process.execPath, ['--input-type=module', '-e', program, name], { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function linesOf(child: ChildProcess): Promise<string[]> {
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  expect(code).toBe(0)
  return text.trim().split('\n')
}
