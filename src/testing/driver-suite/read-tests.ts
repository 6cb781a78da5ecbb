import assert from 'node:assert/strict'
import type { Driver, LogKey, StoredEntry } from '../../log/contract.js'
import { makeAppend, makeEntry, mustAppend } from '../entries.js'
import {
  assertBytes,
  assertEntries,
  assertSameHead,
  createLog,
  headOf,
  logKey,
  type SuiteTest,
} from './suite-context.js'

export const readTests: readonly SuiteTest[] = [
  {
    name: 'reads any past state: from the newest keyframe at or before it, up to exactly there',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const keyframes = [0, 1, 4, 9, 10, 17]
      const entries = await writeLog(driver, log, 25, keyframes)
      const head = await headOf(driver, log)
      for (let upTo = 0; upTo < 25; upTo++) {
        const start = keyframes.findLast((seq) => seq <= upTo) as number
        const tail = await driver.tail(log, upTo)
        assertSameHead(tail?.head, head)
        assertEntries(tail?.entries ?? [], entries.slice(start, upTo + 1))
      }
    },
  },
  {
    name: 'reads the newest state when no end is given',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 12, [0, 5])
      const tail = await driver.tail(log)
      assertSameHead(tail?.head, await headOf(driver, log))
      assertEntries(tail?.entries ?? [], entries.slice(5))
    },
  },
  {
    name: 'reads the newest states of many logs at once, each its own, among them a pruned one and some that do not exist',
    async run({ driver, tenant }) {
      const logs = Array.from({ length: 40 }, (_, i) => logKey(tenant, `many-${i}`))
      const written: (readonly StoredEntry[])[] = []
      for (const [i, log] of logs.entries()) {
        const last = i % 4
        written.push(i % 5 === 4 ? [] : (await writeLog(driver, log, 1 + last, [0, 2])).slice(last < 2 ? 0 : 2))
      }
      await driver.prune(logs[2] as LogKey, (await headOf(driver, logs[2] as LogKey)).incarnation, 2)
      const tails = await Promise.all(logs.map((log) => driver.tail(log)))
      for (const [i, log] of logs.entries()) {
        assertEntries(tails[i]?.entries ?? [], written[i] ?? [])
        if (written[i]?.length === 0) assert.equal(tails[i], undefined)
        else assertSameHead(tails[i]?.head, await headOf(driver, log))
      }
    },
  },
  {
    name: 'returns the head and no entries for a state before the base or behind the head',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 12, [0, 5])
      const head = await headOf(driver, log)
      for (const upTo of [12, 13, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER, -1]) {
        const tail = await driver.tail(log, upTo)
        assertSameHead(tail?.head, head)
        assert.deepEqual(tail?.entries, [], `up to ${upTo}`)
      }
      await driver.prune(log, head.incarnation, 5)
      for (const upTo of [0, 4]) {
        const tail = await driver.tail(log, upTo)
        assertSameHead(tail?.head, await headOf(driver, log))
        assert.deepEqual(tail?.entries, [], `up to ${upTo} after the prune`)
      }
      assertEntries((await driver.tail(log, 5))?.entries ?? [], entries.slice(5, 6))
    },
  },
  {
    name: 'returns nothing of a log that does not exist, and does not create it',
    async run({ driver, tenant }) {
      const log = logKey(tenant, 'never')
      assert.equal(await driver.head(log), undefined)
      assert.equal(await driver.tail(log), undefined)
      assert.equal(await driver.tail(log, 3), undefined)
      assert.deepEqual(await driver.read(log, 0, 10), [])
      assert.deepEqual(await driver.headers(log, { limit: 10 }), [])
      assert.deepEqual((await driver.heads({ tenant, limit: 10 })).heads, [])
      assert.equal(await driver.tombstone(tenant, log.thread), undefined)
    },
  },
  {
    name: 'reads entries in pages that are short only at the end',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 23, [0, 7])
      for (const limit of [1, 5, 23, 24, 1000]) {
        const found: StoredEntry[] = []
        for (;;) {
          const page = await driver.read(log, found.length, limit)
          found.push(...page)
          assert.ok(found.length <= entries.length, 'the pages come to an end')
          if (page.length < limit) break
        }
        assertEntries(found, entries)
      }
      assertEntries(await driver.read(log, 10, 3), entries.slice(10, 13))
      assertEntries(await driver.read(log, 22, 3), entries.slice(22))
      for (const from of [23, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.deepEqual(await driver.read(log, from, 3), [])
    },
  },
  {
    name: 'fills a page with large entries as with small ones',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = Array.from({ length: 12 }, (_, seq) => makeEntry({ seq, bodySize: 300_000 }))
      await createLog(driver, log, { entries })
      assertEntries(await driver.read(log, 0, 12), entries)
    },
  },
  {
    name: 'reads from the base on after a prune',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = await writeLog(driver, log, 12, [0, 5, 8])
      await driver.prune(log, (await headOf(driver, log)).incarnation, 8)
      assertEntries(await driver.read(log, 0, 2), entries.slice(8, 10))
      assertEntries(await driver.read(log, 8, 100), entries.slice(8))
      assertEntries(await driver.read(log, 9, 1), entries.slice(9, 10))
    },
  },
  {
    name: 'pages headers newest first, with the sizes of their bodies',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = Array.from({ length: 15 }, (_, seq) =>
        makeEntry({ seq, keyframe: seq < 6 ? 0 : 6, bodySize: seq * 37 }),
      )
      await createLog(driver, log, { entries })
      for (const limit of [1, 4, 15, 100]) {
        const seen: number[] = []
        let before: number | undefined
        for (;;) {
          const page = await driver.headers(log, before === undefined ? { limit } : { before, limit })
          for (const header of page) {
            const entry = entries[header.seq] as StoredEntry
            assert.equal(header.keyframe, entry.keyframe)
            assert.equal(header.hash, entry.hash)
            assert.equal(header.size, entry.body.length)
            assertBytes(header.header, entry.header, `the header of ${header.seq}`)
            assert.ok(!('body' in header), 'bodies are not read')
            seen.push(header.seq)
          }
          assert.ok(seen.length <= entries.length, 'the pages come to an end')
          if (page.length < limit) break
          before = page.at(-1)?.seq
        }
        assert.deepEqual(seen, entries.map((entry) => entry.seq).reverse())
      }
    },
  },
  {
    name: 'pages headers before any seq, and no further than the base',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      await writeLog(driver, log, 12, [0, 5])
      const seqs = async (before: number) => (await driver.headers(log, { before, limit: 3 })).map(({ seq }) => seq)
      assert.deepEqual(await seqs(12), [11, 10, 9])
      assert.deepEqual(await seqs(11), [10, 9, 8])
      assert.deepEqual(await seqs(2), [1, 0])
      assert.deepEqual(await seqs(0), [])
      for (const before of [100, 2 ** 31, Number.MAX_SAFE_INTEGER]) assert.deepEqual(await seqs(before), [11, 10, 9])
      await driver.prune(log, (await headOf(driver, log)).incarnation, 5)
      assert.deepEqual(await seqs(7), [6, 5])
      assert.deepEqual(await seqs(5), [])
    },
  },
  {
    name: 'shows an append to every other driver as soon as it is acknowledged',
    async run({ driver, tenant, open }) {
      const other = await open()
      const log = logKey(tenant)
      let at = await createLog(driver, log)
      for (let i = 0; i < 20; i++) {
        const [writer, reader] = i % 2 === 0 ? [driver, other] : [other, driver]
        at = await mustAppend(writer, makeAppend(log, at, { index: { status: `s${i}`, tags: [`t${i}`] } }))
        assert.equal((await reader.head(log))?.hash, at.hash)
        assert.equal((await reader.tail(log))?.entries.at(-1)?.hash, at.hash)
        assert.equal((await reader.headers(log, { limit: 1 }))[0]?.hash, at.hash)
        assert.equal(
          (await reader.heads({ tenant, tags: [`t${i}`], status: [`s${i}`], limit: 2 })).heads[0]?.seq,
          i + 1,
        )
      }
    },
  },
  {
    name: 'stores a long log, and reads its end and its middle',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const entries = Array.from({ length: 3000 }, (_, seq) => makeEntry({ seq, keyframe: seq - (seq % 100) }))
      let at = await createLog(driver, log, { entries: entries.slice(0, 500) })
      for (let from = 500; from < entries.length; from += 500) {
        at = await mustAppend(driver, makeAppend(log, at, { entries: entries.slice(from, from + 500) }))
      }
      assertEntries((await driver.tail(log))?.entries ?? [], entries.slice(2900))
      assertEntries((await driver.tail(log, 1555))?.entries ?? [], entries.slice(1500, 1556))
      assertEntries(await driver.read(log, 0, 5000), entries)
    },
  },
]

/** Entries 0 … count - 1, some appended one by one and some together, with keyframes at these places. */
export async function writeLog(
  driver: Driver,
  log: LogKey,
  count: number,
  keyframes: readonly number[],
): Promise<readonly StoredEntry[]> {
  const entries = Array.from({ length: count }, (_, seq) =>
    makeEntry({ seq, keyframe: keyframes.findLast((keyframe) => keyframe <= seq) ?? seq }),
  )
  let at = await createLog(driver, log, { entries: entries.slice(0, 1) })
  for (let from = 1; from < count; ) {
    const size = Math.min(1 + (from % 3), count - from)
    at = await mustAppend(driver, makeAppend(log, at, { entries: entries.slice(from, from + size) }))
    from += size
  }
  return entries
}
