import assert from 'node:assert/strict'
import type { TenantId, ThreadId } from '../../core/ids.js'
import type { Driver, HeadQuery, IndexFields, LeaseChange } from '../../log/contract.js'
import { makeAppend, mustAppend } from '../entries.js'
import {
  allHeads,
  assertSameHead,
  branchId,
  createLog,
  headOf,
  LONG_MS,
  logKey,
  newTenant,
  PAST_SHORT_MS,
  SHORT_MS,
  type SuiteTest,
  threadsFound,
} from './suite-context.js'

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
  filterTest('filters by status: any of those given', [
    [{ status: ['idle'] }, ['a']],
    [{ status: ['paused', 'failed'] }, ['b', 'c']],
    [{ status: ['IDLE'] }, []],
    [{ status: ['idle', 'paused', 'nothing'] }, ['a', 'b']],
    [{ status: ['idle', 'idle'] }, ['a']],
    [{ status: [] }, []],
  ]),
  filterTest('filters by tags: all of those given', [
    [{ tags: ['red'] }, ['a', 'b']],
    [{ tags: ['red', 'blue'] }, ['b']],
    [{ tags: ['blue', 'red'] }, ['b']],
    [{ tags: ['red', 'red'] }, ['a', 'b']],
    [{ tags: ['green'] }, []],
    [{ tags: ['red', 'green'] }, []],
    [{ tags: ['re'] }, []],
    [{ tags: [] }, ['a', 'b', 'c']],
  ]),
  filterTest('filters by metadata: all of those given', [
    [{ metadata: { team: 'x' } }, ['a', 'b']],
    [{ metadata: { team: 'x', level: 2 } }, ['b']],
    [{ metadata: { level: 2, urgent: true } }, ['c']],
    [{ metadata: { urgent: false } }, ['a']],
    [{ metadata: { team: 'X' } }, []],
    [{ metadata: { other: 'x' } }, []],
    [{ metadata: {} }, ['a', 'b', 'c']],
  ]),
  {
    name: 'filters by parts of structured ids: all of those given, each as a whole',
    async run({ driver, tenant }) {
      const threads = [
        '{session=s-1,user=u}',
        '{session=s-2,user=u}',
        '{session=s-1,user=u-2}',
        '{user=u}',
        'user=u',
        '\\{user=u}',
      ]
      for (const thread of threads) await createLog(driver, { ...logKey(tenant, 'x'), thread: thread as ThreadId })
      const found = async (...parts: string[]) => [...(await threadsFound(driver, { tenant, parts }))].sort()
      assert.deepEqual(await found('user=u'), ['{session=s-1,user=u}', '{session=s-2,user=u}', '{user=u}'])
      assert.deepEqual(await found('session=s-1'), ['{session=s-1,user=u-2}', '{session=s-1,user=u}'])
      assert.deepEqual(await found('session=s-1', 'user=u'), ['{session=s-1,user=u}'])
      assert.deepEqual(await found('user=U'), [])
      assert.deepEqual(await found('ser=u'), [])
      assert.equal((await found()).length, threads.length)
      const pages: string[] = []
      for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
        const page = await driver.heads({ tenant, parts: ['user=u'], limit: 1, ...(cursor ? { cursor } : {}) })
        pages.push(...page.heads.map(({ log }) => log.thread))
        cursor = page.cursor
      }
      assert.deepEqual(pages.sort(), await found('user=u'))
    },
  },
  filterTest('filters by the time of the last change, without the bounds themselves', [
    [{ updatedBefore: 2000 }, ['a']],
    [{ updatedBefore: 2001 }, ['a', 'b']],
    [{ updatedAfter: 2000 }, ['c']],
    [{ updatedAfter: 1999 }, ['b', 'c']],
    [{ updatedAfter: 1000, updatedBefore: 3000 }, ['b']],
    [{ updatedBefore: 0 }, []],
    [{ updatedAfter: 8_640_000_000_000_000 }, []],
  ]),
  filterTest('filters by wake time: only logs that have one, at or before', [
    [{ wakeBefore: 499 }, ['c']],
    [{ wakeBefore: 500 }, ['b', 'c']],
    [{ wakeBefore: 0 }, ['c']],
    [{ wakeBefore: -1 }, []],
    [{ wakeBefore: 8_640_000_000_000_000 }, ['b', 'c']],
  ]),
  {
    name: 'filters by wake time against its own clock: what is marked as due, what is past, nothing to come',
    async run({ driver, tenant }) {
      const far = 8_000_000_000_000_000
      const wakeAts = { due: 0, past: 1_000_000_000_000, soon: Date.now() + 600_000, later: far, never: null }
      for (const [name, wakeAt] of Object.entries(wakeAts)) {
        await createLog(driver, logKey(tenant, name), { index: { wakeAt } })
      }
      const due = async (rest: Partial<HeadQuery>) =>
        (await driver.heads({ tenant, wakeBefore: 'now', limit: 10, ...rest })).heads
          .map(({ log }) => log.thread)
          .sort()
      assert.deepEqual(await due({}), ['due', 'past'])
      assert.deepEqual(await due({ lease: 'free', order: 'updated', direction: 'asc' }), ['due', 'past'])
      assert.deepEqual(await due({ direction: 'desc', status: ['none'] }), [])
      for (const [name, found] of [['past', ['past']] as const, ['soon', []] as const]) {
        assert.deepEqual(await due({ thread: logKey(tenant, name).thread }), found)
      }
      const first = await driver.heads({ tenant, wakeBefore: 'now', limit: 1, direction: 'asc' })
      const second = await driver.heads({
        tenant,
        wakeBefore: 'now',
        limit: 1,
        direction: 'asc',
        ...(first.cursor === undefined ? {} : { cursor: first.cursor }),
      })
      assert.deepEqual([...first.heads, ...second.heads].map(({ log }) => log.thread).sort(), ['due', 'past'])
      assert.equal(second.cursor, undefined)
    },
  },
  filterTest('filters by expiry: only logs that have one, at or before', [
    [{ expiresBefore: 699 }, []],
    [{ expiresBefore: 700 }, ['a']],
    [{ expiresBefore: 8_640_000_000_000_000 }, ['a', 'b']],
  ]),
  filterTest('combines filters: every one must hold', [
    [{ status: ['idle', 'paused'], tags: ['red'], metadata: { team: 'x' } }, ['a', 'b']],
    [{ status: ['paused'], tags: ['red', 'blue'], metadata: { team: 'x', level: 2 }, wakeBefore: 500 }, ['b']],
    [{ tags: ['red'], wakeBefore: 500, expiresBefore: 700 }, []],
    [{ tags: ['red'], expiresBefore: 700, updatedBefore: 2000, lease: 'free' }, ['a']],
    [{ status: ['failed'], metadata: { urgent: true }, updatedAfter: 2000, wakeBefore: 0, lease: 'held' }, ['c']],
    [{ status: ['idle'], tags: ['blue'] }, []],
  ]),
  filterTest('filters by lease: free or held', [
    [{ lease: 'held' }, ['c']],
    [{ lease: 'free' }, ['a', 'b']],
  ]),
  {
    name: 'counts a lease that ran out or was released as free',
    async run({ driver, tenant, advance }) {
      const claim = (ms: number): LeaseChange => ({ kind: 'claim', owner: 'w', ms, force: false })
      await createLog(driver, logKey(tenant, 'expired'), { lease: claim(SHORT_MS) })
      const released = await createLog(driver, logKey(tenant, 'released'), { lease: claim(LONG_MS) })
      const renewed = await createLog(driver, logKey(tenant, 'renewed'), { lease: claim(SHORT_MS) })
      await createLog(driver, logKey(tenant, 'running'), { lease: claim(LONG_MS) })
      await mustAppend(driver, makeAppend(logKey(tenant, 'released'), released, { lease: { kind: 'release' } }))
      assert.equal(await driver.renew(logKey(tenant, 'renewed'), renewed.incarnation, 1, LONG_MS), true)
      await advance(PAST_SHORT_MS)
      assert.deepEqual([...(await threadsFound(driver, { tenant, lease: 'held' }))].sort(), ['renewed', 'running'])
      assert.deepEqual([...(await threadsFound(driver, { tenant, lease: 'free' }))].sort(), ['expired', 'released'])
    },
  },
  {
    name: 'filters by thread and by branch, alone and together',
    async run({ driver, tenant }) {
      for (const thread of ['a', 'b']) {
        for (const branch of ['main', 'fork']) await createLog(driver, logKey(tenant, thread, branch))
      }
      const names = async (query: Omit<HeadQuery, 'limit'>) =>
        (await allHeads(driver, query)).map(({ log }) => `${log.thread}/${log.branch}`).sort()
      const { thread, branch } = logKey(tenant, 'a', 'fork')
      assert.deepEqual(await names({ tenant, thread }), ['a/fork', 'a/main'])
      assert.deepEqual(await names({ tenant, branch }), ['a/fork', 'b/fork'])
      assert.deepEqual(await names({ tenant, thread, branch }), ['a/fork'])
      assert.deepEqual(await names({ tenant, thread: logKey(tenant, 'A').thread }), [])
    },
  },
  {
    name: 'finds logs of all tenants when none is named',
    async run({ driver, tenant }) {
      const other = newTenant()
      const { thread } = logKey(tenant, `shared-${tenant}`)
      const tag = `tag-${tenant}`
      for (const owner of [tenant, other]) await createLog(driver, logKey(owner, thread), { index: { tags: [tag] } })
      const tenants = async (query: Omit<HeadQuery, 'limit'>) =>
        (await allHeads(driver, query)).map(({ log }) => log.tenant).sort()
      assert.deepEqual(await tenants({ thread }), [tenant, other].sort())
      assert.deepEqual(await tenants({ tags: [tag] }), [tenant, other].sort())
      assert.deepEqual(await tenants({ tenant: other, tags: [tag] }), [other])
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

/** Three logs that differ in everything, and which of them each query finds. */
function filterTest(name: string, cases: readonly (readonly [Partial<HeadQuery>, readonly string[]])[]): SuiteTest {
  return {
    name,
    async run({ driver, tenant }) {
      await createThree(driver, tenant)
      for (const [query, expected] of cases) {
        const found = await threadsFound(driver, { tenant, order: 'updated', direction: 'asc', ...query })
        assert.deepEqual(found, expected, `the logs found by ${JSON.stringify(query)}`)
      }
    },
  }
}

async function createThree(driver: Driver, tenant: TenantId): Promise<void> {
  const rows: Record<string, Partial<IndexFields>> = {
    a: { status: 'idle', tags: ['red'], metadata: { team: 'x', urgent: false }, updatedAt: 1000, expiresAt: 700 },
    b: {
      status: 'paused',
      tags: ['blue', 'red'],
      metadata: { team: 'x', level: 2 },
      updatedAt: 2000,
      wakeAt: 500,
      expiresAt: 900,
    },
    c: { status: 'failed', tags: [], metadata: { team: 'y', level: 2, urgent: true }, updatedAt: 3000, wakeAt: 0 },
  }
  for (const [name, index] of Object.entries(rows)) {
    const lease: LeaseChange =
      name === 'c' ? { kind: 'claim', owner: 'w', ms: LONG_MS, force: false } : { kind: 'keep' }
    await createLog(driver, logKey(tenant, name), { index, lease })
  }
}
