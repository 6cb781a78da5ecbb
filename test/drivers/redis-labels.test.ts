import { randomUUID } from 'node:crypto'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import type { Driver, Expect, HeadQuery, IndexFields, LogKey } from '#src/log/contract.js'
import { makeAppend, makeIndex, mustAppend } from '#src/testing/entries.js'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../scripts/services/index.mjs'
import { removeKeys } from '../support/redis-keys.js'
import { randomly, rounds } from '../support/scale.js'
import { orUndefined, redisClusterUrls, redisUrl } from '../support/servers.js'

const url = await redisUrl()
const clusterUrls = await redisClusterUrls()
const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function ownServer() {
  const server = await orUndefined(() => startRedis({ appendfsync: 'everysec' }))
  if (server === undefined) throw new Error('the server was there a moment ago')
  cleanups.push(() => server.stop())
  const redis = new Redis(server.url)
  cleanups.push(async () => redis.disconnect())
  return { url: server.url, command: call(redis) }
}

type Server = Awaited<ReturnType<typeof ownServer>>

async function openOn(target: string | string[], prefix = 'holdfast') {
  const driver = await openRedis(target, { prefix })
  cleanups.push(() => driver.close())
  return driver
}

function logOf(thread: string, tenant = 't'): LogKey {
  return { tenant: parseTenantId(tenant), thread: parseThreadId(thread), branch: parseBranchId('main') }
}

async function found(driver: Driver, query: Partial<HeadQuery>): Promise<string[]> {
  const names: string[] = []
  let cursor: string | undefined
  do {
    const page = await driver.heads({ limit: 100, ...query, ...(cursor === undefined ? {} : { cursor }) })
    names.push(...page.heads.map(({ log }) => `${log.tenant}/${log.thread}`))
    cursor = page.cursor
  } while (cursor !== undefined)
  return names
}

/** How often the server ran these commands while `work` was in progress; `hmget` reads a head. */
async function counted(server: Server, work: () => Promise<unknown>): Promise<{ heads: number; calls: number }> {
  await server.command('CONFIG', 'RESETSTAT')
  await work()
  const stats = String(await server.command('INFO', 'commandstats'))
  const count = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
  return { heads: count('hmget'), calls: count('evalsha') }
}

/**
 * Makes of logs what versions before rows of labels make of them. ARGV: start of their keys, a part of their keys, 'whole'
 * if such a version wrote them from the start, labels to write or ''.
 */
const AS_BEFORE = `
  local function ends_with(text, suffix) return string.sub(text, -#suffix) == suffix end
  for _, key in ipairs(redis.call('KEYS', ARGV[1] .. ':{*}:log:*' .. ARGV[2] .. '*')) do
    local head = redis.call('HGET', key, 'h')
    local index = string.match(key, '^(.*:)log:') .. 'index'
    local name = string.match(key, ':log:(.*)$')
    local expires = cjson.decode(string.match(head, '^[^\\n]*\\n[^\\n]*\\n([^\\n]*)'))[4]
    local kept = expires == cjson.null and '-' or string.format('%.17g', expires)
    local start, rest = string.match(head, '^(%S+ %S+ %S+ )%S+( .*)$')
    redis.call('HSET', key, 'h', start .. kept .. rest)
    if ARGV[4] ~= '' then redis.call('HSET', key, 'g', ARGV[4]) end
    for _, member in ipairs(redis.call('ZRANGEBYLEX', index, '[e\\0', '(e\\1')) do
      if ends_with(member, '\\0' .. name) then redis.call('ZREM', index, member) end
    end
    if kept ~= '-' then
      local bytes = { string.byte(struct.pack('>d', expires), 1, 8) }
      bytes[1] = bytes[1] + 128
      local digits = ''
      for _, byte in ipairs(bytes) do digits = digits .. string.format('%02x', byte) end
      redis.call('ZADD', index, 0, 'e\\0' .. digits .. '\\0' .. name)
    end
    if ARGV[3] == 'whole' then
      redis.call('HDEL', key, 'l')
      for _, member in ipairs(redis.call('ZRANGEBYLEX', index, '[l\\0', '(l\\1')) do
        if ends_with(member, string.match(name, '%z.*$')) then redis.call('ZREM', index, member) end
      end
    end
  end`

