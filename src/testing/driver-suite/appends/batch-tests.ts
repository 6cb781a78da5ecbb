import assert from 'node:assert/strict'
import { isHoldfastError } from '../../../core/errors.js'
import type { Append, Expect, LogKey, StoredEntry } from '../../../log/contract.js'
import { expectAfter, makeAppend, makeEntry, mustAppend } from '../../entries.js'
import {
  assertEntries,
  assertSameHead,
  assertUnchanged,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  type SuiteTest,
} from '../suite-context.js'

export const batchTests: readonly SuiteTest[] = [
  {
    name: 'answers an empty batch with no results',
    async run({ driver }) {
      assert.deepEqual(await driver.append([]), [])
    },
  },
  {
    name: 'answers by index in a batch where some conflict, some are held and the others land',
    async run({ driver, tenant }) {
      const log = (name: string) => logKey(tenant, name)
      const claim = { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } as const
      const stale = await createLog(driver, log('stale'))
      await mustAppend(driver, makeAppend(log('stale'), stale))
      const held = await createLog(driver, log('held'), { lease: claim })
      const open = await createLog(driver, log('open'))
      const forced = await createLog(driver, log('forced'), { lease: claim })
      await createLog(driver, log('exists'))
      const large = [1, 2].map((step) => makeEntry({ seq: stale.seq + step, bodySize: 5000 * step }))
      const batch = [
        makeAppend(log('stale'), stale, { entries: large }),
        makeAppend(log('new'), null, { count: 2 }),
        makeAppend(log('held'), held, { lease: { ...claim, owner: 'other' } }),
        makeAppend(log('open'), open, { count: 3 }),
        makeAppend(log('exists'), null),
        makeAppend(log('forced'), forced, { lease: { ...claim, owner: 'other', force: true } }),
        makeAppend(log('gone'), open),
      ]
      const results = await driver.append(batch)
      assert.deepEqual(
        results.map((result) => result.status),
        ['conflict', 'appended', 'held', 'appended', 'conflict', 'appended', 'conflict'],
      )
      for (const [i, result] of results.entries()) {
        const { log: key, entries } = batch[i] as Append
        if (result.status !== 'appended') assertSameHead(result.head, await driver.head(key))
        else assertEntries(await driver.read(key, (entries[0] as StoredEntry).seq, entries.length + 1), entries)
      }
      assert.equal((await headOf(driver, log('held'))).lease?.owner, 'w')
    },
  },
  {
    name: 'lands a batch of the largest size it declares',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      const size = Math.min(driver.capabilities.maxBatch, 2000)
      assert.ok(Number.isInteger(size) && size >= 1)
      const logs = Array.from({ length: size }, (_, i) => logKey(tenant, `thread-${i}`))
      const creates = logs.map((log) => makeAppend(log, null))
      assert.ok((await driver.append(creates)).every((result) => result.status === 'appended'))
      // In another order than before, with every third one stale.
      const batch = creates
        .map((append, i) => makeAppend(append.log, { ...expectAfter(append), ...(i % 3 === 0 ? { epoch: 7 } : {}) }))
        .reverse()
      const results = await driver.append(batch)
      assert.deepEqual(
        results.map((result) => result.status),
        batch.map((append) => (append.epoch === 7 ? 'conflict' : 'appended')),
      )
    },
  },
  {
    name: 'lands a batch of several megabytes',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      const size = Math.min(driver.capabilities.maxBatch, 32)
      const batch = Array.from({ length: size }, (_, i) =>
        makeAppend(logKey(tenant, `thread-${i}`), null, { entries: [makeEntry({ bodySize: 256 * 1024 })] }),
      )
      assert.ok((await driver.append(batch)).every((result) => result.status === 'appended'))
      for (const { log, entries } of batch) assertEntries(await driver.read(log, 0, 2), entries)
    },
  },
  {
    name: 'lands as many batches at once as it declares, and more',
    async run({ driver, tenant }) {
      const batches = Math.min(driver.capabilities.parallelBatches, 32) + 3
      assert.ok(batches >= 4)
      const appends = Array.from({ length: batches }, (_, i) =>
        [0, 1, 2].map((j) => makeAppend(logKey(tenant, `thread-${i}-${j}`), null)),
      )
      const results = await Promise.all(appends.map((batch) => driver.append(batch)))
      assert.ok(results.flat().every((result) => result.status === 'appended'))
      for (const append of appends.flat()) {
        assert.equal((await headOf(driver, append.log)).hash, append.entries[0]?.hash)
      }
    },
  },
  {
    name: 'lands batches that name the same logs in opposite orders at the same time',
    timeoutMs: 300_000,
    async run({ driver, tenant, open, rounds }) {
      const other = await open()
      const logs = Array.from({ length: 8 }, (_, i) => logKey(tenant, `thread-${i}`))
      const ends = new Map<LogKey, Expect>()
      for (const log of logs) ends.set(log, await createLog(driver, log))
      for (let round = 0; round < Math.ceil(rounds / 40); round++) {
        const batch = (order: readonly LogKey[]) => order.map((log) => makeAppend(log, ends.get(log) as Expect))
        const [mine, theirs] = [batch(logs), batch([...logs].reverse())]
        const [a, b] = await Promise.all([driver.append(mine), other.append(theirs)])
        for (const log of logs) {
          const landed = [
            mine.find((append, i) => append.log === log && a[i]?.status === 'appended'),
            theirs.find((append, i) => append.log === log && b[i]?.status === 'appended'),
          ].filter((append) => append !== undefined)
          assert.equal(landed.length, 1, 'exactly one of the two lands in each log')
          ends.set(log, expectAfter(landed[0] as Append))
        }
      }
    },
  },
  ...brokenBatches().map(
    ([what, spoil]): SuiteTest => ({
      name: `refuses a batch with ${what} and writes nothing of it`,
      async run({ driver, tenant }) {
        const log = logKey(tenant)
        const at = await createLog(driver, log, { count: 2 })
        const before = await headOf(driver, log)
        const entries = await driver.read(log, 0, 10)
        const neighbour = makeAppend(logKey(tenant, 'neighbour'), null)
        await assert.rejects(driver.append([neighbour, ...spoil(log, at)]), (error) => {
          assert.ok(isHoldfastError(error, 'invalid-value'), `a HoldfastError with code invalid-value, not ${error}`)
          assert.equal(error.data.written, 'nothing')
          return true
        })
        await assertUnchanged(driver, before, entries)
        assert.equal(await driver.head(neighbour.log), undefined)
        await mustAppend(driver, makeAppend(log, at))
      },
    }),
  ),
]

