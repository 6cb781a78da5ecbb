import assert from 'node:assert/strict'
import {
  assertItem,
  byBytes,
  type ItemStore,
  keysOf,
  lacksItems,
  makeItem,
  NOW,
  ODD_TEXTS,
  putOne,
  readOne,
  scanAll,
  withItems,
  writeOne,
} from './item-fixtures.js'
import type { SuiteContext, SuiteTest } from '../suite-context.js'

type ItemContext = Omit<SuiteContext, 'driver'> & { readonly driver: ItemStore }

/** Odd names, order, pages, narrowing and the list of spaces. */
export const itemScanTests: readonly SuiteTest[] = [
  test('keeps odd keys apart, whatever they mean elsewhere', async ({ driver, tenant }) => {
    const items = new Map(ODD_TEXTS.map((key) => [key, makeItem({ seed: key })]))
    await driver.writeItems(
      tenant,
      [...items].map(([key, item]) => ({ space: 's', key, item })),
      NOW,
    )
    for (const [key, item] of items) assertItem(await readOne(driver, tenant, 's', key), key, item)
    assert.deepEqual(keysOf(await scanAll(driver, tenant, 's', {}, 7)), [...ODD_TEXTS].sort(byBytes))
    for (const key of ODD_TEXTS.slice(0, 20)) {
      await writeOne(driver, tenant, { space: 's', key, item: null })
      assert.equal(await readOne(driver, tenant, 's', key), undefined)
    }
    assert.deepEqual(keysOf(await scanAll(driver, tenant, 's')), ODD_TEXTS.slice(20).sort(byBytes))
  }),
  test('keeps odd spaces apart, whatever they mean elsewhere', async ({ driver, tenant }) => {
    const items = new Map(ODD_TEXTS.map((space) => [space, makeItem({ seed: space })]))
    await driver.writeItems(
      tenant,
      [...items].map(([space, item]) => ({ space, key: 'k', item })),
      NOW,
    )
    for (const [space, item] of items) {
      const found = await scanAll(driver, tenant, space)
      assert.equal(found.length, 1)
      assertItem(found[0], 'k', item)
      assertItem(await readOne(driver, tenant, space, 'k'), 'k', item)
    }
  }),
  test('never mixes up spaces and keys that are equal when they are joined', async ({ driver, tenant }) => {
    const places: [string, string][] = []
    for (const glue of ['', ':', '/', '|', '.', '-', '_', ' ', '\\', '}', '%', ',', ';', '\u0001']) {
      places.push(
        ['a', `${glue}b${glue}c`],
        [`a${glue}`, `b${glue}c`],
        [`a${glue}b`, `${glue}c`],
        [`a${glue}b${glue}`, 'c'],
      )
    }
    const unique = [...new Map(places.map((place) => [JSON.stringify(place), place])).values()]
    for (const [space, key] of unique)
      await putOne(driver, tenant, space, key, makeItem({ seed: JSON.stringify([space, key]) }))
    for (const [space, key] of unique) {
      const found = await readOne(driver, tenant, space, key)
      assert.equal(Buffer.from(found?.value ?? []).toString(), `value of ${JSON.stringify([space, key])}`)
    }
  }),
  test('orders keys by their UTF-8 bytes, not by UTF-16 units', async ({ driver, tenant }) => {
    const keys = [
      '\u{10000}',
      '\uffff',
      'z',
      'a',
      'B',
      'é',
      'e',
      '\ud7ff',
      '\ue000',
      '\u{10ffff}',
      'aa',
      'a\u0301',
      '~',
      ' ',
    ]
    for (const key of keys) await putOne(driver, tenant, 's', key)
    const sorted = [...keys].sort(byBytes)
    assert.ok(sorted.indexOf('\uffff') < sorted.indexOf('\u{10000}'))
    for (const limit of [1, 2, 5, 100]) assert.deepEqual(keysOf(await scanAll(driver, tenant, 's', {}, limit)), sorted)
    for (const [i, after] of sorted.entries()) {
      const page = await driver.scanItems(tenant, 's', { after, limit: 2 }, NOW)
      assert.deepEqual(keysOf(page), sorted.slice(i + 1, i + 3))
    }
    assert.deepEqual(
      keysOf(await driver.scanItems(tenant, 's', { after: 'f', limit: 1 }, NOW)),
      ['z'],
      'after a key that is not there',
    )
  }),
  test('finds keys by their beginning, of which no character is a pattern', async ({ driver, tenant }) => {
    const starts = [
      '%',
      '_',
      '*',
      '?',
      '[',
      '[a-z]',
      '\\',
      '\\%',
      '^',
      '.',
      '.*',
      '$',
      "'",
      '"',
      '{',
      'é',
      '\u{1f600}',
      '\uffff',
    ]
    const keys = [
      'a',
      'ab',
      'abc',
      'b',
      'A',
      ...starts,
      ...starts.map((start) => `${start}x`),
      ...starts.map((start) => `x${start}`),
    ]
    for (const key of keys) await putOne(driver, tenant, 's', key)
    for (const prefix of [...starts, ...starts.map((start) => `x${start}`), 'a', 'ab', 'none', 'x']) {
      const expected = keys.filter((key) => key.startsWith(prefix)).sort(byBytes)
      assert.deepEqual(
        keysOf(await scanAll(driver, tenant, 's', { prefix }, 3)),
        expected,
        `keys that begin with ${prefix}`,
      )
    }
    const page = await driver.scanItems(tenant, 's', { prefix: 'a', after: 'a', limit: 1 }, NOW)
    assert.deepEqual(keysOf(page), ['ab'])
    assert.deepEqual(await driver.scanItems(tenant, 's', { prefix: 'a', after: 'b', limit: 5 }, NOW), [])
    assert.deepEqual(keysOf(await driver.scanItems(tenant, 's', { prefix: 'b', after: 'a', limit: 5 }, NOW)), ['b'])
  }),
  test('returns what stays exactly once while others come and go between pages', async ({ driver, open, tenant }) => {
    const other = withItems(await open())
    const name = (i: number) => `k${String(i).padStart(3, '0')}`
    for (let i = 0; i < 60; i++) await putOne(driver, tenant, 's', name(i))
    const found: string[] = []
    for (let page = 0; ; page++) {
      const after = found.at(-1)
      const items = await driver.scanItems(tenant, 's', { limit: 7, ...(after === undefined ? {} : { after }) }, NOW)
      found.push(...keysOf(items))
      if (items.length < 7) break
      // Every third comes or goes, on both sides of where the pages are; the others are only overwritten.
      await writeOne(other, tenant, { space: 's', key: name(page * 9), item: null })
      await putOne(other, tenant, 's', `${name(page * 5)}+`)
      await putOne(other, tenant, 's', name(page * 6 + 1))
    }
    const stayed = Array.from({ length: 60 }, (_, i) => i)
      .filter((i) => i % 9 !== 0)
      .map(name)
    for (const key of stayed) assert.equal(found.filter((each) => each === key).length, 1, `${key} comes once`)
    assert.deepEqual(found, [...new Set(found)].sort(byBytes))
  }),
  test('narrows a scan by fields and never leaves out what it must not', async ({ driver, tenant }) => {
    const put = (key: string, fields: [string, string][]) => putOne(driver, tenant, 's', key, makeItem({ fields }))
    await put('red', [
      ['colour', 'red'],
      ['size', 'l'],
    ])
    await put('blue', [
      ['colour', 'blue'],
      ['size', 'l'],
    ])
    await put('small', [
      ['colour', 'red'],
      ['size', 's'],
    ])
    await put('sizeless', [['colour', 'red']])
    await put('fieldless', [])
    const must: [NonNullable<Parameters<typeof scanAll>[3]>['where'], string[]][] = [
      [[['colour', ['red']]], ['fieldless', 'red', 'sizeless', 'small']],
      [[['colour', ['red', 'blue']]], ['blue', 'fieldless', 'red', 'sizeless', 'small']],
      [
        [
          ['colour', ['red']],
          ['size', ['l']],
        ],
        ['fieldless', 'red', 'sizeless'],
      ],
      [[['colour', []]], ['fieldless']],
      [[['Colour', ['x']]], ['blue', 'fieldless', 'red', 'sizeless', 'small']],
      [[], ['blue', 'fieldless', 'red', 'sizeless', 'small']],
    ]
    for (const [where, expected] of must) {
      for (const limit of [1, 2, 100]) {
        const found = keysOf(await scanAll(driver, tenant, 's', where ? { where } : {}, limit))
        for (const key of expected) assert.ok(found.includes(key), `${key} is found by ${JSON.stringify(where)}`)
        assert.deepEqual(found, [...new Set(found)].sort(byBytes))
      }
    }
  }),
  test('replaces the fields of an item with those of the one that overwrites it', async ({ driver, tenant }) => {
    const odd = [
      ['%', "' OR 1=1 --"],
      ['*', '{}'],
      ['__proto__', '__proto__'],
      ['n'.repeat(128), 't'.repeat(128)],
    ] as const
    const many = Array.from({ length: 12 }, (_, i) => [`f${i}`, 'old'] as const)
    await putOne(driver, tenant, 's', 'k', makeItem({ fields: [...odd, ...many] }))
    const item = await putOne(driver, tenant, 's', 'k', makeItem({ fields: [['f0', 'new'], ...odd.slice(0, 2)] }))
    for (const where of [
      [['f0', ['new']]],
      [['f1', ['new']]],
      [
        ['%', ["' OR 1=1 --"]],
        ['*', ['{}']],
      ],
      [['__proto__', ['x']]],
    ] as const) {
      assertItem((await scanAll(driver, tenant, 's', { where }))[0], 'k', item, item.at)
    }
    await writeOne(driver, tenant, { space: 's', key: 'k', item: null })
    assert.deepEqual(await scanAll(driver, tenant, 's', { where: [['f0', ['new']]] }), [])
  }),
  test('lists the spaces of a tenant in order, page by page', async ({ driver, tenant }) => {
    for (const space of ODD_TEXTS) await putOne(driver, tenant, space, 'k')
    const sorted = [...ODD_TEXTS].sort(byBytes)
    for (const limit of [1, 7, 1000]) {
      const found: string[] = []
      for (;;) {
        const after = found.at(-1)
        const page = await driver.listSpaces(tenant, { limit, ...(after === undefined ? {} : { after }) })
        assert.ok(page.length <= limit)
        found.push(...page)
        if (page.length < limit) break
      }
      assert.deepEqual(found, sorted)
    }
  }),
  test('keeps listing a space as long as one item of it is left', async ({ driver, tenant }) => {
    await putOne(driver, tenant, 's', 'a')
    await putOne(driver, tenant, 's', 'b')
    await writeOne(driver, tenant, { space: 's', key: 'a', item: null })
    assert.deepEqual(await driver.listSpaces(tenant, { limit: 5 }), ['s'])
    await writeOne(driver, tenant, { space: 's', key: 'b', item: null })
    await putOne(driver, tenant, 's', 'b')
    assert.deepEqual(await driver.listSpaces(tenant, { limit: 5 }), ['s'])
  }),
]

function test(name: string, run: (context: ItemContext) => Promise<void>): SuiteTest {
  return { name, exempt: lacksItems, run: (context) => run({ ...context, driver: withItems(context.driver) }) }
}