type Command = (...args: string[]) => Promise<unknown>

async function makeOlder(command: Command, prefix: string, part = '', { whole = true, labels = '' } = {}) {
  await command('EVAL', AS_BEFORE, '0', prefix, part, whole ? 'whole' : '', labels)
}

function labelText({ tags, metadata }: Pick<IndexFields, 'tags' | 'metadata'>): string {
  return JSON.stringify([tags, JSON.stringify(Object.entries(metadata)), null])
}

describe.skipIf(url === undefined)('finding logs by their labels', () => {
  it('reads no more heads than there are logs with the label, and none without', async () => {
    const server = await ownServer()
    const driver = await openOn(server.url)
    const count = 600
    const batch = Array.from({ length: count }, (_, i) =>
      makeAppend(logOf(`thread-${i}`, i % 2 === 0 ? 'even' : 'odd'), null, {
        index: { createdAt: i, updatedAt: i * 60_000, metadata: { number: i, team: i % 50 }, tags: [`tag-${i % 100}`] },
      }),
    )
    for (let i = 0; i < count; i += 100) await driver.append(batch.slice(i, i + 100))
    const tenant = parseTenantId('even')
    const cases: [Partial<HeadQuery>, number][] = [
      [{ metadata: { number: 300 } }, 1],
      [{ tenant, metadata: { number: 300 } }, 1],
      [{ tenant, metadata: { number: 301 } }, 0],
      [{ metadata: { number: '300' } }, 0],
      [{ tags: ['tag-7'] }, 6],
      [{ tenant, tags: ['tag-8'], order: 'updated', direction: 'asc' }, 6],
      [{ tags: ['tag-7'], metadata: { team: 7 } }, 6],
      [{ metadata: { number: 300, team: 0 }, order: 'updated' }, 1],
      [{ tenant, metadata: { team: 4 }, status: ['idle'] }, 12],
    ]
    for (const [query, matching] of cases) {
      let names: string[] = []
      const { heads, calls } = await counted(server, async () => {
        names = await found(driver, query)
      })
      const about = JSON.stringify(query)
      expect(names.length, about).toBe(matching)
      expect(heads, about).toBe(matching)
      expect(calls, about).toBeLessThanOrEqual(5)
    }
    // A page of many takes a page of heads.
    const { heads } = await counted(server, () => driver.heads({ tenant, tags: ['tag-8'], limit: 2 }))
    expect(heads).toBe(6)
  })

  it('costs an append that leaves labels alone no more commands', async () => {
    const server = await ownServer()
    const driver = await openOn(server.url)
    const log = logOf('one')
    const index = { metadata: { k: 1 }, tags: ['x'] }
    const at = await mustAppend(driver, makeAppend(log, null, { index }))
    await server.command('CONFIG', 'RESETSTAT')
    await mustAppend(driver, { ...makeAppend(log, at, { index }), labelsChanged: false })
    const stats = String(await server.command('INFO', 'commandstats'))
    const ran = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, calls]) => `${name} ${calls}`)
    expect(ran.filter((line) => !/^(config|info)/.test(line)).sort()).toEqual(['evalsha 1', 'hget 1', 'hset 1'])
  })

  it('leaves nothing in the index of a log that was erased', async () => {
    const server = await ownServer()
    const driver = await openOn(server.url)
    const log = logOf('one')
    const labels = { metadata: { a: 'x'.repeat(1000), b: true }, tags: ['x', 'y'] }
    let at = await mustAppend(driver, makeAppend(log, null, { index: { ...labels, expiresAt: 5, wakeAt: 3 } }))
    at = await mustAppend(driver, makeAppend(log, at, { index: { metadata: { a: 1 }, tags: ['z'], createdAt: 9 } }))
    await mustAppend(driver, {
      ...makeAppend(log, at, { index: { metadata: { a: 1 }, tags: ['z'] } }),
      labelsChanged: false,
    })
    expect(await found(driver, { tenant: log.tenant, tags: ['z'] })).toEqual(['t/one'])
    const rows = async () => {
      const text = `local rows = {}
        for _, key in ipairs(redis.call('KEYS', '*:index')) do
          for _, row in ipairs(redis.call('ZRANGEBYLEX', key, '[a', '+')) do rows[#rows + 1] = row end
        end
        return rows`
      return (await server.command('EVAL', text, '0')) as string[]
    }
    expect((await rows()).filter((row) => row.startsWith('l\0')).length).toBe(2)
    expect(Math.max(...(await rows()).map((row) => row.length))).toBeLessThan(100)
    await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
    expect(await rows()).toEqual([])
  })

  it('finds by labels what an older version wrote, and what it writes in between', async () => {
    const server = await ownServer()
    const first = await openOn(server.url)
    const logs = Array.from({ length: 700 }, (_, i) => logOf(`thread-${i}.`))
    const batch = logs.map((log, i) => {
      const index = { metadata: { number: i, kind: 'all' }, tags: ['all'], expiresAt: i % 2 === 0 ? 1000 + i : null }
      return makeAppend(log, null, { index })
    })
    for (let i = 0; i < batch.length; i += 100) await first.append(batch.slice(i, i + 100))
    await makeOlder(server.command, 'holdfast')
    expect((await found(first, { expiresBefore: 1010 })).length).toBe(6)

    // Many at once, right after the upgrade.
    const drivers = await Promise.all(Array.from({ length: 5 }, () => openOn(server.url)))
    const answers = await Promise.all(drivers.map((driver) => found(driver, { metadata: { number: 33 } })))
    expect(answers).toEqual(drivers.map(() => ['t/thread-33.']))
    const driver = drivers[0] as Driver
    const { heads } = await counted(server, () => found(driver, { metadata: { number: 34 } }))
    expect(heads).toBe(1)
    expect((await found(driver, { tags: ['all'] })).length).toBe(700)
    expect((await found(driver, { expiresBefore: 1010 })).length).toBe(6)

    // An older version beside this one writes other labels, and leaves the rows as they are.
    const log = logs[34] as LogKey
    const head = await driver.head(log)
    const changed = { tags: ['late'], metadata: { number: -34 } }
    await makeOlder(server.command, 'holdfast', 'thread-34.', { whole: false, labels: labelText(changed) })
    expect(await found(driver, { metadata: { number: 34 } })).toEqual([])
    expect(await found(driver, { metadata: { number: -34 } })).toEqual(['t/thread-34.'])
    expect(await found(driver, { tags: ['late'] })).toEqual(['t/thread-34.'])
    expect(await found(driver, { expiresBefore: 1034, tags: ['late'] })).toEqual(['t/thread-34.'])

    // And this version writes to a log that the other had last.
    await makeOlder(server.command, 'holdfast', 'thread-34.')
    const index = { ...(head as { index: IndexFields }).index, ...changed }
    await mustAppend(driver, { ...makeAppend(log, head as Expect, { index }), labelsChanged: false })
    const after = await counted(server, async () => {
      expect(await found(driver, { tenant: log.tenant, tags: ['late'] })).toEqual(['t/thread-34.'])
    })
    expect(after.heads).toBe(1)
  })

  it('reads all heads while a full server takes no rows', async () => {
    const server = await ownServer()
    const driver = await openOn(server.url)
    for (let i = 0; i < 20; i++) {
      await mustAppend(driver, makeAppend(logOf(`thread-${i}`), null, { index: { metadata: { number: i } } }))
    }
    await makeOlder(server.command, 'holdfast')
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    expect(await found(driver, { metadata: { number: 3 } })).toEqual(['t/thread-3'])
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    const { heads } = await counted(server, () => found(driver, { metadata: { number: 3 } }))
    expect(heads).toBe(1)
  })
})

