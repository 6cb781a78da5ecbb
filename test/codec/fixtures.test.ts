import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { decodeHeader } from '#src/codec/header.js'
import type { Value } from '#src/codec/value.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import type { Driver, Head, LogKey, StoredEntry } from '#src/log/contract.js'
import type { KeyOptions } from '#src/log/keys/key-options.js'
import { LogStore } from '#src/log/log-store.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, it } from 'vitest'

// Every file under test/fixtures/format-v* was written by a released version. They are loaded for ever and never
// rewritten: when a test here fails, the code is wrong, not the file. scripts/make-fixtures.mjs adds new ones.
const ROOT = new URL('../fixtures/', import.meta.url)

interface Expected {
  readonly kind: string
  readonly epoch: number
  readonly at: number
  readonly origin: unknown
  readonly index: Spelled
  readonly state: Spelled
  readonly data?: Spelled
  readonly store?: Spelled
}

interface Fixture {
  readonly format: number
  readonly blobThreshold: number
  readonly keys?: KeyOptions
  readonly logs: readonly {
    readonly head: Omit<Head, 'lease'>
    readonly entries: readonly (Omit<StoredEntry, 'header' | 'body'> & {
      readonly header: string
      readonly body: string
    })[]
    /** Null for logs of our own, such as the one that holds keys. */
    readonly expected: readonly Expected[] | null
  }[]
  readonly blobs: readonly { readonly tenant: string; readonly hash: string; readonly bytes: string }[]
}

type Spelled =
  | null
  | boolean
  | number
  | string
  | { readonly bigint: string }
  | { readonly number: string }
  | { readonly date: number }
  | { readonly bytes: string }
  | { readonly list: readonly Spelled[] }
  | { readonly object: readonly (readonly [string, Spelled])[] }

function read(spelled: Spelled): Value {
  if (typeof spelled !== 'object' || spelled === null) return spelled
  if ('bigint' in spelled) return BigInt(spelled.bigint)
  if ('number' in spelled) return Number(spelled.number)
  if ('date' in spelled) return new Date(spelled.date)
  if ('bytes' in spelled) return new Uint8Array(Buffer.from(spelled.bytes, 'base64'))
  if ('list' in spelled) return spelled.list.map(read)
  return Object.fromEntries(spelled.object.map(([key, child]) => [key, read(child)]))
}

/** Serves the rows of a fixture as they are. All a reader needs; writing to it is an error. */
async function fixtureDriver({ logs, blobs }: Fixture): Promise<Driver> {
  const nameOf = ({ tenant, thread, branch }: LogKey) => JSON.stringify([tenant, thread, branch])
  const found = new Map(
    logs.map(({ head, entries }) => [
      nameOf(head.log),
      {
        head: { ...head, lease: null },
        entries: entries.map((entry) => ({ ...entry, header: bytes(entry.header), body: bytes(entry.body) })),
      },
    ]),
  )
  const stored = new Map(blobs.map((blob) => [`${blob.tenant} ${blob.hash}`, bytes(blob.bytes)]))
  const memory = await openMemory({ clock: virtualClock() })
  const refuse = async (): Promise<never> => assert.fail('Reading a fixture writes nothing.')
  return {
    ...memory,
    append: refuse,
    prune: refuse,
    erase: refuse,
    putBlobs: refuse,
    reindex: refuse,
    head: async (log) => found.get(nameOf(log))?.head,
    async tail(log, upTo) {
      const rows = found.get(nameOf(log))
      if (rows === undefined) return undefined
      const last = rows.entries.find(({ seq }) => seq === (upTo ?? rows.head.seq))
      return {
        head: rows.head,
        entries: rows.entries.filter(({ seq }) => last && seq >= last.keyframe && seq <= last.seq),
      }
    },
    async read(log, from, limit) {
      return (found.get(nameOf(log))?.entries ?? []).filter(({ seq }) => seq >= from && seq < from + limit)
    },
    async headers(log, { before = Number.POSITIVE_INFINITY, limit }) {
      const entries = (found.get(nameOf(log))?.entries ?? []).filter(({ seq }) => seq < before)
      return entries
        .map(({ body, ...entry }) => ({ ...entry, size: body.length }))
        .reverse()
        .slice(0, limit)
    },
    async getBlobs(tenant, hashes) {
      const blobs = hashes.flatMap((hash) => {
        const content = stored.get(`${tenant} ${hash}`)
        return content ? [[hash, content] as const] : []
      })
      return new Map(blobs)
    },
  }
}

