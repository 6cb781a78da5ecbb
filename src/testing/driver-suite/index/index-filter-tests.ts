import assert from 'node:assert/strict'
import type { TenantId, ThreadId } from '../../../core/ids.js'
import type { Driver, HeadQuery, IndexFields, LeaseChange } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import {
  allHeads,
  createLog,
  logKey,
  LONG_MS,
  newTenant,
  PAST_SHORT_MS,
  SHORT_MS,
  threadsFound,
  type SuiteTest,
} from '../suite-context.js'

/** Which rows of the index a query finds. */
export const indexFilterTests: readonly SuiteTest[] = [
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