interface Change {
  /** 'touch': changes no labels; 'older': a version without rows of labels changes them. */
  readonly kind: 'write' | 'touch' | 'erase' | 'reindex' | 'older'
  readonly log: number
  readonly index: Partial<IndexFields>
}

const text = fc.constantFrom('a', 'b', 'ä', '1', 'true', 'x'.repeat(300))
const value = fc.oneof(text, fc.boolean(), fc.constantFrom(0, 1, -1, 0.1, 1e21))
const labels = {
  tags: fc.uniqueArray(text, { maxLength: 3 }).map((tags) => tags.sort()),
  metadata: fc.dictionary(fc.constantFrom('a', 'b', 'true'), value, { maxKeys: 3 }),
}
const index = fc.record({
  ...labels,
  status: fc.constantFrom('idle', 'failed'),
  createdAt: fc.integer({ min: 1, max: 5 }),
  updatedAt: fc.integer({ min: 1, max: 300_000 }),
  expiresAt: fc.option(fc.integer({ min: 1, max: 9 })),
})
const change: fc.Arbitrary<Change> = fc.record({
  kind: fc.constantFrom('write', 'write', 'touch', 'erase', 'reindex', 'older'),
  log: fc.nat(5),
  index,
})
const query: fc.Arbitrary<Partial<HeadQuery>> = fc.record(
  {
    tenant: fc.constantFrom('t0', 't1').map(parseTenantId),
    ...labels,
    status: fc.subarray(['idle', 'failed']),
    order: fc.constantFrom('created' as const, 'updated' as const),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
    expiresBefore: fc.integer({ min: 0, max: 9 }),
    updatedAfter: fc.integer({ min: 1, max: 300_000 }),
    limit: fc.integer({ min: 1, max: 4 }),
  },
  { requiredKeys: ['limit'] },
)

