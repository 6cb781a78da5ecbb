import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { append, END, graph, openHoldfast, START } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

// The engine that the store uses: a second one in a process drops the locks of the first when it closes the file.
const openSqlite = await loadSqlite()

const DAY = 24 * 60 * 60 * 1000
const THREADS = 20

const talk = graph({ name: 'talk', version: '1.0.0', state: { said: append<string>() } })
  .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
  .edge(START, 'reply')
  .edge('reply', END)

/** How much room a closed store takes that nothing else can use: not pages that are free again, and not what a vacuum frees. */
async function roomOf(url: string): Promise<number> {
  const [scheme = '', path = ''] = url.split(/:(.*)/s)
  if (scheme === 'sqlite') {
    const db = openSqlite(path)
    const read = (pragma: string) => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() as object)[0])
    const used = (read('page_count') - read('freelist_count')) * read('page_size')
    db.close()
    return used
  }
  if (scheme === 'file') {
    const names = readdirSync(path, { recursive: true }) as string[]
    const files = names.map((name) => statSync(join(path, name))).filter((file) => file.isFile())
    return files.reduce((sum, { size }) => sum + size, 0)
  }
  const setting = new URL(url).searchParams
  const server = url.replace(/\?.*/, '')
  if (scheme === 'redis') {
    const { Redis } = await import('ioredis')
    const client = new Redis(server)
    const keys = await client.keys(`*${setting.get('prefix')}*`)
    const sizes = await Promise.all(keys.map((key) => client.call('memory', 'usage', key, 'samples', '0')))
    client.disconnect()
    return sizes.reduce((sum: number, size) => sum + Number(size), 0)
  }
  const { default: pg } = await import('pg')
  const client = new pg.Client(server)
  await client.connect()
  const schema = setting.get('schema') as string
  const { rows } = await client.query(
    `SELECT coalesce((SELECT sum(pg_column_size(e.*)) FROM ${schema}.entries e), 0)
      + coalesce((SELECT sum(pg_column_size(b.*)) FROM ${schema}.blobs b), 0)
      + coalesce((SELECT sum(pg_column_size(l.*)) FROM ${schema}.logs l), 0) AS bytes`,
  )
  await client.end()
  return Number(rows[0].bytes)
}

const backends = await durableBackends()

describe.each(backends)('a sweep on $name', ({ missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('gives back the room of what expired, of what was cut, and of large values', async () => {
    const url = await fresh()
    const empty = await openHoldfast(url, { telemetry: false })
    await empty.close()
    const none = await roomOf(url)
    const clock = virtualClock({ now: Date.now() })
    const hf = await openHoldfast(url, { telemetry: false, clock })
    const noise = (bytes: number) => randomBytes(bytes).toString('base64')
    for (let i = 0; i < THREADS; i++) {
      await hf.thread(talk, `t${i}`).run({ input: { said: noise(6000) } })
      await hf.thread(talk, `t${i}`).run({ input: { said: noise(60_000) } })
    }
    const long = hf.thread(talk, 'long', { retention: { keepLast: 2, ttlMs: 'never' } })
    for (let i = 0; i < THREADS; i++) await long.run({ input: { said: noise(300) } })
    await hf.close()
    const before = (await roomOf(url)) - none
    await clock.advance(8 * DAY)
    const later = await openHoldfast(url, { telemetry: false, clock })
    expect(await later.sweep({ dryRun: true, graceMs: -1e12 })).toMatchObject({ threads: THREADS, cut: 1 })
    expect(await later.sweep({ graceMs: -1e12 })).toMatchObject({ threads: THREADS, cut: 1 })
    await later.scrub()
    await later.close()
    const after = (await roomOf(url)) - none
    // What stays is one state of a few kilobytes, and a tombstone for each thread.
    expect(before).toBeGreaterThan(THREADS * 60_000)
    expect(after).toBeLessThan(before / 8)
  })
})
