import assert from 'node:assert/strict'
import type { HeadQuery } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import {
  allHeads,
  assertSameHead,
  branchId,
  createLog,
  headOf,
  logKey,
  LONG_MS,
  newTenant,
  threadsFound,
  type SuiteTest,
} from '../suite-context.js'

/** Rows of the index: complete, in order, and as new as their logs. */
export const indexTests: readonly SuiteTest[] = [
  {
    name: 'lists heads exactly as `head` returns them',
    async run({ driver, tenant }) {
      await createLog(driver, logKey(tenant, 'a'), { count: 3, index: { tags: ['x'], metadata: { m: 1 }, wakeAt: 5 } })
      await createLog(driver, logKey(tenant, 'b'), { lease: { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } })
      await createLog(driver, logKey(tenant, 'b', 'fork'), {
        index: { origin: { branch: branchId('main'), incarnation: 'i', seq: 0, hash: 'h' } },
      })
      const heads = await allHeads(driver, { tenant })
      assert.equal(heads.length, 3)
      for (const head of heads) assertSameHead(head, await headOf(driver, head.log))
    },
  },
  {
    name: 'pages through the logs with a label in every order, of one tenant and of all, also those created again',
    async run({ driver, tenant }) {
      const other = newTenant()
      const label = { team: `team-${tenant}` }
      const tag = `tag-${tenant}`
      for (let i = 0; i < 12; i++) {
        const log = logKey(i % 3 === 0 ? other : tenant, `thread-${i}`)
        const times = { createdAt: 100 - i, updatedAt: (i % 5) * 60_000 + i }
        const labels = i % 4 === 3 ? { metadata: { team: 'another' } } : { metadata: label, tags: [tag] }
        const at = await createLog(driver, log, { index: { ...times, ...labels } })
        if (i === 5) await mustAppend(driver, makeAppend(log, at, { index: times }))
        if (i < 6 || i > 8) continue
        await driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null })
        if (i !== 8) await createLog(driver, log, { index: { ...times, createdAt: 200 - i, ...labels } })
      }
      const filters = [{ metadata: label }, { tags: [tag] }, { metadata: label, tags: [tag], status: ['idle'] }]
      for (const filter of filters) {
        for (const order of ['created', 'updated'] as const) {
          for (const direction of ['asc', 'desc'] as const) {
            const names = async (of: Partial<HeadQuery>) => {
              const heads = await allHeads(driver, { ...filter, ...of, order, direction }, 2)
              return heads.map(({ log }) => Number(log.thread.slice('thread-'.length)))
            }
            const sorted = (numbers: number[]) => (direction === 'asc' ? numbers : numbers.toReversed())
            const all = order === 'created' ? [10, 9, 4, 2, 1, 0, 6] : [0, 10, 1, 6, 2, 4, 9]
            assert.deepEqual(await names({}), sorted(all))
            assert.deepEqual(await names({ tenant }), sorted(all.filter((i) => i % 3 !== 0)))
            assert.deepEqual(await names({ tenant: other }), sorted(all.filter((i) => i % 3 === 0)))
          }
        }
      }
    },
  },
  {
    name: 'orders by creation or by last change, newest first unless asked otherwise',
    async run({ driver, tenant }) {
      // Not written in the order of either time.
      await createLog(driver, logKey(tenant, 'b'), { index: { createdAt: 200, updatedAt: 900 } })
      await createLog(driver, logKey(tenant, 'c'), { index: { createdAt: 300, updatedAt: 800 } })
      await createLog(driver, logKey(tenant, 'a'), { index: { createdAt: 100, updatedAt: 850 } })
      const found = (query: Partial<HeadQuery>) => threadsFound(driver, { tenant, ...query })
      assert.deepEqual(await found({ order: 'created' }), ['c', 'b', 'a'])
      assert.deepEqual(await found({ order: 'created', direction: 'desc' }), ['c', 'b', 'a'])
      assert.deepEqual(await found({ order: 'created', direction: 'asc' }), ['a', 'b', 'c'])
      assert.deepEqual(await found({ order: 'updated' }), ['b', 'a', 'c'])
      assert.deepEqual(await found({ order: 'updated', direction: 'asc' }), ['c', 'a', 'b'])
      assert.deepEqual(await found({}), ['c', 'b', 'a'], "the order is 'created' unless asked otherwise")
    },
  },
  {
    name: 'orders by number, however many digits the times have',
    async run({ driver, tenant }) {
      const times = [0, 9, 10, 99, 1_700_000_000_000, 8_640_000_000_000_000]
      for (const time of times) {
        await createLog(driver, logKey(tenant, `at-${time}`), { index: { createdAt: time, updatedAt: time } })
      }
      const expected = times.map((time) => `at-${time}`)
      for (const order of ['created', 'updated'] as const) {
        assert.deepEqual(await threadsFound(driver, { tenant, order, direction: 'asc' }), expected)
        assert.deepEqual(await threadsFound(driver, { tenant, order }), expected.toReversed())
      }
    },
  },
  {
    name: 'returns times as the numbers they were, 0 and the largest included',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      const large = 8_640_000_000_000_000
      const at = await createLog(driver, log, { index: { createdAt: 0, updatedAt: 0, expiresAt: 0, wakeAt: 0 } })
      const first = (await headOf(driver, log)).index
      assert.deepEqual([first.createdAt, first.updatedAt, first.expiresAt, first.wakeAt], [0, 0, 0, 0])
      await mustAppend(
        driver,
        makeAppend(log, at, { index: { createdAt: large, updatedAt: large, expiresAt: large, wakeAt: large } }),
      )
      const second = (await headOf(driver, log)).index
      assert.deepEqual([second.createdAt, second.updatedAt, second.expiresAt, second.wakeAt], Array(4).fill(large))
    },
  },
  {
    name: 'follows every change of the index row',
    async run({ driver, tenant }) {
      const log = logKey(tenant)
      let at = await createLog(driver, log, { index: { status: 'one', wakeAt: 10, tags: ['t1'], metadata: { k: 1 } } })
      const counts = async () => {
        const queries: Partial<HeadQuery>[] = [
          { status: ['one'] },
          { wakeBefore: 10 },
          { tags: ['t1'] },
          { metadata: { k: 1 } },
          { status: ['two'] },
          { tags: ['t2'] },
          { metadata: { k: '1' } },
        ]
        const found: number[] = []
        for (const query of queries) found.push((await threadsFound(driver, { tenant, ...query })).length)
        return found
      }
      assert.deepEqual(await counts(), [1, 1, 1, 1, 0, 0, 0])
      at = await mustAppend(
        driver,
        makeAppend(log, at, { index: { status: 'two', tags: ['t2'], metadata: { k: '1' }, updatedAt: 5 } }),
      )
      assert.deepEqual(await counts(), [0, 0, 0, 0, 1, 1, 1])
      await mustAppend(driver, makeAppend(log, at))
      assert.deepEqual(await counts(), [0, 0, 0, 0, 0, 0, 0])
    },
  },
]
