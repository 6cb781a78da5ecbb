import assert from 'node:assert/strict'
import type { Expect, LogKey } from '../../../log/contract.js'
import type { CarriedWrite, NewItem } from '../../../log/store-contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import {
  assertItem,
  DAY_MS,
  type ItemStore,
  keysOf,
  lacksApply,
  makeCarried,
  makeItem,
  NOW,
  ODD_TEXTS,
  putOne,
  readOne,
  scanAll,
  withItems,
  writeOne,
} from './item-fixtures.js'
import { createLog, headOf, logKey, newTenant, type SuiteContext, type SuiteTest } from '../suite-context.js'

type ItemContext = Omit<SuiteContext, 'driver'> & { readonly driver: ItemStore }

/** Writes that are applied after the entries that carry them, perhaps again, perhaps late. */
export const itemApplyTests: readonly SuiteTest[] = [
  test('applies what entries carry and records how far', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    assert.equal((await headOf(driver, log)).applied ?? -1, -1)
    await putOne(driver, tenant, 's', 'gone')
    const item = makeItem({ expiresAt: NOW + 100, fields: [['f', 't']] })
    const writes = [makeCarried(0, 's', 'k', item), makeCarried(0, 's', 'gone', null), makeCarried(0, 't', 'k', item)]
    assert.equal(await apply(driver, log, at, writes, 0), true)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', item)
    assertItem(await readOne(driver, tenant, 't', 'k'), 'k', item)
    assert.equal(await readOne(driver, tenant, 's', 'gone'), undefined)
    assert.equal((await headOf(driver, log)).applied, 0)
    assert.equal((await driver.tail(log))?.head.applied, 0)
    assert.equal((await driver.heads({ tenant, limit: 5 })).heads[0]?.applied, 0)
    const after = await mustAppend(driver, makeAppend(log, at, { count: 3 }))
    assert.equal((await headOf(driver, log)).applied, 0, 'an append leaves it as it is')
    assert.equal(await apply(driver, log, after, [], 3), true)
    assert.equal((await headOf(driver, log)).applied, 3, 'also when there is nothing to apply')
  }),
  test('never moves back how far writes are applied', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant, 4)
    await apply(driver, log, at, [makeCarried(3, 's', 'k', makeItem())], 3)
    await apply(driver, log, at, [makeCarried(1, 's', 'other', makeItem())], 1)
    assert.equal((await headOf(driver, log)).applied, 3)
    assert.deepEqual(
      keysOf(await scanAll(driver, tenant, 's')),
      ['k', 'other'],
      'what an older entry carries lands late',
    )
  }),
  test('changes nothing when it applies the same again', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant, 3)
    const writes = [
      makeCarried(0, 's', 'a', makeItem()),
      makeCarried(2, 's', 'b', makeItem()),
      makeCarried(1, 's', 'c', null),
    ]
    await apply(driver, log, at, writes, 2)
    const mine = await putOne(driver, tenant, 's', 'a', makeItem({ at: NOW - 1000 }))
    const made = await putOne(driver, tenant, 's', 'c', makeItem({ at: NOW - 1000 }))
    await writeOne(driver, tenant, { space: 's', key: 'b', item: null }, NOW - 1000)
    for (const redo of [true, false]) {
      assert.equal(await apply(driver, log, at, writes, 2, redo), true)
      // Not even when those clocks run behind: the seq tells that these writes were applied before.
      assertItem(await readOne(driver, tenant, 's', 'a'), 'a', mine, NOW)
      assertItem(await readOne(driver, tenant, 's', 'c'), 'c', made)
      assert.equal(await readOne(driver, tenant, 's', 'b'), undefined)
    }
  }),
  test('applies a newer write of the same log, and not an older one after it', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant, 5)
    const newer = makeItem({ seed: 'newer' })
    await apply(driver, log, at, [makeCarried(1, 's', 'k', makeItem())], 1)
    await apply(driver, log, at, [makeCarried(4, 's', 'k', newer)], 4)
    for (const redo of [true, false]) {
      await apply(driver, log, at, [makeCarried(3, 's', 'k', makeItem({ seed: 'late' }))], 3, redo)
      await apply(driver, log, at, [makeCarried(2, 's', 'k', null)], 3, redo)
    }
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', newer, NOW)
  }),
  test('redoes nothing over what others did later', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    const later = await putOne(driver, tenant, 's', 'written', makeItem({ at: NOW + 1 }), NOW + 1)
    await putOne(driver, tenant, 's', 'removed')
    await writeOne(driver, tenant, { space: 's', key: 'removed', item: null }, NOW + 1)
    const writes = ['written', 'removed', 'free'].map((key) => makeCarried(0, 's', key, makeItem()))
    assert.equal(await apply(driver, log, at, writes, 0, true), true)
    assertItem(await readOne(driver, tenant, 's', 'written', { now: NOW + 1 }), 'written', later)
    assert.equal(await readOne(driver, tenant, 's', 'removed'), undefined)
    assert.ok(await readOne(driver, tenant, 's', 'free'))
    assert.equal((await headOf(driver, log)).applied, 0, 'what was skipped is done with')
  }),
  test('redoes over what others did before or at that very moment', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    await putOne(driver, tenant, 's', 'before', makeItem({ at: NOW - 1 }))
    await putOne(driver, tenant, 's', 'same', makeItem({ at: NOW }))
    await putOne(driver, tenant, 's', 'removed')
    await writeOne(driver, tenant, { space: 's', key: 'removed', item: null }, NOW)
    const item = makeItem()
    const writes = ['before', 'same', 'removed'].map((key) => makeCarried(0, 's', key, item))
    await apply(driver, log, at, writes, 0, true)
    for (const key of ['before', 'same', 'removed'])
      assert.equal((await readOne(driver, tenant, 's', key))?.version, item.version)
  }),
  test('loses no first application to a clock that runs ahead', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW + DAY_MS }))
    const item = makeItem()
    await apply(driver, log, at, [makeCarried(0, 's', 'k', item)], 0, false)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', item, NOW + DAY_MS)
  }),
  test('redoes a write of its own log over an older one that was dated later', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant, 2)
    await apply(driver, log, at, [makeCarried(0, 's', 'k', makeItem({ at: NOW + 10 }), NOW + 10)], 0)
    const item = makeItem()
    await apply(driver, log, at, [makeCarried(1, 's', 'k', item)], 1, true)
    assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, item.version)
  }),
  test('takes the writes of another log, branch or incarnation for those of someone else', async ({
    driver,
    tenant,
  }) => {
    const a = await newLog(driver, tenant, 3, 'a')
    const b = await newLog(driver, tenant, 3, 'b')
    await apply(driver, a.log, a.at, [makeCarried(2, 's', 'k', makeItem(), NOW + 5)], 2)
    await apply(driver, b.log, b.at, [makeCarried(1, 's', 'k', makeItem({ seed: 'early' }), NOW + 4)], 1, true)
    const stays = await readOne(driver, tenant, 's', 'k')
    assert.notEqual(Buffer.from(stays?.value ?? []).toString(), 'value of early')
    const item = makeItem({ at: NOW + 6 })
    await apply(driver, b.log, b.at, [makeCarried(2, 's', 'k', item, NOW + 6)], 2, true)
    assert.equal(
      (await readOne(driver, tenant, 's', 'k'))?.version,
      item.version,
      'a lower seq of another log is no older',
    )
    await driver.erase({ tenant, thread: a.log.thread, tombstone: null })
    const again = await newLog(driver, tenant, 1, 'a')
    const born = makeItem({ at: NOW + 7 })
    await apply(driver, again.log, again.at, [makeCarried(0, 's', 'k', born, NOW + 7)], 0, true)
    assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, born.version)
  }),
  test('remembers the last sixteen logs that wrote an item', async ({ driver, tenant }) => {
    const logs: { readonly log: LogKey; readonly at: Expect }[] = []
    for (let i = 0; i < 16; i++) logs.push(await newLog(driver, tenant, 2, `log-${i}`))
    for (const { log, at } of logs) await apply(driver, log, at, [makeCarried(1, 's', 'k', makeItem())], 1)
    const last = await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW - 10 }))
    for (const { log, at } of logs) await apply(driver, log, at, [makeCarried(1, 's', 'k', makeItem())], 1)
    assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, last.version)
  }),
  test('remembers a removed item for most of a day, sweeping or not', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant, 2)
    const past = 1_100_000_000_000
    await putOne(driver, tenant, 's', 'k', makeItem({ at: past, expiresAt: past + 10 }), past)
    await apply(driver, log, at, [makeCarried(1, 's', 'gone', null, past)], 1)
    while ((await driver.sweepItems(past + 20, 100)) > 0);
    await driver.sweepItems(past + DAY_MS - 60_000, 100)
    await apply(driver, log, at, [makeCarried(1, 's', 'gone', makeItem(), past)], 1, true)
    await apply(driver, log, at, [makeCarried(0, 's', 'k', makeItem({ at: past - 5 }), past - 5)], 1, true)
    assert.deepEqual(await scanAll(driver, tenant, 's', {}, 10, past + 30), [])
  }),
  test('applies nothing for a log that is gone or was made again', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    const writes = [makeCarried(0, 's', 'k', makeItem())]
    assert.equal(await apply(driver, { ...log, tenant: newTenant() }, at, writes, 0), false)
    assert.equal(await apply(driver, logKey(tenant, 'other'), at, writes, 0), false)
    await driver.erase({ tenant, thread: log.thread, tombstone: null })
    assert.equal(await apply(driver, log, at, writes, 0), false)
    await createLog(driver, log)
    assert.equal(await apply(driver, log, at, writes, 0, true), false)
    assert.equal((await headOf(driver, log)).applied ?? -1, -1)
    assert.deepEqual(await scanAll(driver, tenant, 's'), [])
  }),
  test('applies many items, large ones and odd names', async ({ driver, tenant }) => {
    const { log, at } = await newLog(driver, tenant)
    const writes = ODD_TEXTS.map((key) => makeCarried(0, key, key, makeItem({ seed: key })))
    const large = makeItem({ value: new Uint8Array(2_000_000).fill(7) })
    await apply(driver, log, at, [...writes, makeCarried(0, 's', 'large', large)], 0)
    for (const { space, key, item } of writes)
      assertItem(await readOne(driver, tenant, space, key), key, item as NewItem)
    assertItem(await readOne(driver, tenant, 's', 'large'), 'large', large)
  }),
  test('ends the same when two drivers apply the same at once', async ({ driver, open, tenant, rounds }) => {
    const other = withItems(await open())
    for (let round = 0; round < Math.ceil(rounds / 50); round++) {
      const { log, at } = await newLog(driver, tenant, 2, `log-${round}`)
      const item = makeItem({ seed: 'second' })
      const both = [makeCarried(1, 's', 'k', item), makeCarried(0, 's', `first-${round}`, makeItem())]
      const first = [
        makeCarried(0, 's', 'k', makeItem({ seed: 'first' })),
        makeCarried(0, 's', `first-${round}`, makeItem()),
      ]
      const [one, two] = await Promise.all([apply(driver, log, at, first, 0), apply(other, log, at, both, 1, true)])
      assert.ok(one && two)
      assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, item.version)
      assert.equal((await headOf(driver, log)).applied, 1)
    }
  }),
]

async function newLog(driver: ItemStore, tenant: LogKey['tenant'], count = 1, thread = 'thread') {
  const log = logKey(tenant, thread)
  return { log, at: await createLog(driver, log, { count }) }
}

function apply(
  driver: ItemStore,
  log: LogKey,
  at: Expect,
  writes: readonly CarriedWrite[],
  upTo: number,
  redo = false,
) {
  return driver.applyWrites(log, at.incarnation, writes, { upTo, redo })
}

function test(name: string, run: (context: ItemContext) => Promise<void>): SuiteTest {
  return { name, exempt: lacksApply, run: (context) => run({ ...context, driver: withItems(context.driver) }) }
}
