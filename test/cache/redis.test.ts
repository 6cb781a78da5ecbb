import { randomBytes } from 'node:crypto'
import { flow, type Holdfast, openHoldfast, type ThreadId } from 'holdfast'
import type { Driver, LogKey } from 'holdfast/driver'
import { startChaosProxy } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { type CachedPostgres, cachedPostgres, isMissing } from '../support/cached-postgres.js'
import { until } from '../support/until.js'

const talk = flow<string, string>({ name: 'talk', version: '1.0.0' }, async (ctx, said) => {
  await ctx.step('listen', () => 'heard')
  // The record of a later step is too short to be packed: what it holds is found in the bytes as it is.
  return ctx.step('reply', () => `re ${said}`)
})

/** A fact of this test run, not found anywhere by chance. */
const secret = (): string => randomBytes(24).toString('hex')

let store: CachedPostgres
const opened: CachedPostgres[] = []
afterEach(() => Promise.all(opened.splice(0).map((one) => one.close())))

async function newStore(): Promise<void> {
  store = await cachedPostgres()
  opened.push(store)
}

/** Runs a thread, and waits until the cache holds where it ended. */
async function say(hf: Holdfast, id: string, said: string) {
  const outcome = await hf.thread(talk, id).run({ input: said })
  const { seq } = (await hf.thread(talk, id).history({ limit: 1, all: true }))[0] as { seq: number }
  await until(async () => (await lastSeqs()).includes(seq))
  return outcome
}

/** Where the logs in the cache end. */
async function lastSeqs(): Promise<readonly number[]> {
  const redis = store.redis()
  return Promise.all((await store.keys()).map(async (key) => Number(await redis.hget(key, 'n'))))
}