function brokenBatches(): readonly (readonly [string, (log: LogKey, at: Expect) => readonly Append[]])[] {
  const claim = { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } as const
  const other = (log: LogKey) => ({ ...log, thread: `${log.thread}-new` }) as LogKey
  return [
    ['two appends to one log', (log, at) => [makeAppend(log, at), makeAppend({ ...log }, at)]],
    ['an append without entries', (log, at) => [{ ...makeAppend(log, at), entries: [] }]],
    ['a gap before its first entry', (log, at) => [makeAppend(log, at, { entries: [makeEntry({ seq: at.seq + 2 })] })]],
    ['an entry that is there already', (log, at) => [makeAppend(log, at, { entries: [makeEntry({ seq: at.seq })] })]],
    [
      'a gap between its entries',
      (log, at) => [makeAppend(log, at, { entries: [1, 3].map((step) => makeEntry({ seq: at.seq + step })) })],
    ],
    [
      'a new log that does not begin at 0',
      (log) => [makeAppend(other(log), null, { entries: [makeEntry({ seq: 1 })] })],
    ],
    [
      'a new log that does not begin with a keyframe',
      (log) => [makeAppend(other(log), null, { entries: [makeEntry({ seq: 0, keyframe: -1 })] })],
    ],
    [
      'a keyframe that lies ahead',
      (log, at) => [makeAppend(log, at, { entries: [makeEntry({ seq: at.seq + 1, keyframe: at.seq + 2 })] })],
    ],
    [
      'an entry that folds from before the newest keyframe',
      (log, at) => {
        const entries = [makeEntry({ seq: at.seq + 1 }), makeEntry({ seq: at.seq + 2, keyframe: at.seq })]
        return [makeAppend(log, at, { entries })]
      },
    ],
    ['another incarnation than expected', (log, at) => [{ ...makeAppend(log, at), incarnation: 'other' }]],
    ['an epoch that rises without a claim', (log, at) => [{ ...makeAppend(log, at), epoch: at.epoch + 1 }]],
    [
      'a claim that does not raise the epoch',
      (log, at) => [{ ...makeAppend(log, at, { lease: claim }), epoch: at.epoch }],
    ],
    ['a claim that skips an epoch', (log, at) => [{ ...makeAppend(log, at, { lease: claim }), epoch: at.epoch + 2 }]],
    [
      'the extension of a lease on a log that nobody claimed',
      (log, at) => [makeAppend(log, at, { lease: { kind: 'extend', ms: LONG_MS } })],
    ],
  ]
}
