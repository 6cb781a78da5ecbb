import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { flow, type Holdfast, openHoldfast, type ThreadId } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import type { TenantId } from 'holdfast/log'
import { afterAll, describe, expect, it } from 'vitest'
import { holdfast } from '../cli/command.js'
import { durableBackends } from '../support/backends.js'

const backends = await durableBackends()

const TENANT = 'acme' as TenantId
/** Neither compressed away nor found by chance. */
const secret = (): string => randomBytes(24).toString('hex')

interface Canary {
  readonly text: string
  readonly large: string
}

const works = flow<Canary, string>({ name: 'works', version: '1.0.0' }, async (ctx, { text, large }) => {
  await ctx.step('tool', () => ({ said: text, document: large }))
  await ctx.step('remember', async ({ store }) => {
    await store.scope({ user: 'u' }).collection<string>('facts').put('carried', `carried ${text}`)
  })
  return ctx.step('reply', () => `result ${text}`)
})

/** Where the files of a store are; undefined where the tests can't look. */
async function filesOf(url: string): Promise<string | undefined> {
  if (url.startsWith('sqlite:')) return join(url.slice('sqlite:'.length), '..')
  if (url.startsWith('file:')) return url.slice('file:'.length)
  if (!url.startsWith('redis:')) return undefined
  const { Redis } = await import('ioredis')
  const client = new Redis(url.replace(/\?.*/, ''))
  const [, folder] = (await client.call('config', 'get', 'dir')) as string[]
  client.disconnect()
  return folder
}

/** Every stretch of bytes by which what a thread and its memory hold could be recognized on disk. */
async function fingerprints(driver: Driver, hf: Holdfast): Promise<readonly Buffer[]> {
  const found: Buffer[] = []
  const add = (bytes: Uint8Array) => {
    const middle = Math.max(0, (bytes.length >> 1) - 16)
    if (bytes.length >= 48) found.push(Buffer.from(bytes.subarray(middle, middle + 32)))
  }
  const bodies = async (thread: string) => {
    const { heads } = await driver.heads({ tenant: TENANT, thread: thread as ThreadId, limit: 100 })
    const entries = await Promise.all(heads.map(({ log, seq }) => driver.read(log, 0, seq + 1)))
    return entries.flat().map(({ body }) => Buffer.from(body))
  }
  for (const body of await bodies('gone')) add(body)
  const blobs = await driver.listBlobs(TENANT, { limit: 100 })
  const bytes = await driver.getBlobs(
    TENANT,
    blobs.map(({ hash }) => hash),
  )
  for (const blob of bytes.values()) add(blob)
  for (const space of (await driver.listSpaces?.(TENANT, { limit: 100 })) ?? []) {
    if (!space.startsWith('{user=u}')) continue
    for (const { value } of (await driver.scanItems?.(TENANT, space, { limit: 100 }, Date.now())) ?? []) add(value)
  }
  expect(blobs.length).toBeGreaterThan(0)
  expect((await hf.store.scope({ user: 'u' }).collection('facts').list()).items.length).toBe(2)
  // Not what other runs of this program look like, which stay: packed, records of the same shape share stretches of bytes.
  const others = await Promise.all(Array.from({ length: 24 }, (_, i) => bodies(`other ${i}`)))
  const usual = Buffer.concat(others.flat())
  const own = found.filter((one) => !usual.includes(one))
  expect(own.length).toBeGreaterThan(5)
  return own
}

function occurrences(folder: string, wanted: readonly Buffer[]): readonly string[] {
  const found: string[] = []
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    const path = join(folder, name)
    if (!statSync(path).isFile()) continue
    const bytes = readFileSync(path)
    for (const [i, one] of wanted.entries()) if (bytes.includes(one)) found.push(`${name} ${i}`)
  }
  return found
}