type Target = string | string[] | undefined
const targets: [string, Target][] = [
  ['on one server', url],
  ['on a cluster', clusterUrls],
]

describe.each(targets)('labels %s', (_, target) => {
  it.skipIf(target === undefined)(
    'finds what a plain filter finds, whatever was changed, erased and created again',
    async () => {
      const raw = typeof target === 'string' ? new Redis(target) : undefined
      cleanups.push(async () => raw?.disconnect())
      const history = fc.array(change, { maxLength: 25 })
      const questions = fc.array(query, { minLength: 5, maxLength: 8 })
      await fc.assert(
        fc.asyncProperty(history, questions, async (changes, queries) => {
          const prefix = `test-${randomUUID()}`
          const redis = await openRedis(target as string, { prefix, buckets: 2 })
          const memory = await openMemory()
          const older =
            raw && ((part: string, labels: string) => makeOlder(call(raw), prefix, part, { whole: false, labels }))
          const half = Math.ceil(changes.length / 2)
          try {
            for (const part of [changes.slice(0, half), changes.slice(half)]) {
              for (const one of part) {
                await play(one, redis, older)
                await play(one, memory)
              }
              for (const asked of queries) expect(await found(redis, asked)).toEqual(await found(memory, asked))
            }
          } finally {
            await Promise.all([redis.close(), memory.close()])
            if (raw !== undefined) await removeKeys(raw, prefix)
          }
        }),
        randomly(rounds(25)),
      )
    },
  )
})

function call(redis: Redis): Command {
  return (name, ...args) => redis.call(name as string, ...args)
}

type ChangeLabels = (part: string, labels: string) => Promise<void>

async function play({ kind, log: number, index: fields }: Change, driver: Driver, older?: ChangeLabels): Promise<void> {
  const log = logOf(`thread-${number}`, `t${number % 2}`)
  const head = await driver.head(log)
  if (kind === 'erase') {
    await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
  } else if (head === undefined) {
    await mustAppend(driver, makeAppend(log, null, { index: fields }))
  } else if (kind === 'write') {
    await mustAppend(driver, makeAppend(log, head, { index: fields }))
  } else if (kind === 'reindex') {
    expect(await driver.reindex(log, head, makeIndex(fields))).toBe(true)
  } else if (kind === 'touch') {
    const { tags, metadata } = head.index
    await mustAppend(driver, {
      ...makeAppend(log, head, { index: { ...fields, tags, metadata } }),
      labelsChanged: false,
    })
  } else {
    const { tags = [], metadata = {} } = fields
    if (older) await older(log.thread, labelText({ tags, metadata }))
    else await driver.reindex(log, head, { ...head.index, tags, metadata })
  }
}
