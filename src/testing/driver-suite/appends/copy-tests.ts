import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { TenantId } from '../../../core/ids.js'
import { isHoldfastError } from '../../../core/errors.js'
import type { Append, Driver, LogKey, StoredEntry } from '../../../log/contract.js'
import type { CopyDriver, NamedTombstone } from '../../../log/copy-contract.js'
import { makeAppend, makeEntry, makeHash, makeIndex, mustAppend } from '../../entries.js'
import { makeItem, putOne, withItems } from '../items/item-fixtures.js'
import {
  appendOne,
  assertEntries,
  assertSameHead,
  assertUnchanged,
  claim,
  createLog,
  headOf,
  logKey,
  newTenant,
  type SuiteContext,
  type SuiteTest,
} from '../suite-context.js'

export const copyTests: readonly SuiteTest[] = [
  test('creates a copied log where the other was pruned to, and goes on from there', async ({
    driver,
    tenant,
    open,
  }) => {
    const log = logKey(tenant)
    const entries = entriesFrom(7, 6, [7, 10])
    const index = makeIndex({ status: 'done', tags: ['a'], metadata: { n: 1 }, wakeAt: 5 })
    const at = await mustAppend(driver, { ...copied(log, entries), epoch: 12, index })
    for (const reader of [driver, await open()]) {
      const head = await headOf(reader, log)
      assert.deepEqual([head.seq, head.epoch, head.lease], [12, 12, null])
      assert.deepEqual({ ...head.base }, { seq: 7, hash: entries[0]?.hash })
      assertEntries(await reader.read(log, 0, 100), entries)
      assertEntries((await reader.tail(log))?.entries ?? [], entries.slice(3))
      assertEntries((await reader.tail(log, 9))?.entries ?? [], entries.slice(0, 3))
      assert.deepEqual((await reader.tail(log, 6))?.entries, [])
      assert.equal((await reader.headers(log, { limit: 100 })).length, 6)
      const [listed] = (await reader.heads({ tenant, tags: ['a'], metadata: { n: 1 }, limit: 2 })).heads
      assertSameHead(listed, head)
    }
    const next = await mustAppend(driver, makeAppend(log, at, { lease: claim('worker') }))
    assert.deepEqual([next.seq, next.epoch], [13, 13])
    assert.deepEqual(await driver.prune(log, at.incarnation, 10), { removed: 3 })
    assertEntries((await driver.read(log, 0, 3)).slice(0, 3), entries.slice(3))
  }),
  test('takes a log whose base was replaced by a keyframe, which the entries written since name', async (context) => {
    const { driver, tenant } = context
    const log = logKey(tenant)
    const entries = [
      [5, 5],
      [6, 1],
      [7, 1],
      [8, 5],
      [9, 5],
    ].map(([seq = 0, keyframe = 0]) => makeEntry({ seq, keyframe }))
    await mustAppend(driver, copied(log, entries))
    for (const upTo of [5, 6, 7, 8, 9])
      assertEntries((await driver.tail(log, upTo))?.entries ?? [], entries.slice(0, upTo - 4))
  }),
  test('raises the epoch of a copied log by as much as the other had claims, and gives nobody a lease', async (context) => {
    const { driver, tenant } = context
    const log = logKey(tenant)
    const [first, ...rest] = entriesFrom(0, 4, [0])
    const at = await mustAppend(driver, copied(log, [first as StoredEntry]))
    const end = await mustAppend(driver, { ...makeAppend(log, at, { entries: rest }), copied: true, epoch: 9 })
    const head = await headOf(driver, log)
    assert.deepEqual([head.epoch, head.lease], [9, null])
    assert.equal(await driver.renew(log, at.incarnation, 9, 60_000), false)
    const result = await appendOne(driver, makeAppend(log, end, { lease: claim('worker') }))
    assert.equal(result.status, 'appended')
    assert.equal((await headOf(driver, log)).epoch, 10)
  }),
  test('refuses a copied append to a log that ends elsewhere, as any other', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    await createLog(driver, log, { count: 3 })
    const before = await headOf(driver, log)
    const entries = await driver.read(log, 0, 10)
    assert.equal((await appendOne(driver, copied(log, entriesFrom(5, 2, [5])))).status, 'conflict')
    const late = { ...makeAppend(log, { ...before, hash: makeHash('other') }), copied: true, epoch: 4 }
    assert.equal((await appendOne(driver, late)).status, 'conflict')
    await assertUnchanged(driver, before, entries)
  }),
  test('refuses copied appends that can be of no log, and writes nothing', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    const start = copied(log, entriesFrom(5, 3, [5]))
    const wrong: readonly Append[] = [
      { ...start, entries: start.entries.slice(1) },
      { ...start, lease: claim('worker'), epoch: 1 },
      { ...start, entries: [...start.entries.slice(0, 1), ...start.entries.slice(2)] },
      { ...start, copied: false },
      { ...start, entries: entriesFrom(0, 1, [0]), copied: false, epoch: 3 },
    ]
    for (const append of wrong) {
      await assert.rejects(driver.append([append]), (error) => isHoldfastError(error, 'invalid-value'))
    }
    const at = await mustAppend(driver, { ...start, epoch: 6 })
    await assert.rejects(driver.append([{ ...makeAppend(log, at), copied: true, epoch: 5 }]))
    assert.equal((await headOf(driver, log)).seq, 7)
  }),
  test('buries a thread without logs, and a log that is created takes the tombstone away', async (context) => {
    const { tenant } = context
    const driver = withCopy(context.driver)
    const log = logKey(tenant, 'gone')
    assert.equal(await driver.bury(tenant, log.thread, { at: 5.5, reason: 'ärger "1"' }), true)
    assert.deepEqual({ ...(await driver.tombstone(tenant, log.thread)) }, { at: 5.5, reason: 'ärger "1"' })
    assert.equal(await driver.bury(tenant, log.thread, { at: 6, reason: 'again' }), true)
    assert.deepEqual({ ...(await driver.tombstone(tenant, log.thread)) }, { at: 6, reason: 'again' })
    await createLog(driver, log)
    assert.equal(await driver.tombstone(tenant, log.thread), undefined)
    assert.equal(await driver.bury(tenant, log.thread, { at: 7, reason: 'no' }), false)
    assert.equal(await driver.tombstone(tenant, log.thread), undefined)
    assert.equal((await headOf(driver, log)).seq, 0)
  }),
  test('lists what erased threads of all tenants left behind', async (context) => {
    const { tenant } = context
    const driver = withCopy(context.driver)
    const other = newTenant(' ü')
    const alive = logKey(tenant, 'alive')
    await createLog(driver, alive)
    const erased = logKey(tenant, '["user","42"]')
    await createLog(driver, erased)
    await driver.erase({ tenant, thread: erased.thread, tombstone: { at: 1, reason: 'expired' } })
    const silent = logKey(tenant, 'silent')
    await createLog(driver, silent)
    await driver.erase({ tenant, thread: silent.thread, tombstone: null })
    await driver.bury(other, alive.thread, { at: 2, reason: 'buried' })
    assert.deepEqual(await tombstonesOf(driver, tenant), [`${erased.thread} 1 expired`])
    assert.deepEqual(await tombstonesOf(driver, other), [`${alive.thread} 2 buried`])
  }),
  test('lists every tenant that has something, and nobody else', async (context) => {
    const driver = withCopy(context.driver)
    const [withLog, withBlob, withItem, buried, erased, long] = [
      newTenant(),
      newTenant(':{x}'),
      newTenant('/../'),
      newTenant('%'),
      newTenant(),
      newTenant('long'.repeat(40)),
    ] as const
    await createLog(driver, logKey(withLog))
    await createLog(driver, logKey(long))
    await driver.putBlobs(withBlob, [{ hash: makeHash('blob'), bytes: new Uint8Array(10) }])
    await putOne(withItems(driver), withItem, 'space', 'key', makeItem())
    await driver.bury(buried, logKey(buried).thread, { at: 1, reason: 'r' })
    await createLog(driver, logKey(erased))
    await driver.erase({ tenant: erased, thread: logKey(erased).thread, tombstone: null })
    const listed = await driver.listTenants()
    assert.equal(new Set(listed).size, listed.length, 'each once')
    for (const tenant of [withLog, withBlob, withItem, buried, long]) assert.ok(listed.includes(tenant), tenant)
    assert.ok(!listed.includes(context.tenant))
  }),
  test('returns the fields of items to a scan that asks for them', async ({ driver, tenant }) => {
    const fields: [string, string][] = [
      ['colour', 'red'],
      ['a"b', 'c":"d\n'],
      ['ü\u2028', ''],
    ]
    await putOne(withItems(driver), tenant, 's', 'a', makeItem({ fields }))
    await putOne(withItems(driver), tenant, 's', 'b', makeItem({ fields: [] }))
    const scanned = await driver.scanItems?.(tenant, 's', { limit: 10, fields: true }, 0)
    assert.deepEqual(
      scanned?.map(({ key, fields: found }) => [key, found?.map((pair) => [...pair])]),
      [
        ['a', fields],
        ['b', []],
      ],
    )
    const plain = await driver.scanItems?.(tenant, 's', { limit: 10 }, 0)
    assert.equal(plain?.[0]?.fields, undefined)
  }),
]

