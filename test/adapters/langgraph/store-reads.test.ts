import { Holdfast } from 'holdfast'
import { type ItemDriver, type ItemScan, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { HoldfastStore } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { backends, cleanUp } from './support.js'

/** A Holdfast whose scans are seen. */
async function openWatched(url: string) {
  const driver = await openDriver(url)
  const scans: { readonly scan: ItemScan; readonly returned: number }[] = []
  const watched = new Proxy(driver, {
    get: (target, name) => {
      if (name === 'scanItems') {
        const scanItems: ItemDriver['scanItems'] = async (tenant, space, scan, now) => {
          const items = await (target as ItemDriver).scanItems(tenant, space, scan, now)
          scans.push({ scan, returned: items.length })
          return items
        }
        return scanItems
      }
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const returned = () => scans.splice(0).reduce((sum, scan) => sum + scan.returned, 0)
  return { hf: new Holdfast(new LogStore(watched)), scans, returned }
}

for (const backend of backends) {
  describe.skipIf(backend.missing)(`what HoldfastStore reads on ${backend.name}`, () => {
    it('is what can fit, and a page at a time', async () => {
      const { hf, scans, returned } = await openWatched(await backend.fresh())
      const store = new HoldfastStore(hf, { filterFields: ['kind'] })
      const value = (i: number) => ({ kind: `kind ${i % 50}`, n: i })
      await store.batch(
        Array.from({ length: 500 }, (_, i) => ({ namespace: ['n', String(i % 2)], key: `k${i}`, value: value(i) })),
      )
      const kind7 = await store.search(['n'], { filter: { kind: 'kind 7' }, limit: 100 })
      expect(kind7.map(({ value }) => value['n']).sort()).toEqual([107, 157, 207, 257, 307, 357, 407, 457, 57, 7])
      expect(returned()).toBe(10)
      const filter = { kind: { $in: ['kind 7', 'kind 8'] }, n: { $gte: 450 } }
      expect((await store.search(['n'], { filter })).map(({ key }) => key).sort()).toEqual(['k457', 'k458'])
      expect(returned()).toBe(20)
      expect(await store.search(['n'], { limit: 3, offset: 400 })).toHaveLength(3)
      expect(Math.max(...scans.map(({ scan }) => scan.limit))).toBeLessThan(200)
      expect(returned()).toBeGreaterThanOrEqual(500)
      expect(await store.search(['n'], { limit: 0 })).toEqual([])
      expect(await store.search(['n'], { limit: Number.POSITIVE_INFINITY })).toHaveLength(500)
      await expect(store.search(['n'], { limit: -1 })).rejects.toMatchObject({ code: 'invalid-option' })
      await hf.close()
    })

    it('is the first namespaces, when those are asked for', async () => {
      const { hf, scans, returned } = await openWatched(await backend.fresh())
      const store = new HoldfastStore(hf)
      await store.batch(
        Array.from({ length: 200 }, (_, i) => ({ namespace: [`n${1000 + i}`, 'x'], key: `k${i % 2}`, value: { i } })),
      )
      scans.splice(0)
      expect(await store.listNamespaces({ limit: 3, offset: 1, maxDepth: 1 })).toEqual([
        ['n1001'],
        ['n1002'],
        ['n1003'],
      ])
      expect(scans.length).toBeLessThan(40)
      expect(returned()).toBeLessThan(40)
      await hf.close()
    })
  })
}

describe('filterFields', () => {
  it('are refused when they can be none', async () => {
    await using hf = new Holdfast(new LogStore(await openDriver('memory:')))
    const many = Array.from({ length: 17 }, (_, i) => `f${i}`)
    for (const filterFields of [many, ['__proto__'], [7 as never]]) {
      expect(() => new HoldfastStore(hf, { filterFields })).toThrow(expect.objectContaining({ code: 'invalid-option' }))
    }
  })
})

afterAll(cleanUp)
