import assert from 'node:assert/strict'
import {
  assertItem,
  type ItemStore,
  keysOf,
  lacksItems,
  makeItem,
  NOW,
  putOne,
  readOne,
  scanAll,
  withItems,
  writeOne,
} from './item-fixtures.js'
import { newTenant, type SuiteContext, type SuiteTest } from '../suite-context.js'

type ItemContext = Omit<SuiteContext, 'driver'> & { readonly driver: ItemStore }

/** Sweeping concerns all tenants of a server, so these tests do it in a past that no other test uses. */
const LONG_AGO = 1_000_000_000_000

/** An expired item is absent, for every method and whether or not it was swept. */
export const itemExpiryTests: readonly SuiteTest[] = [
  test('has an item until the moment it expires, and not from then on', async ({ driver, tenant }) => {
    const item = await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 100 }))
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 99 }), 'k', item)
    assert.deepEqual(keysOf(await scanAll(driver, tenant, 's', {}, 10, NOW + 99)), ['k'])
    for (const now of [NOW + 100, NOW + 101, NOW + 1e9]) {
      assert.equal(await readOne(driver, tenant, 's', 'k', { now }), undefined)
      assert.deepEqual(await scanAll(driver, tenant, 's', {}, 10, now), [])
    }
  }),
  test('goes by the time it is told, not by a clock of its own', async ({ driver, tenant }) => {
    const past = await putOne(driver, tenant, 's', 'past', makeItem({ at: 1000, expiresAt: 2000 }), 1000)
    assertItem(await readOne(driver, tenant, 's', 'past', { now: 1999 }), 'past', past)
    const far = NOW * 2
    await putOne(driver, tenant, 's', 'future', makeItem({ at: far, expiresAt: far + 10 }), far)
    assert.equal(await readOne(driver, tenant, 's', 'future', { now: far + 10 }), undefined)
  }),
  test('takes an expired item for none when a version is expected', async ({ driver, tenant }) => {
    const old = await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 10 }))
    const place = { space: 's', key: 'k' }
    for (const item of [makeItem(), null]) {
      assert.deepEqual(await writeOne(driver, tenant, { ...place, item, expect: old.version }, NOW + 10), {
        status: 'conflict',
        version: null,
      })
    }
    const item = makeItem({ at: NOW + 10 })
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item, expect: null }, NOW + 10), { status: 'written' })
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 20 }), 'k', item, NOW + 10)
  }),
  test('creates anew what is put over an expired item', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 10 }))
    const item = await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW + 11 }), NOW + 11)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 12 }), 'k', item, NOW + 11)
  }),
  test('moves an expiry later when read with extendTo, and changes nothing else', async ({ driver, tenant }) => {
    const item = await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 100 }))
    const forever = await putOne(driver, tenant, 's', 'forever')
    const found = await driver.readItems(tenant, 's', ['k', 'forever', 'none'], { now: NOW + 50, extendTo: NOW + 500 })
    const extended = { ...item, expiresAt: NOW + 500 }
    const byKey = new Map(found.map((each) => [each.key, each]))
    assert.equal(found.length, 2)
    assertItem(byKey.get('k'), 'k', extended)
    assertItem(byKey.get('forever'), 'forever', forever)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 499 }), 'k', extended)
    assertItem((await scanAll(driver, tenant, 's', { prefix: 'k' }, 10, NOW + 499))[0], 'k', extended)
    assert.equal(await readOne(driver, tenant, 's', 'none', { now: NOW + 50 }), undefined, 'reading makes no item')
  }),
  test('never moves an expiry earlier, nor brings an expired item back', async ({ driver, tenant }) => {
    const item = await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 100 }))
    assertItem(await readOne(driver, tenant, 's', 'k', { extendTo: NOW + 50 }), 'k', item)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 99 }), 'k', item)
    assert.equal(await readOne(driver, tenant, 's', 'k', { now: NOW + 100, extendTo: NOW + 900 }), undefined)
    assert.equal(await readOne(driver, tenant, 's', 'k', { now: NOW + 200 }), undefined)
  }),
  test('overwrites an expiry with what the new item says', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 100 }))
    const forever = await putOne(driver, tenant, 's', 'k', makeItem())
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 1e9 }), 'k', forever, NOW)
    await putOne(driver, tenant, 's', 'k', makeItem({ expiresAt: NOW + 5 }))
    assert.equal(await readOne(driver, tenant, 's', 'k', { now: NOW + 5 }), undefined)
  }),
  test('fills a page though expired items lie between', async ({ driver, tenant }) => {
    for (let i = 0; i < 40; i++) {
      const expiresAt = i % 4 === 0 ? null : NOW + 1
      await putOne(driver, tenant, 's', `k${String(i).padStart(2, '0')}`, makeItem({ expiresAt }))
    }
    const page = await driver.scanItems(tenant, 's', { limit: 5 }, NOW + 1)
    assert.deepEqual(keysOf(page), ['k00', 'k04', 'k08', 'k12', 'k16'])
    assert.equal((await scanAll(driver, tenant, 's', {}, 3, NOW + 1)).length, 10)
  }),
  test('sweeps what has expired and nothing else, a bounded number at a time', async ({ driver, tenant }) => {
    const other = newTenant()
    for (let i = 0; i < 7; i++) {
      const item = makeItem({ at: LONG_AGO, expiresAt: LONG_AGO + i })
      await putOne(driver, i % 2 === 0 ? tenant : other, `s${i % 3}`, `k${i}`, item, LONG_AGO)
    }
    const forever = await putOne(driver, tenant, 's0', 'forever', makeItem({ at: LONG_AGO }), LONG_AGO)
    const later = await putOne(
      driver,
      tenant,
      's0',
      'later',
      makeItem({ at: LONG_AGO, expiresAt: LONG_AGO + 1000 }),
      LONG_AGO,
    )
    for (let calls = 0; ; calls++) {
      assert.ok(calls < 1000, 'sweeping comes to an end')
      const removed = await driver.sweepItems(LONG_AGO + 6, 2)
      assert.ok(removed >= 0 && removed <= 2, 'no more than the limit')
      if (removed === 0) break
    }
    // Read as of before they expired: only what is gone for good is absent there.
    for (let i = 0; i < 7; i++) {
      const found = await readOne(driver, i % 2 === 0 ? tenant : other, `s${i % 3}`, `k${i}`, { now: LONG_AGO - 1 })
      assert.equal(found, undefined, `the item that expired after ${i} ms is gone`)
    }
    assertItem(await readOne(driver, tenant, 's0', 'forever', { now: LONG_AGO + 6 }), 'forever', forever)
    assertItem(await readOne(driver, tenant, 's0', 'later', { now: LONG_AGO + 6 }), 'later', later)
  }),
  test('sweeps no item whose expiry was moved or that was written again', async ({ driver, tenant }) => {
    const at = LONG_AGO + 1e6
    const extended = await putOne(driver, tenant, 's', 'extended', makeItem({ at, expiresAt: at + 10 }), at)
    await putOne(driver, tenant, 's', 'again', makeItem({ at, expiresAt: at + 10 }), at)
    await readOne(driver, tenant, 's', 'extended', { now: at, extendTo: at + 1000 })
    const again = await putOne(driver, tenant, 's', 'again', makeItem({ at: at + 20 }), at + 20)
    while ((await driver.sweepItems(at + 100, 100)) > 0);
    assertItem(await readOne(driver, tenant, 's', 'extended', { now: at + 100 }), 'extended', {
      ...extended,
      expiresAt: at + 1000,
    })
    assertItem(await readOne(driver, tenant, 's', 'again', { now: at + 100 }), 'again', again)
  }),
]

function test(name: string, run: (context: ItemContext) => Promise<void>): SuiteTest {
  return { name, exempt: lacksItems, run: (context) => run({ ...context, driver: withItems(context.driver) }) }
}
