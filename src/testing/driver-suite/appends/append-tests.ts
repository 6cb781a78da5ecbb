import assert from 'node:assert/strict'
import type { Expect, StoredEntry } from '../../../log/contract.js'
import { expectAfter, makeAppend, makeBytes, makeEntry, makeHash, mustAppend } from '../../entries.js'
import {
  appendOne,
  assertBytes,
  assertEntries,
  assertSameHead,
  assertUnchanged,
  branchId,
  comparableIndex,
  createLog,
  headOf,
  logKey,
  type SuiteTest,
} from '../suite-context.js'

export const appendTests: readonly SuiteTest[] = [
  {
    name: 'creates a log whose head, base and index are what the append said',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const origin = { branch: branchId('source'), incarnation: 'inc-source', seq: 7, hash: makeHash('origin') }
      const append = makeAppend(log, null, {
        count: 3,
        index: {
          status: 'paused',
          createdAt: 11,
          updatedAt: 22,
          expiresAt: 33,
          wakeAt: 44,
          tags: ['a', 'b'],
          metadata: { text: 'x', number: 1.5, truth: false },
          origin,
        },
      })
      assert.deepEqual(await driver.append([append]), [{ status: 'appended' }])
      const head = await headOf(driver, log)
      assert.deepEqual({ ...head.log }, log)
      assert.equal(head.incarnation, append.incarnation)
      assert.equal(head.seq, 2)
      assert.equal(head.hash, append.entries[2]?.hash)
      assert.equal(head.epoch, 0)
      assert.deepEqual({ ...head.base }, { seq: 0, hash: append.entries[0]?.hash })
      assert.equal(head.lease, null)
      assert.deepEqual(comparableIndex(head.index), comparableIndex(append.index))
    },
  },
  {
    name: 'replaces the whole index row with every append',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log, {
        index: { status: 'one', expiresAt: 5, wakeAt: 6, tags: ['gone', 'stays'], metadata: { gone: 1, stays: 'x' } },
      })
      const append = makeAppend(log, at, {
        index: {
          status: 'two',
          createdAt: 1,
          updatedAt: 2,
          tags: ['new', 'stays'],
          metadata: { new: true, stays: 'y' },
        },
      })
      await mustAppend(driver, append)
      assert.deepEqual(comparableIndex((await headOf(driver, log)).index), comparableIndex(append.index))
    },
  },
  {
    name: 'keeps the labels of an append that says they did not change',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const labels = { tags: ['kept'], metadata: { kept: 'yes' } }
      const at = await createLog(driver, log, { index: labels })
      const append = { ...makeAppend(log, at, { index: { ...labels, status: 'next' } }), labelsChanged: false }
      await mustAppend(driver, append)
      assert.deepEqual(comparableIndex((await headOf(driver, log)).index), comparableIndex(append.index))
      const page = await driver.heads({ tenant, ...labels, status: ['next'], limit: 10 })
      assert.equal(page.heads.length, 1)
    },
  },
  {
    name: 'stores several entries of one append as one: all of them or none',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log)
      const good = makeAppend(log, at, { count: 20 })
      await mustAppend(driver, good)
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 100)
      assert.equal(entries.length, 21)
      const stale = await appendOne(driver, makeAppend(log, at, { count: 20 }))
      assert.equal(stale.status, 'conflict')
      await assertUnchanged(driver, before, entries)
    },
  },
  {
    name: 'returns header and body byte for byte: empty, every byte value, text that looks like an escape',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i)
      const bodies = [
        new Uint8Array(0),
        everyByte,
        new TextEncoder().encode('\\x00\\000 \' " \\ $1 %s ? :name \u0000 é \uFEFF \r\n'),
        Uint8Array.from([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
        new Uint8Array(1),
      ]
      const entries = bodies.map((body, seq): StoredEntry => ({ ...makeEntry({ seq }), header: body, body }))
      await createLog(driver, log, { entries })
      assertEntries(await driver.read(log, 0, 10), entries)
      assertEntries((await driver.tail(log, 1))?.entries ?? [], entries.slice(1, 2))
      const headers = await driver.headers(log, { limit: 10 })
      for (const header of headers) {
        assertBytes(header.header, bodies[header.seq] as Uint8Array, `the header of entry ${header.seq}`)
      }
    },
  },
  {
    name: 'stores a body of one megabyte, and of four together',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = [0, 1, 2, 3].map((seq) => makeEntry({ seq, bodySize: 1024 * 1024 }))
      const at = await createLog(driver, log, { entries: entries.slice(0, 1) })
      await mustAppend(driver, makeAppend(log, at, { entries: entries.slice(1) }))
      assertEntries(await driver.read(log, 0, 10), entries)
    },
  },
  {
    name: 'stores bytes that are a view into a larger buffer without their surroundings',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const large = makeBytes('surroundings', 1000)
      const entry: StoredEntry = {
        ...makeEntry(),
        header: large.subarray(100, 150),
        body: Buffer.from(large.buffer, large.byteOffset + 300, 77),
      }
      await createLog(driver, log, { entries: [entry] })
      assertEntries(await driver.read(log, 0, 1), [
        { ...entry, header: large.slice(100, 150), body: large.slice(300, 377) },
      ])
    },
  },
  {
    name: 'is not affected by what writers and readers do to their arrays afterwards',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const tags = ['tag']
      const metadata: Record<string, string> = { key: 'value' }
      const body = makeBytes('mine', 50)
      const header = makeBytes('mine too', 50)
      const entries = [{ ...makeEntry(), header, body }]
      const key = { ...log }
      const append = makeAppend(key, null, { entries, index: { tags, metadata } })
      await mustAppend(driver, append)
      const expected = [{ ...makeEntry(), hash: entries[0]?.hash ?? '', header: header.slice(), body: body.slice() }]
      body.fill(0)
      header.fill(0)
      entries.pop()
      tags.push('other')
      metadata.key = 'other'
      Object.assign(key, { thread: 'other' })
      const first = await driver.read(log, 0, 10)
      assertEntries(first, expected)
      for (const entry of first) entry.body.fill(1)
      assertEntries((await driver.tail(log))?.entries ?? [], expected)
      const { log: found, index } = await headOf(driver, log)
      assert.deepEqual({ ...found }, log)
      assert.deepEqual([...index.tags], ['tag'])
      assert.deepEqual(Object.entries(index.metadata), [['key', 'value']])
    },
  },
  {
    name: 'refuses to create a log that exists and returns its head',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      await createLog(driver, log, { count: 2, index: { tags: ['t'], metadata: { m: 1 } } })
      const before = await headOf(driver, log)
      const entries = await driver.read(log, 0, 10)
      const result = await appendOne(driver, makeAppend(log, null))
      assert.equal(result.status, 'conflict')
      assertSameHead(result.status === 'conflict' ? result.head : undefined, before)
      await assertUnchanged(driver, before, entries)
    },
  },
  ...(['incarnation', 'seq', 'hash', 'epoch'] as const).map(
    (field): SuiteTest => ({
      name: `refuses an append that expects another ${field}, returns the head and writes nothing`,
      async run({ driver, tenant }) {
        const log = logKey(tenant)
        const at = await createLog(driver, log, {
          count: 3,
          lease: { kind: 'claim', owner: 'w', ms: 600_000, force: false },
        })
        const before = await headOf(driver, log)
        const entries = await driver.read(log, 0, 10)
        const wrong: readonly Expect[] = {
          incarnation: [{ ...at, incarnation: 'another' }],
          seq: [
            { ...at, seq: at.seq - 1 },
            { ...at, seq: at.seq + 1 },
            { ...at, seq: 2 ** 40 },
          ],
          hash: [
            { ...at, hash: makeHash('another') },
            { ...at, hash: entries[1]?.hash ?? '' },
          ],
          epoch: [
            { ...at, epoch: at.epoch - 1 },
            { ...at, epoch: at.epoch + 1 },
            { ...at, epoch: 2 ** 40 },
          ],
        }[field]
        for (const expect of wrong) {
          const result = await appendOne(driver, makeAppend(log, expect))
          assert.equal(result.status, 'conflict')
          assertSameHead(result.status === 'conflict' ? result.head : undefined, before)
        }
        await assertUnchanged(driver, before, entries)
        await mustAppend(driver, makeAppend(log, at))
      },
    }),
  ),
  {
    name: 'returns no head with the conflict when the log is gone or never was',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const at = await createLog(driver, log)
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      assert.deepEqual(await appendOne(driver, makeAppend(log, at)), { status: 'conflict', head: undefined })
      assert.deepEqual(await appendOne(driver, makeAppend(logKey(tenant, 'never'), at)), {
        status: 'conflict',
        head: undefined,
      })
      assert.equal(await driver.head(log), undefined)
    },
  },
  {
    name: 'refuses a writer of an id that was erased and used again, even at the same seq',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const old = await createLog(driver, log, { count: 3 })
      await driver.erase({ tenant, thread: log.thread, tombstone: { at: 1, reason: 'test' } })
      const fresh = await createLog(driver, log, { count: 3 })
      const result = await appendOne(driver, makeAppend(log, old))
      assert.equal(result.status, 'conflict')
      assert.equal(result.status === 'conflict' && result.head?.incarnation, fresh.incarnation)
      // The same bytes again: only the incarnation tells the two logs apart.
      await driver.erase({ tenant, thread: log.thread, tombstone: null })
      const again = await createLog(driver, log, { entries: [makeEntry({ seed: 'same' })] })
      assert.equal(
        (await appendOne(driver, makeAppend(log, { ...again, incarnation: old.incarnation }))).status,
        'conflict',
      )
      await mustAppend(driver, makeAppend(log, again))
    },
  },
  {
    name: 'lets branches of one thread run side by side without touching each other',
    async run({ driver, tenant }) {
      const logs = ['main', 'b1', 'b2'].map((branch) => logKey(tenant, 'thread', branch))
      const ends: Expect[] = []
      for (const log of logs) ends.push(await createLog(driver, log))
      for (let round = 0; round < 5; round++) {
        const appends = logs.map((log, i) => makeAppend(log, ends[i] as Expect, { count: i + 1 }))
        const results = await driver.append(appends)
        assert.deepEqual(
          results.map((result) => result.status),
          ['appended', 'appended', 'appended'],
        )
        for (const [i, append] of appends.entries()) ends[i] = expectAfter(append)
      }
      for (const [i, log] of logs.entries()) {
        const head = await headOf(driver, log)
        assert.equal(head.seq, 5 * (i + 1))
        assert.equal(head.hash, ends[i]?.hash)
      }
    },
  },
]
