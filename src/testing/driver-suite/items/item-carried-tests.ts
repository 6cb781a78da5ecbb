import assert from 'node:assert/strict'
import type { CarriedWrite, NewItem } from '../../../log/store-contract.js'
import { expectAfter, makeAppend, mustAppend } from '../../entries.js'
import {
  assertItem,
  type ItemStore,
  lacksCarried,
  makeCarried,
  makeItem,
  NOW,
  ODD_TEXTS,
  putOne,
  readOne,
  scanAll,
  withItems,
} from './item-fixtures.js'
import {
  appendOne,
  claim,
  createLog,
  headOf,
  logKey,
  newTenant,
  type SuiteContext,
  type SuiteTest,
} from '../suite-context.js'

type ItemContext = Omit<SuiteContext, 'driver'> & { readonly driver: ItemStore }

/** Writes that land in the same atomic step as the entries that carry them. */
export const itemCarriedTests: readonly SuiteTest[] = [
  test('lands what an append carries together with its entries', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    const created = makeItem({ expiresAt: NOW + 500, fields: [['f', 't']] })
    await putOne(driver, tenant, 's', 'gone')
    const first = {
      ...makeAppend(log, null),
      carried: [makeCarried(0, 's', 'k', created), makeCarried(0, 's', 'gone', null)],
    }
    const at = await mustAppend(driver, first)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', created)
    assert.equal(await readOne(driver, tenant, 's', 'gone'), undefined)
    const second = makeItem({ at: NOW + 1 })
    const third = makeItem({ at: NOW + 1 })
    const carried = [makeCarried(1, 's', 'k', second, NOW + 1), makeCarried(2, 't', 'k', third, NOW + 1)]
    await mustAppend(driver, { ...makeAppend(log, at, { count: 2 }), carried })
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 1e6 }), 'k', second, created.at)
    assertItem(await readOne(driver, tenant, 't', 'k'), 'k', third)
    assert.equal((await headOf(driver, log)).seq, 2)
  }),
  test('lands the one item of a step with it, whatever is there', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    let at = await createLog(driver, log, { lease: claim('a') })
    const step = async (item: NewItem | null, moment = NOW): Promise<void> => {
      const append = makeAppend(log, at, { lease: { kind: 'extend', ms: 1000 } })
      at = await mustAppend(driver, {
        ...append,
        labelsChanged: false,
        carried: [makeCarried(at.seq + 1, 's', 'k', item, moment)],
      })
    }
    await step(null)
    assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
    const created = makeItem({ expiresAt: NOW + 5, fields: [['f', 't']] })
    await step(created)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', created)
    const changed = makeItem({ at: NOW + 1, expiresAt: NOW + 7, fields: [['f', 'u']] })
    await step(changed, NOW + 1)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', changed, created.at)
    assert.equal((await scanAll(driver, tenant, 's', { where: [['f', ['u']]] })).length, 1)
    const anew = makeItem({ at: NOW + 7 })
    await step(anew, NOW + 7)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 1e6 }), 'k', anew)
    const carried = [makeCarried(at.seq + 1, 's', 'k', null)]
    const stale = { ...makeAppend(log, { ...at, hash: 'f'.repeat(64) }), labelsChanged: false, carried }
    const conflict = await appendOne(driver, stale)
    assert.ok(conflict.status === 'conflict' && conflict.head?.seq === at.seq)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 1e6 }), 'k', anew)
    await step(null)
    assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
  }),
  test('writes over what others wrote, whatever their clock says', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW + 1e6 }))
    const item = makeItem()
    await mustAppend(driver, { ...makeAppend(logKey(tenant), null), carried: [makeCarried(0, 's', 'k', item)] })
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', item, NOW + 1e6)
  }),
  test('creates anew what it carries over an expired item', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 5 }))
    const item = makeItem({ at: NOW + 5 })
    await mustAppend(driver, {
      ...makeAppend(logKey(tenant), null),
      carried: [makeCarried(0, 's', 'k', item, NOW + 5)],
    })
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 5 }), 'k', item, NOW + 5)
  }),
  test('carries nothing with an append that conflicts', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    const at = await createLog(driver, log)
    const kept = await putOne(driver, tenant, 's', 'k')
    const carried = [makeCarried(1, 's', 'k', makeItem()), makeCarried(1, 's', 'new', makeItem())]
    const stale = [
      makeAppend(log, { ...at, hash: 'f'.repeat(64) }),
      makeAppend(log, { ...at, epoch: 7 }),
      makeAppend(log, { ...at, incarnation: 'another' }),
      makeAppend(log, null),
      makeAppend(logKey(tenant, 'thread', 'fork'), null, { requires: { branch: log.branch, incarnation: 'another' } }),
      makeAppend(logKey(tenant, 'nowhere'), at),
    ]
    for (const append of stale) {
      assert.equal((await appendOne(driver, { ...append, carried })).status, 'conflict')
      assertItem(await readOne(driver, tenant, 's', 'k'), 'k', kept)
      assert.equal((await scanAll(driver, tenant, 's')).length, 1)
    }
  }),
  test('carries nothing with a claim that is held, nor for a worker that was fenced', async ({ driver, tenant }) => {
    const log = logKey(tenant)
    const at = await createLog(driver, log, { lease: claim('a') })
    const carried = [makeCarried(1, 's', 'k', makeItem())]
    assert.equal((await appendOne(driver, { ...makeAppend(log, at, { lease: claim('b') }), carried })).status, 'held')
    await mustAppend(driver, makeAppend(log, at, { lease: claim('b', 1000, true) }))
    assert.equal((await appendOne(driver, { ...makeAppend(log, at), carried })).status, 'conflict')
    assert.deepEqual(await scanAll(driver, tenant, 's'), [])
  }),
  test('lets a conflict in a batch hinder no neighbour and its items', async ({ driver, tenant }) => {
    const other = newTenant()
    const at = await createLog(driver, logKey(tenant, 'taken'))
    const items = [makeItem(), makeItem(), makeItem()] as const
    const results = await driver.append([
      { ...makeAppend(logKey(tenant, 'a'), null), carried: [makeCarried(0, 's', 'a', items[0])] },
      { ...makeAppend(logKey(tenant, 'taken'), { ...at, seq: 5 }), carried: [makeCarried(6, 's', 'b', items[1])] },
      { ...makeAppend(logKey(other, 'c'), null), carried: [makeCarried(0, 's', 'a', items[2])] },
    ])
    assert.deepEqual(
      results.map(({ status }) => status),
      ['appended', 'conflict', 'appended'],
    )
    assertItem(await readOne(driver, tenant, 's', 'a'), 'a', items[0])
    assert.equal(await readOne(driver, tenant, 's', 'b'), undefined)
    assertItem(await readOne(driver, other, 's', 'a'), 'a', items[2])
  }),
  test('lets appends of one batch write the same item, one after another', async ({ driver, tenant }) => {
    const appends = ['a', 'b', 'c'].map((thread) => {
      const item = makeItem({ seed: thread })
      return { ...makeAppend(logKey(tenant, thread), null), carried: [makeCarried(0, 's', 'k', item)] }
    })
    const results = await driver.append(appends)
    assert.ok(results.every(({ status }) => status === 'appended'))
    const found = await readOne(driver, tenant, 's', 'k')
    const versions = appends.map(({ carried }) => carried[0]?.item?.version)
    assert.ok(versions.includes(found?.version), 'one of them is there, whole')
  }),
  test('carries many items, large ones and odd names', async ({ driver, tenant }) => {
    const carried: CarriedWrite[] = ODD_TEXTS.map((key) => makeCarried(0, key, key, makeItem({ seed: key })))
    const large = makeItem({ value: new Uint8Array(2_000_000).fill(7) })
    await mustAppend(driver, {
      ...makeAppend(logKey(tenant), null),
      carried: [...carried, makeCarried(0, 's', 'large', large)],
    })
    for (const { space, key, item } of carried)
      assertItem(await readOne(driver, tenant, space, key), key, item as NewItem)
    assertItem(await readOne(driver, tenant, 's', 'large'), 'large', large)
    assert.equal((await driver.listSpaces(tenant, { limit: 1000 })).length, ODD_TEXTS.length + 1)
  }),
  test('changes an item exactly as often as appends land, when writers race', async ({
    driver,
    open,
    tenant,
    rounds,
  }) => {
    const drivers = [driver, withItems(await open())]
    const log = logKey(tenant)
    let at = await createLog(driver, log)
    for (let round = 1; round <= Math.ceil(rounds / 20); round++) {
      const appends = drivers.map((_, i) => {
        const item = makeItem({ seed: `${round}-${i}` })
        const carried = [makeCarried(round, 's', 'k', item), makeCarried(round, 's', `only-${round}-${i}`, item)]
        return { ...makeAppend(log, at), carried }
      })
      const results = await Promise.all(drivers.map((each, i) => each.append([appends[i] ?? assert.fail()])))
      const winner = results.findIndex(([result]) => result?.status === 'appended')
      assert.equal(results[1 - winner]?.[0]?.status, 'conflict')
      const won = appends[winner] ?? assert.fail('one wins')
      assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, won.carried[0]?.item?.version)
      assert.equal(await readOne(driver, tenant, 's', `only-${round}-${1 - winner}`), undefined)
      at = expectAfter(won)
    }
  }),
]

function test(name: string, run: (context: ItemContext) => Promise<void>): SuiteTest {
  return { name, exempt: lacksCarried, run: (context) => run({ ...context, driver: withItems(context.driver) }) }
}
