import { flow } from 'holdfast'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, it } from 'vitest'
import { cachedPostgres, isMissing } from '../support/cached-postgres.js'
import { redisClusterUrls } from '../support/servers.js'
import { until } from '../support/until.js'

const urls = (await redisClusterUrls()) ?? []
const nodes = urls.map((url) => new Redis(url))
afterAll(() => {
  for (const node of nodes) node.disconnect()
})

const talk = flow<string, string>({ name: 'talk', version: '1.0.0' }, (ctx, said) =>
  ctx.step('reply', () => `re ${said}`),
)
const threads = Array.from({ length: 24 }, (_, i) => `t${i}`)

describe.skipIf(isMissing || urls.length === 0)('Postgres with a cache in a cluster of three nodes', () => {
  it('loads from whichever node holds a thread, and erases it there', async () => {
    const store = await cachedPostgres()
    const cache = { url: `${urls.join(',')}?prefix=${store.prefix}`, timeoutMs: 20_000 }
    const keysOf = async () => Promise.all(nodes.map((node) => node.keys(`${store.prefix}:*`)))
    const [one, other] = [await store.open({ cache }), await store.open({ cache })]
    await Promise.all(threads.map((id) => one.thread(talk, id).run({ input: 'hello' })))
    await until(async () => (await keysOf()).flat().length === threads.length)
    for (const keys of await keysOf()) expect(keys.length).toBeGreaterThan(0)
    const before = store.loads.hits
    for (const id of threads) {
      expect(await other.thread(talk, id).run({ input: 'again' })).toMatchObject({ output: 're again' })
    }
    expect(store.loads.hits - before).toBeGreaterThanOrEqual(threads.length)
    for (const id of threads) await other.erase(id)
    // What stays for a while names what must not come back, and holds none of it.
    for (const [i, keys] of (await keysOf()).entries()) {
      for (const key of keys) expect((await nodes[i]?.hkeys(key))?.filter((field) => /^\d+$/.test(field))).toEqual([])
    }
    await store.close()
  })
})