describe.each(backends)('what was erased on $name', ({ name, missing, fresh, cleanup }) => {
  afterAll(cleanup)

  // Neighbors before, between and after, of many sizes: what is erased shares its pages and files with them.
  async function fill(hf: Holdfast, from: number): Promise<void> {
    for (let i = from; i < from + 12; i++) {
      await hf.thread(works, `other ${i}`).run({ input: { text: `other ${i}`.padEnd(i * 97), large: 'o' } })
      await hf.store
        .scope({ user: 'other' })
        .collection<string>('facts')
        .put(`k${i}`, 'x'.repeat(i * 61))
    }
  }

  it.skipIf(missing)(
    'is found neither through Holdfast nor, where the backend can promise it, in its files',
    async () => {
      const url = await fresh()
      const folder = await filesOf(url)
      const store = await openHoldfast(url, { telemetry: false })
      const hf = store.tenant(TENANT)
      const driver = await openDriver(url)
      const [text, noise] = [secret(), randomBytes(150_000).toString('base64')]
      await fill(hf, 0)
      const [thread, memory] = [hf.thread(works, 'gone'), hf.store.scope({ user: 'u' }).collection<string>('facts')]
      await thread.run({ input: { text, large: `${text} ${noise}` } })
      await memory.put('fact', `fact ${text}`)
      await fill(hf, 12)
      await thread.run({ input: { text: `again ${text}`, large: noise } })
      const wanted = [Buffer.from(text), ...(await fingerprints(driver, hf))]
      const kept = (await hf.threads({ limit: 100 })).threads.length - 1
      if (folder !== undefined) expect(occurrences(folder, wanted).length).toBeGreaterThanOrEqual(wanted.length)

      // As a user does it: a thread, then the memory of a scope.
      const erase = ['erase', '--store', url, '--tenant', TENANT, '--yes', '--json']
      await driver.close()
      await store.close()
      const [one, other] = [
        await holdfast([...erase, 'gone', '--no-tombstone']),
        await holdfast([...erase, '--scope', 'user=u', '--grace', '0s']),
      ]
      expect(one, one.err).toMatchObject({ code: 0 })
      expect(JSON.parse(one.out)).toMatchObject({ branches: 1 })
      expect(JSON.parse(other.out)).toMatchObject({ items: 2, complete: name !== 'Postgres', note: expect.any(String) })

      await using again = await openHoldfast(url, { telemetry: false })
      const after = again.tenant(TENANT)
      expect(await after.thread(works, 'gone').state()).toBeUndefined()
      expect(await after.tombstone('gone')).toBeUndefined()
      expect((await after.store.scope({ user: 'u' }).collection('facts').list()).items).toEqual([])
      expect((await after.threads({ limit: 100 })).threads.length).toBe(kept)
      for (const { thread: id } of (await after.threads({ limit: 100 })).threads) {
        expect((await after.verify(id))?.problems).toEqual([])
      }
      if (folder !== undefined) expect(occurrences(folder, wanted)).toEqual([])
    },
  )

  it.skipIf(missing)('as a tenant leaves the others alone', async () => {
    const url = await fresh()
    await using hf = await openHoldfast(url, { telemetry: false })
    const input = { text: 'hello', large: 'x'.repeat(100_000) }
    for (const tenant of ['acme', 'other']) {
      for (let i = 0; i < 3; i++) await hf.tenant(tenant).thread(works, `t${i}`).run({ input })
    }
    const ended = await holdfast(['erase', '--store', url, '--tenant', 'acme', '--everything', '--yes', '--json'])
    expect(JSON.parse(ended.out)).toMatchObject({ threads: 3, items: 1 })
    expect(await hf.tenant('acme').scrub({ graceMs: -1e12 })).toMatchObject({ blobs: { removed: expect.any(Number) } })
    expect((await hf.tenant('acme').threads()).threads).toEqual([])
    expect(await hf.tenant('acme').collectBlobs({ graceMs: -1e12 })).toMatchObject({ removed: 0, kept: 0 })
    expect((await hf.tenant('acme').store.scope({ user: 'u' }).collection('facts').list()).items).toEqual([])
    for (let i = 0; i < 3; i++) {
      const thread = hf.tenant('other').thread(works, `t${i}`)
      expect((await hf.tenant('other').verify(`t${i}`))?.problems).toEqual([])
      expect((await thread.waitFor()).status).toBe('completed')
    }
  })
})
