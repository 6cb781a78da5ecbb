import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { isHoldfastError } from '../../../core/errors.js'
import { makeBytes } from '../../entries.js'
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

/** Versions, overwriting, removal, batches and races. */
export const itemTests: readonly SuiteTest[] = [
  test('keeps an item byte for byte, with its version and its times', async ({ driver, tenant }) => {
    const item = makeItem({ value: makeBytes('all', 5000), at: NOW + 5, expiresAt: NOW + 1000 })
    await putOne(driver, tenant, 's', 'k', item)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', item)
    assertItem((await scanAll(driver, tenant, 's'))[0], 'k', item)
    assert.equal(await readOne(driver, tenant, 's', 'other'), undefined)
    assert.equal(await readOne(driver, tenant, 'other', 'k'), undefined)
  }),
  test('keeps an empty value and one of several megabytes', async ({ driver, tenant }) => {
    const small = await putOne(driver, tenant, 's', 'small', makeItem({ value: new Uint8Array(0) }))
    const large = await putOne(driver, tenant, 's', 'large', makeItem({ value: makeBytes('large', 3_000_000) }))
    assertItem(await readOne(driver, tenant, 's', 'small'), 'small', small)
    assertItem(await readOne(driver, tenant, 's', 'large'), 'large', large)
    assert.deepEqual(keysOf(await scanAll(driver, tenant, 's')), ['large', 'small'])
  }),
  test('does not change what it stored with the bytes it was given or gave out', async ({ driver, tenant }) => {
    const value = makeBytes('mine', 100)
    const item = makeItem({ value: new Uint8Array(value) })
    await putOne(driver, tenant, 's', 'k', item)
    item.value.fill(0)
    const read = await readOne(driver, tenant, 's', 'k')
    read?.value.fill(1)
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', { ...item, value })
  }),
  test('overwrites an item and keeps when it was created', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW, expiresAt: NOW + 50_000 }))
    const second = await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW + 10 }), NOW + 10)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 20 }), 'k', second, NOW)
  }),
  test('forgets when an item was created once it is removed', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k')
    assert.deepEqual(await writeOne(driver, tenant, { space: 's', key: 'k', item: null }), { status: 'written' })
    const again = await putOne(driver, tenant, 's', 'k', makeItem({ at: NOW + 5 }), NOW + 5)
    assertItem(await readOne(driver, tenant, 's', 'k', { now: NOW + 5 }), 'k', again, NOW + 5)
  }),
  test('removes an item, and what is not there without an error', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'k')
    const kept = await putOne(driver, tenant, 's', 'kept')
    for (let twice = 0; twice < 2; twice++) {
      assert.deepEqual(await writeOne(driver, tenant, { space: 's', key: 'k', item: null }), { status: 'written' })
      assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
      assert.deepEqual(keysOf(await scanAll(driver, tenant, 's')), ['kept'])
    }
    assertItem(await readOne(driver, tenant, 's', 'kept'), 'kept', kept)
  }),
  test('writes over the expected version only, and says which one is there', async ({ driver, tenant }) => {
    const first = await putOne(driver, tenant, 's', 'k')
    const place = { space: 's', key: 'k' }
    for (const expect of [null, 'another', first.version.slice(1), `${first.version}x`, '']) {
      for (const item of [makeItem(), null]) {
        const result = await writeOne(driver, tenant, { ...place, item, expect })
        assert.deepEqual(result, { status: 'conflict', version: first.version })
      }
    }
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', first)
    const second = makeItem()
    const result = await writeOne(driver, tenant, { ...place, item: second, expect: first.version })
    assert.deepEqual(result, { status: 'written' })
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', second, first.at)
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item: null, expect: first.version }), {
      status: 'conflict',
      version: second.version,
    })
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item: null, expect: second.version }), {
      status: 'written',
    })
    assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
  }),
  test('expects absence only where there is no item', async ({ driver, tenant }) => {
    const place = { space: 's', key: 'k' }
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item: makeItem(), expect: 'some' }), {
      status: 'conflict',
      version: null,
    })
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item: null, expect: 'some' }), {
      status: 'conflict',
      version: null,
    })
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item: null, expect: null }), { status: 'written' })
    assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
    const item = makeItem()
    assert.deepEqual(await writeOne(driver, tenant, { ...place, item, expect: null }), { status: 'written' })
    assertItem(await readOne(driver, tenant, 's', 'k'), 'k', item)
  }),
  test('answers a batch by index, and lets no conflict hinder a neighbour', async ({ driver, tenant }) => {
    const there = await putOne(driver, tenant, 's', 'there')
    const [a, b] = [makeItem(), makeItem()]
    const results = await driver.writeItems(
      tenant,
      [
        { space: 's', key: 'a', item: a },
        { space: 's', key: 'there', item: makeItem(), expect: null },
        { space: 't', key: 'a', item: b, expect: null },
        { space: 's', key: 'none', item: null, expect: 'v' },
        { space: 's', key: 'none2', item: null },
      ],
      NOW,
    )
    assert.deepEqual(results, [
      { status: 'written' },
      { status: 'conflict', version: there.version },
      { status: 'written' },
      { status: 'conflict', version: null },
      { status: 'written' },
    ])
    assertItem(await readOne(driver, tenant, 's', 'a'), 'a', a)
    assertItem(await readOne(driver, tenant, 't', 'a'), 'a', b)
    assertItem(await readOne(driver, tenant, 's', 'there'), 'there', there)
    assert.deepEqual(await driver.writeItems(tenant, [], NOW), [])
  }),
  test('refuses a batch that writes one item twice, and writes nothing', async ({ driver, tenant }) => {
    const write = () => ({ space: 's', key: 'k', item: makeItem() })
    await assert.rejects(driver.writeItems(tenant, [{ ...write(), key: 'other' }, write(), write()], NOW), (error) => {
      return isHoldfastError(error, 'invalid-value') && error.data.written === 'nothing'
    })
    assert.deepEqual(await scanAll(driver, tenant, 's'), [])
  }),
  test('writes and reads hundreds of items in one call', async ({ driver, tenant }) => {
    const keys = Array.from({ length: 700 }, (_, i) => `key-${i}`)
    const items = new Map(keys.map((key) => [key, makeItem({ seed: key })]))
    const results = await driver.writeItems(
      tenant,
      [...items].map(([key, item]) => ({ space: 's', key, item })),
      NOW,
    )
    assert.ok(results.length === 700 && results.every(({ status }) => status === 'written'))
    const found = await driver.readItems(tenant, 's', [...keys, 'missing', ...keys.slice(0, 3)], { now: NOW })
    assert.equal(found.length, 700, 'each item once, also when asked for twice')
    for (const item of found) assertItem(item, item.key, items.get(item.key) ?? makeItem())
    assert.deepEqual(await driver.readItems(tenant, 's', [], { now: NOW }), [])
  }),
  test('shows another driver at once what one wrote', async ({ driver, open, tenant }) => {
    const other = withItems(await open())
    const item = await putOne(driver, tenant, 's', 'k')
    assertItem(await readOne(other, tenant, 's', 'k'), 'k', item)
    await writeOne(other, tenant, { space: 's', key: 'k', item: null })
    assert.equal(await readOne(driver, tenant, 's', 'k'), undefined)
  }),
  test('lets exactly one of two writers win that expect the same version', async ({ driver, open, tenant, rounds }) => {
    const drivers = [driver, withItems(await open())]
    let version: string | null = null
    for (let round = 0; round < Math.ceil(rounds / 10); round++) {
      const writes = drivers.map(() => ({
        space: 's',
        key: 'k',
        item: makeItem({ version: randomUUID() }),
        expect: version,
      }))
      const results = await Promise.all(drivers.map((each, i) => writeOne(each, tenant, writes[i] ?? fail())))
      const winner = results.findIndex((result) => result?.status === 'written')
      const won: string = writes[winner]?.item.version ?? fail()
      const lost = { status: 'conflict', version: won } as const
      assert.deepEqual(results[1 - winner], lost, 'exactly one wins, and the other learns what is there')
      assert.equal((await readOne(driver, tenant, 's', 'k'))?.version, won)
      version = won
    }
  }),
  test('loses no update of many writers that try again', async ({ driver, open, tenant }) => {
    const drivers = [driver, withItems(await open()), withItems(await open())]
    const count = async (each: ItemStore): Promise<void> => {
      for (let done = 0; done < 10; ) {
        const before = await readOne(each, tenant, 's', 'counter')
        const value = Buffer.from(String(Number(Buffer.from(before?.value ?? []).toString() || '0') + 1))
        const write = { space: 's', key: 'counter', item: makeItem({ value }), expect: before?.version ?? null }
        if ((await writeOne(each, tenant, write))?.status === 'written') done++
      }
    }
    await Promise.all(drivers.map(count))
    const after = await readOne(driver, tenant, 's', 'counter')
    assert.equal(Buffer.from(after?.value ?? []).toString(), '30')
  }),
  test('keeps tenants apart through every method', async ({ driver, tenant: mine }) => {
    const theirs = newTenant()
    const item = await putOne(driver, mine, 's', 'k', makeItem({ expiresAt: NOW + 10 }))
    assert.equal(await readOne(driver, theirs, 's', 'k', { extendTo: NOW + 100 }), undefined)
    assert.deepEqual(await scanAll(driver, theirs, 's'), [])
    assert.deepEqual(await driver.listSpaces(theirs, { limit: 10 }), [])
    const write = { space: 's', key: 'k', item: null }
    assert.deepEqual(await writeOne(driver, theirs, { ...write, expect: item.version }), {
      status: 'conflict',
      version: null,
    })
    assert.deepEqual(await writeOne(driver, theirs, write), { status: 'written' })
    assertItem(await readOne(driver, mine, 's', 'k'), 'k', item)
    const other = await putOne(driver, theirs, 's', 'k')
    assertItem(await readOne(driver, mine, 's', 'k'), 'k', item)
    assertItem(await readOne(driver, theirs, 's', 'k'), 'k', other)
  }),
  test('refuses every method of items after it was closed', async ({ open, tenant }) => {
    const driver = withItems(await open())
    await driver.close()
    const calls: (() => Promise<unknown>)[] = [
      () => driver.writeItems(tenant, [{ space: 's', key: 'k', item: null }], NOW),
      () => driver.readItems(tenant, 's', ['k'], { now: NOW }),
      () => driver.scanItems(tenant, 's', { limit: 1 }, NOW),
      () => driver.listSpaces(tenant, { limit: 1 }),
      () => driver.sweepItems(0, 1),
    ]
    for (const call of calls) await assert.rejects(call, (error) => isHoldfastError(error, 'closed'))
  }),
]

function test(name: string, run: (context: ItemContext) => Promise<void>): SuiteTest {
  return { name, exempt: lacksItems, run: (context) => run({ ...context, driver: withItems(context.driver) }) }
}

function fail(): never {
  assert.fail('exactly one writer wins')
}