describe.skipIf(isMissing)('Postgres with a cache in Redis', () => {
  it('loads what another process ran from the cache', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    await say(one, 't', 'hello')
    expect(await other.thread(talk, 't').run({ input: 'again' })).toMatchObject({ output: 're again' })
    expect(store.loads).toEqual({ hits: 1, misses: 1 })
    expect((await one.thread(talk, 't').history({ limit: 50 })).length).toBeGreaterThan(2)
  })

  it('puts into the cache what was read from Postgres because the cache had lost it', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    await say(one, 't', 'hello')
    await store.redis().del(...(await store.keys()))
    await say(other, 't', 'once more')
    await say(one, 't', 'and again')
    expect(store.loads).toEqual({ hits: 1, misses: 2 })
  })

  it('keeps a tail for its time to live and not longer, and never a larger one than allowed', async () => {
    await newStore()
    const hf = await store.open({ cache: { url: store.cache, ttlMs: 600_000, maxBytes: 8000, timeoutMs: 20_000 } })
    await say(hf, 't', 'hello')
    const [key] = (await store.keys()) as [string]
    expect(await store.redis().pttl(key)).toBeGreaterThan(0)
    expect(await store.redis().pttl(key)).toBeLessThanOrEqual(600_000)
    await hf.thread(talk, 't').run({ input: randomBytes(9000).toString('hex') })
    await until(async () => (await store.keys()).length === 0)
    expect(await hf.thread(talk, 't').run({ input: 'short' })).toMatchObject({ output: 're short' })
  })

  it('goes on from Postgres when the cache holds an older state of the thread', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    await say(one, 't', 'first')
    const [key] = (await store.keys()) as [string]
    const old = (await store.redis().dumpBuffer(key)) as Buffer
    await say(one, 't', 'second')
    await store.redis().restore(key, 60_000, old, 'REPLACE')
    expect(await other.thread(talk, 't').run({ input: 'third' })).toMatchObject({ output: 're third' })
    const kinds = await other.thread(talk, 't').history({ limit: 100, all: true })
    expect(new Set(kinds.map(({ seq }) => seq)).size).toBe(kinds.length)
    expect(await one.verify('t')).toMatchObject({ ok: true })
  })

  it('goes on from Postgres when the cache holds bytes that nobody wrote', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    const wrong: ((bytes: Buffer) => Buffer)[] = [
      (bytes) => bytes.subarray(0, 20),
      (bytes) => Buffer.concat([bytes.subarray(0, -1), Buffer.of((bytes.at(-1) ?? 0) ^ 1)]),
      () => Buffer.alloc(0),
      () => randomBytes(100),
    ]
    for (const [i, change] of wrong.entries()) {
      await say(one, `t${i}`, 'first')
      const redis = store.redis()
      for (const key of await store.keys()) {
        for (const [field, bytes] of Object.entries(await redis.hgetallBuffer(key))) {
          if (/^\d+$/.test(field)) await redis.hset(key, field, change(bytes))
        }
      }
      expect(await other.thread(talk, `t${i}`).run({ input: 'second' })).toMatchObject({ output: 're second' })
      expect(await other.verify(`t${i}`)).toMatchObject({ ok: true })
    }
    // A key of another kind fails every command on it.
    const [key] = (await store.keys()) as [string]
    await store.redis().set(key, 'no hash')
    expect(await one.thread(talk, 't0').run({ input: 'third' })).toMatchObject({ output: 're third' })
    expect(await one.thread(talk, 't3').run({ input: 'third' })).toMatchObject({ output: 're third' })
  })

  it('answers who asks what a thread holds from Postgres, whatever the cache says', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    await say(one, 't', 'first')
    const [key] = (await store.keys()) as [string]
    const old = (await store.redis().dumpBuffer(key)) as Buffer
    await say(one, 't', 'second')
    await store.redis().restore(key, 60_000, old, 'REPLACE')
    expect(await other.thread(talk, 't').waitFor()).toMatchObject({ output: 're second' })
    expect(await other.inspect('t').waitFor()).toMatchObject({ output: 're second' })
    expect(store.loads.hits).toBe(1)
  })

  it('holds nothing of an erased thread, also when a late process puts it there', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    const canary = secret()
    await say(one, 't', canary)
    const driver = await store.openDriver()
    const late = await tailOf(driver)
    expect((await store.bytes()).includes(canary)).toBe(true)
    await other.erase('t')
    expect((await store.bytes()).includes(canary)).toBe(false)
    // As a process would whose append was acknowledged before the erasure, and which was stopped since.
    await late()
    expect((await store.bytes()).includes(canary)).toBe(false)
    expect(await one.thread(talk, 't').run({ input: 'anew', expect: 'existing' })).toMatchObject({
      restarted: true,
      output: 're anew',
    })
    await say(one, 't', 'and on')
    expect((await store.bytes()).includes(canary)).toBe(false)
  })

  it('holds nothing readable of an encrypted thread', async () => {
    await newStore()
    const keys = { current: 'k', masters: { k: randomBytes(32) } }
    const [one, other] = [await store.open({ keys }), await store.open({ keys })]
    const canary = secret()
    await say(one, 't', canary)
    const held = await store.bytes()
    expect(held.length).toBeGreaterThan(100)
    expect(held.includes(canary)).toBe(false)
    expect(await other.thread(talk, 't').run({ input: 'again' })).toMatchObject({ output: 're again' })
    expect(store.loads.hits).toBe(1)
  })

  it('forgets what is pruned, and loads what is left', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    const canary = secret()
    await say(one, 't', canary)
    await say(one, 't', 'second')
    const [newest] = await one.thread(talk, 't').history({ limit: 1, all: true })
    await one.prune('t', newest?.seq ?? 0)
    await until(async () => !(await store.bytes()).includes(canary))
    expect(await other.thread(talk, 't').run({ input: 'third' })).toMatchObject({ output: 're third' })
    expect(await other.verify('t')).toMatchObject({ ok: true })
  })

  it('forks, and runs both branches from the cache', async () => {
    await newStore()
    const [one, other] = [await store.open(), await store.open()]
    await say(one, 't', 'first')
    const [newest] = await one.thread(talk, 't').history({ limit: 1 })
    const fork = await one
      .thread(talk, 't')
      .at(newest?.id ?? '')
      .fork({ name: 'what-if' })
    await fork.run({ input: 'second' })
    await until(async () => (await store.keys()).length === 2)
    expect(await other.thread(talk, 't', { branch: 'what-if' }).run({ input: 'third' })).toMatchObject({
      output: 're third',
    })
    expect(await other.thread(talk, 't').run({ input: 'main' })).toMatchObject({ output: 're main' })
    expect((await other.verify('t'))?.ok && (await other.verify('t', { branch: 'what-if' }))?.ok).toBe(true)
  })
})

