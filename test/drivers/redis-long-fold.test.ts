import { randomUUID } from 'node:crypto'
import type { RedisLike } from '#src/drivers/redis/client.js'
import { openRedis } from '#src/drivers/redis/open-redis.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import type { Append, Driver, StoredEntry, Tail } from '#src/log/contract.js'
import { makeAppend, makeEntry, mustAppend } from '#src/testing/entries.js'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { removeKeys } from '../support/redis-keys.js'
import { redisUrl } from '../support/servers.js'

const url = await redisUrl()
const LENGTH = 200
const log = { tenant: parseTenantId('a'), thread: parseThreadId('long'), branch: parseBranchId('main') }

// More entries than the script returns itself: they are read by a second command.
describe.skipIf(url === undefined)('a long fold on Redis', () => {
  let client: Redis
  let driver: Driver
  let other: Driver
  let prefix: string
  let first: Append
  /** Happens between the two. */
  let meanwhile: (() => Promise<unknown>) | undefined

  beforeEach(async () => {
    prefix = `test-${randomUUID()}`
    client = new Redis(url as string, { autoResendUnfulfilledCommands: false })
    meanwhile = undefined
    const send = client.callBuffer.bind(client) as (...args: unknown[]) => Promise<unknown>
    Object.assign(client, {
      async callBuffer(...args: unknown[]) {
        if (args[0] === 'hmget') await meanwhile?.()
        return send(...args)
      },
    })
    driver = await openRedis({ client: client as unknown as RedisLike }, { prefix })
    other = await openRedis(url as string, { prefix })
    const body = new Uint8Array(5000).fill(7)
    const entries = Array.from({ length: LENGTH }, (_, seq) =>
      makeEntry({ seq, keyframe: 0, ...(seq % 50 === 7 && { body }) }),
    )
    first = makeAppend(log, null, { entries })
    await mustAppend(driver, first)
  })

  afterEach(async () => {
    await Promise.all([driver.close(), other.close()])
    await removeKeys(client, prefix)
    client.disconnect()
  })

  // A keyframe in place of an entry, under its hash.
  const standInFor = (seq: number): StoredEntry => ({ ...makeEntry({ seq }), hash: first.entries[seq]?.hash ?? '' })
  const plain = (entries: readonly StoredEntry[] | undefined) =>
    entries?.map(({ header, body, ...rest }) => ({ ...rest, header: [...header], body: [...body] }))
  const whole = (tail: Tail | undefined) => plain(tail?.entries)

  it('is returned whole, small bodies and large ones, newest and up to an entry', async () => {
    expect(whole(await driver.tail(log))).toEqual(plain(first.entries))
    expect(whole(await driver.tail(log, 150))).toEqual(plain(first.entries.slice(0, 151)))
  })

  it('ends where its head does when somebody appends meanwhile', async () => {
    const expect0 = {
      incarnation: first.incarnation,
      seq: LENGTH - 1,
      hash: first.entries.at(-1)?.hash ?? '',
      epoch: 0,
    }
    meanwhile = () => {
      meanwhile = undefined
      return mustAppend(other, makeAppend(log, expect0, { keyframe: 0 }))
    }
    const tail = await driver.tail(log)
    expect(tail?.head.seq).toBe(LENGTH - 1)
    expect(whole(tail)).toEqual(plain(first.entries))
  })

  it('is read anew when it is pruned meanwhile, with another entry in place of the first', async () => {
    const standIn = standInFor(1)
    meanwhile = () => {
      meanwhile = undefined
      return other.prune(log, first.incarnation, 1, standIn)
    }
    const replaced = await driver.tail(log)
    expect(replaced?.head.base.seq).toBe(1)
    expect(whole(replaced)).toEqual(plain([standIn, ...first.entries.slice(2)]))

    const later = standInFor(90)
    meanwhile = () => {
      meanwhile = undefined
      return other.prune(log, first.incarnation, 90, later)
    }
    const pruned = await driver.tail(log)
    expect(pruned?.head.base.seq).toBe(90)
    expect(whole(pruned)).toEqual(plain([later, ...first.entries.slice(91)]))
  })

  it('is never a mixture when the id is used again meanwhile', async () => {
    const entries = Array.from({ length: LENGTH }, (_, seq) => makeEntry({ seq, keyframe: 0 }))
    const second = makeAppend(log, null, { entries })
    meanwhile = async () => {
      meanwhile = undefined
      await other.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
      await mustAppend(other, second)
    }
    const tail = await driver.tail(log)
    expect(tail?.head.incarnation).toBe(second.incarnation)
    expect(whole(tail)).toEqual(plain(entries))
  })

  it('is gone when it is erased meanwhile', async () => {
    meanwhile = () => {
      meanwhile = undefined
      return other.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
    }
    expect(await driver.tail(log)).toBeUndefined()
  })
})
