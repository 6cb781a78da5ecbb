import { Holdfast } from 'holdfast'
import { type ItemDriver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { expect, it } from 'vitest'

it('reads as many items as a page has, and one more', async () => {
  const driver = await openDriver('memory:')
  const limits: number[] = []
  const watched = new Proxy(driver, {
    get: (target, name) => {
      if (name === 'scanItems') {
        const scanItems: ItemDriver['scanItems'] = (tenant, space, scan, now) => {
          limits.push(scan.limit)
          return (target as ItemDriver).scanItems(tenant, space, scan, now)
        }
        return scanItems
      }
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  await using hf = new Holdfast(new LogStore(watched))
  const items = hf.store.scope({ user: 'u' }).collection<number>('items')
  await items.batch(Array.from({ length: 350 }, (_, i) => ({ put: `k${1000 + i}`, value: i })))
  expect((await items.list({ limit: 1 })).items).toHaveLength(1)
  expect(limits.splice(0)).toEqual([2])
  const first = await items.list()
  expect([first.items.length, limits.splice(0)]).toEqual([100, [101]])
  const rest: number[] = []
  for (let { cursor } = first; cursor !== undefined; ) {
    const page = await items.list({ cursor })
    rest.push(...page.items.map(({ value }) => value))
    cursor = page.cursor
  }
  expect(rest).toEqual(Array.from({ length: 250 }, (_, i) => 100 + i))
  expect((await items.list({ limit: 350 })).cursor).toBeUndefined()
  expect((await items.search({ filter: { x: 1 }, limit: 1 })).items).toEqual([])
  // What a filter leaves out is not asked for one by one.
  expect(limits.at(-1)).toBeGreaterThan(50)
})