describe.skipIf(isMissing)('when one of the two is away', () => {
  it('opens, runs, erases and closes without Redis', async () => {
    await newStore()
    const hf = await openHoldfast(store.url, { cache: 'redis://127.0.0.1:1' })
    expect(await hf.thread(talk, 't').run({ input: 'hello' })).toMatchObject({ output: 're hello' })
    expect(await hf.erase('t')).toMatchObject({ erased: 1 })
    expect(await hf.scrub()).toMatchObject({ complete: false })
    await hf.close()
  })

  it('goes on while Redis says nothing, and closes', async () => {
    await newStore()
    const target = new URL(store.cache)
    const proxy = await startChaosProxy({ target: { host: target.hostname, port: Number(target.port) } })
    const hf = await openHoldfast(store.url, { cache: { url: proxy.url(store.cache), timeoutMs: 20 }, cacheBytes: 0 })
    await hf.thread(talk, 't').run({ input: 'hello' })
    proxy.stall()
    expect(await hf.thread(talk, 't').run({ input: 'silence' })).toMatchObject({ output: 're silence' })
    expect(await hf.thread(talk, 't').run({ input: 'more' })).toMatchObject({ output: 're more' })
    proxy.reset()
    expect(await hf.thread(talk, 't').run({ input: 'reset' })).toMatchObject({ output: 're reset' })
    await hf.close()
    await proxy.close()
  })

  it('removes an erased thread from Redis once it is back, and says until then that it may be there', async () => {
    await newStore()
    const target = new URL(store.cache)
    const proxy = await startChaosProxy({ target: { host: target.hostname, port: Number(target.port) } })
    const hf = await store.open({ cache: { url: proxy.url(store.cache), timeoutMs: 20_000 } })
    const canary = secret()
    // Its connection is made in the background.
    await until(async () => {
      await hf.thread(talk, 't').run({ input: canary })
      return (await store.bytes()).includes(canary)
    })
    await proxy.refuse()
    proxy.cut()
    await until(async () => !(await hf.scrub()).note.includes('In the cache'))
    expect(await hf.erase('t')).toMatchObject({ erased: 1 })
    expect(await hf.scrub()).toMatchObject({ complete: false, note: expect.stringContaining("can't be reached") })
    expect((await store.bytes()).includes(canary)).toBe(true)
    await proxy.heal()
    await until(async () => !(await store.bytes()).includes(canary))
    await hf.close()
    await proxy.close()
  })

  it('never answers from Redis alone', async () => {
    await newStore()
    await say(await store.open(), 't', 'hello')
    const target = new URL(store.url)
    const proxy = await startChaosProxy({ target: { host: target.hostname, port: Number(target.port) } })
    const options = {
      cache: { url: store.cache, timeoutMs: 20_000 },
      cacheBytes: 0,
      retryMs: 0,
      telemetry: false as const,
    }
    const hf = await openHoldfast(proxy.url(store.url), { ...options, postgres: { connectTimeoutMs: 500 } })
    await hf.thread(talk, 'other').run({ input: 'hello' })
    await proxy.refuse()
    proxy.reset()
    await expect(hf.thread(talk, 't').run({ input: 'hello' })).rejects.toMatchObject({ code: 'unavailable' })
    await expect(hf.thread(talk, 't').state()).rejects.toMatchObject({ code: 'unavailable' })
    await proxy.heal()
    expect(await hf.thread(talk, 't').run({ input: 'hello' })).toMatchObject({ output: 're hello' })
    await hf.close()
    await proxy.close()
  })

  it('refuses a cache that can not be one, before anything is opened', async () => {
    await expect(openHoldfast('memory:', { cache: 'redis://x' })).rejects.toMatchObject({ code: 'invalid-option' })
    for (const cache of [
      'sqlite:x',
      { url: 'redis://x', ttlMs: 0 },
      { url: 'redis://x', tll: 1 },
      'redis://x?prefix={a}',
    ]) {
      const opening = openHoldfast('postgres://127.0.0.1:1/x', { cache: cache as string })
      await expect(opening).rejects.toMatchObject({ code: 'invalid-option' })
    }
  })
})

/** A put of what the thread holds now, to be made later. */
async function tailOf(driver: Driver): Promise<() => Promise<void>> {
  const { heads } = await driver.heads({ limit: 10 })
  const head = heads.find(({ log }) => log.thread === ('t' as ThreadId))
  const log = head?.log as LogKey
  const tail = await driver.tail(log)
  const { openCache, parseCache } = await import('#src/cache/open-cache.js')
  const database = new URL(store.url).pathname.slice(1)
  const schema = new URL(store.url).searchParams.get('schema')
  const cache = await openCache(parseCache({ url: store.cache, timeoutMs: 20_000 }), JSON.stringify([database, schema]))
  await until(async () => (await cache.get(log, undefined)) !== undefined)
  return async () => {
    cache.put(log, { incarnation: head?.incarnation ?? '', after: null, entries: tail?.entries ?? [] })
    // One connection answers in order.
    await cache.get(log, undefined)
    await cache.close()
  }
}