function test(name: string, run: (context: SuiteContext) => Promise<void>): SuiteTest {
  return { name, run, exempt: lacksCopy }
}

function lacksCopy(driver: Driver): string | undefined {
  return driver.listTenants === undefined ? 'this driver can not be copied from or to yet' : undefined
}

function withCopy(driver: Driver): Driver & CopyDriver {
  assert.ok(driver.listTenants, 'the driver can be copied')
  return driver as Driver & CopyDriver
}

/** An append that brings entries of another store into a new log. */
function copied(log: LogKey, entries: readonly StoredEntry[]): Append {
  return { ...makeAppend(log, null, { entries, incarnation: randomUUID() }), copied: true }
}

function entriesFrom(first: number, count: number, keyframes: readonly number[]): StoredEntry[] {
  return Array.from({ length: count }, (_, i) =>
    makeEntry({ seq: first + i, keyframe: keyframes.findLast((keyframe) => keyframe <= first + i) ?? first }),
  )
}

async function tombstonesOf(driver: CopyDriver, tenant: TenantId): Promise<string[]> {
  const found = new Map<string, NamedTombstone>()
  let cursor: string | undefined
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 10_000, 'the pages come to an end')
    const page = await driver.listTombstones(cursor === undefined ? {} : { cursor })
    for (const one of page.tombstones) if (one.tenant === tenant) found.set(one.thread, one)
    cursor = page.cursor
    if (cursor === undefined) return [...found.values()].map(({ thread, at, reason }) => `${thread} ${at} ${reason}`)
  }
}