function bytes(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, 'base64'))
}

const versions = readdirSync(ROOT).filter((name) => /^format-v\d+$/.test(name))

describe.each(versions)('%s', (version) => {
  const folder = new URL(`${version}/`, ROOT)
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const load = (name: string) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Fixture

  it('has its files, as they were released', () => {
    const sums = files.sort().map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(new URL(name, folder)))
          .digest('hex')}  ${name}\n`,
    )
    assert.equal(sums.join(''), readFileSync(new URL('SHA256SUMS', folder), 'utf8'))
  })

  it('has entries of every shape', () => {
    const shapes = new Set<string>()
    for (const name of files) {
      for (const { head, entries } of load(name).logs) {
        for (const entry of entries) {
          const header = decodeHeader(bytes(entry.header))
          shapes.add(header.packing)
          shapes.add(
            header.keyframe === header.seq ? (header.base ? 'fork' : header.seq === 0 ? 'first' : 'keyframe') : 'delta',
          )
          if (header.blobs.length > 0) shapes.add('blobs')
          if (header.key !== null) shapes.add(header.encrypted ? 'encrypted' : 'authenticated')
          if (header.epoch > 1) shapes.add('claimed')
        }
        if (head.base.seq > 0) shapes.add('pruned')
      }
    }
    const expected = [
      'authenticated',
      'blobs',
      'br',
      'claimed',
      ...(version === 'format-v3' ? ['d1'] : version === 'format-v4' ? ['d2'] : []),
      'delta',
      'encrypted',
      'first',
      'fork',
      'keyframe',
      'plain',
      'pruned',
    ]
    assert.deepEqual([...shapes].sort(), expected)
  })

  it.each(files)('reads %s as it was written', async (name) => {
    const fixture = load(name)
    const { keys, blobThreshold } = fixture
    const driver = await fixtureDriver(fixture)
    const store = new LogStore(driver, { clock: virtualClock(), blobThreshold, ...(keys ? { keys } : {}) })
    let compared = 0
    for (const { head, expected } of fixture.logs) {
      if (expected === null) continue
      const log = await store.open(head.log)
      assert.deepStrictEqual(log.fold.state, read((expected.at(-1) as Expected).state))
      assert.equal(log.fold.hash, head.hash)
      assert.equal(log.fold.epoch, head.epoch)
      let seq = head.base.seq
      for await (const { header, body, fold } of log.entries(seq)) {
        const { kind, epoch, at, origin, index, state, data, store: writes } = expected[seq - head.base.seq] as Expected
        assert.deepStrictEqual([header.seq, header.kind, header.epoch, header.at], [seq, kind, epoch, at])
        assert.deepStrictEqual(fold.state, read(state))
        assert.deepStrictEqual(Object.keys(fold.state), Object.keys(read(state) as object))
        assert.deepStrictEqual(fold.index, read(index))
        assert.deepStrictEqual(fold.origin, origin)
        assert.deepStrictEqual(body.data, data === undefined ? undefined : read(data))
        assert.deepStrictEqual(body.store, writes === undefined ? undefined : read(writes))
        assert.deepStrictEqual((await log.at(seq)).state, fold.state)
        seq++
        compared++
      }
      assert.equal(seq, head.seq + 1)
      assert.equal((await log.history({ limit: 1000 })).length, expected.length)
      assert.deepStrictEqual((await store.verify(head.log))?.problems, [])
    }
    assert(compared > 0)
  })
})
