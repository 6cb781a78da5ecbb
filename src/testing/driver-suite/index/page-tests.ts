import assert from 'node:assert/strict'
import { isHoldfastError } from '../../../core/errors.js'
import type { TenantId } from '../../../core/ids.js'
import type { Driver, Expect, Head, HeadQuery } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import { allHeads, createLog, logKey, newTenant, type SuiteTest } from '../suite-context.js'

export const pageTests: readonly SuiteTest[] = [
  {
    name: 'returns every log exactly once over pages of any size, in every order and direction',
    timeoutMs: 300_000,
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 23)
      for (const order of ['created', 'updated'] as const) {
        for (const direction of ['asc', 'desc'] as const) {
          const whole = names(await allHeads(driver, { tenant, order, direction }))
          assert.equal(new Set(whole).size, 23)
          for (const limit of [1, 2, 7, 23, 24]) {
            assert.deepEqual(names(await allHeads(driver, { tenant, order, direction }, limit)), whole)
          }
        }
      }
    },
  },
  {
    name: 'pages through logs that all have the same time',
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 20, () => 5000)
      for (const order of ['created', 'updated'] as const) {
        const up = names(await allHeads(driver, { tenant, order, direction: 'asc' }, 3))
        const down = names(await allHeads(driver, { tenant, order, direction: 'desc' }, 3))
        assert.equal(new Set(up).size, 20)
        assert.equal(new Set(down).size, 20)
      }
    },
  },
  {
    name: 'pages through branches and tenants that share a time',
    async run({ driver, tenant }) {
      const other = newTenant()
      const thread = `thread-${tenant}`
      for (const owner of [tenant, other]) {
        for (const branch of ['main', 'b', 'c']) await createLog(driver, logKey(owner, thread, branch))
      }
      const found = await allHeads(driver, { thread: logKey(tenant, thread).thread }, 1)
      assert.equal(new Set(found.map(({ log }) => `${log.tenant}/${log.branch}`)).size, 6)
      assert.equal(found.length, 6)
    },
  },
  {
    name: 'applies the filters on every page',
    async run({ driver, tenant }) {
      for (let i = 0; i < 20; i++) {
        const index = { createdAt: i, tags: i % 2 === 0 ? ['even'] : [], metadata: { third: i % 3 === 0 } }
        await createLog(driver, logKey(tenant, `t${i}`), { index })
      }
      const query = { tenant, tags: ['even'], metadata: { third: true }, order: 'created', direction: 'asc' } as const
      assert.deepEqual(names(await allHeads(driver, query, 1)), ['t0', 't6', 't12', 't18'])
      assert.deepEqual(names(await allHeads(driver, query, 3)), ['t0', 't6', 't12', 't18'])
    },
  },
  {
    name: 'pages through a range of times by the same times',
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 20)
      for (const direction of ['asc', 'desc'] as const) {
        const query = { tenant, updatedAfter: 4000, updatedBefore: 15_000, order: 'updated', direction } as const
        const found = (await allHeads(driver, query, 3)).map((head) => head.index.updatedAt)
        const expected = Array.from({ length: 10 }, (_, i) => 5000 + i * 1000)
        assert.deepEqual(found, direction === 'asc' ? expected : expected.reverse())
      }
    },
  },
  {
    name: 'goes on from a cursor whose log was erased meanwhile',
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 10)
      const whole = names(await allHeads(driver, { tenant }))
      const first = await driver.heads({ tenant, limit: 4 })
      const last = first.heads.at(-1) as Head
      await driver.erase({ tenant, thread: last.log.thread, tombstone: null })
      const rest = await driver.heads({ tenant, limit: 100, cursor: first.cursor as string })
      assert.deepEqual([...names(first.heads), ...names(rest.heads)], whole)
    },
  },
  {
    name: 'lists hundreds of logs on one page',
    async run({ driver, tenant }) {
      const size = driver.capabilities.maxBatch
      const appends = Array.from({ length: 400 }, (_, i) => makeAppend(logKey(tenant, `t${i}`), null))
      for (let from = 0; from < appends.length; from += size) await driver.append(appends.slice(from, from + size))
      const { heads, cursor } = await driver.heads({ tenant, limit: 1000 })
      assert.equal(new Set(names(heads)).size, 400)
      assert.equal(cursor, undefined)
    },
  },
  {
    name: 'gives a cursor while more may follow, and none at the end',
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 3)
      const first = await driver.heads({ tenant, limit: 2 })
      assert.equal(first.heads.length, 2)
      assert.equal(typeof first.cursor, 'string')
      const rest = await driver.heads({ tenant, limit: 2, cursor: first.cursor as string })
      assert.equal(rest.heads.length, 1)
      assert.equal(rest.cursor, undefined)
      const empty = await driver.heads({ tenant: newTenant(), limit: 2 })
      assert.deepEqual(empty.heads, [])
      assert.equal(empty.cursor, undefined)
    },
  },
  {
    name: 'takes a cursor to any other driver of the store',
    async run({ driver, tenant, open }) {
      await createMany(driver, tenant, 6)
      const whole = names(await allHeads(driver, { tenant }))
      const first = await driver.heads({ tenant, limit: 4 })
      const rest = await (await open()).heads({ tenant, limit: 4, cursor: first.cursor as string })
      assert.deepEqual([...names(first.heads), ...names(rest.heads)], whole)
    },
  },
  {
    name: 'refuses a cursor that no page returned',
    async run({ driver, tenant }) {
      await createMany(driver, tenant, 3)
      const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const garbage = [
        '',
        'garbage',
        '!!!',
        '%',
        'null',
        json(null),
        json({}),
        json([]),
        json([1, 2, 3]),
        json('x'),
        'a'.repeat(5000),
      ]
      for (const cursor of garbage) {
        await assert.rejects(
          driver.heads({ tenant, limit: 2, cursor }),
          (error) => isHoldfastError(error, 'invalid-option') && error.data.field === 'cursor',
          `the cursor ${JSON.stringify(cursor.slice(0, 40))}`,
        )
      }
    },
  },
  {
    name: 'returns each log exactly once in created order while logs are written, created and erased between pages',
    timeoutMs: 300_000,
    async run({ driver, open }) {
      const writer = await open()
      for (const direction of ['asc', 'desc'] as const) {
        const owner = newTenant(`-${direction}`)
        const ends = await createMany(driver, owner, 30)
        const erased = new Set<string>()
        const seen: string[] = []
        let cursor: string | undefined
        let page = 0
        do {
          const query: HeadQuery = { tenant: owner, order: 'created', direction, limit: 4 }
          const result = await driver.heads(cursor === undefined ? query : { ...query, cursor })
          seen.push(...names(result.heads))
          cursor = result.cursor
          page++
          // Everything that still exists moves to the front of the other order.
          for (const [name, { at, createdAt }] of ends) {
            if (erased.has(name)) continue
            const index = { createdAt, updatedAt: 1_000_000 + page }
            ends.set(name, { createdAt, at: await mustAppend(writer, makeAppend(logKey(owner, name), at, { index })) })
          }
          await createLog(writer, logKey(owner, `new-${page}`), { index: { createdAt: 15_000 + page } })
          const victim = [...ends.keys()][page * 3]
          if (victim !== undefined) {
            await writer.erase({ tenant: owner, thread: logKey(owner, victim).thread, tombstone: null })
            erased.add(victim)
          }
          assert.ok(page < 100)
        } while (cursor !== undefined)
        assert.equal(new Set(seen).size, seen.length, 'nothing comes twice')
        for (const name of ends.keys()) {
          if (!erased.has(name)) assert.ok(seen.includes(name), `${name} existed throughout and was not returned`)
        }
      }
    },
  },
  {
    name: 'returns a log that does not change exactly once in updated order, while others change',
    timeoutMs: 300_000,
    async run({ driver, open }) {
      const writer = await open()
      for (const direction of ['asc', 'desc'] as const) {
        const owner = newTenant(`-${direction}`)
        const ends = await createMany(driver, owner, 24)
        const seen: string[] = []
        let cursor: string | undefined
        let step = 0
        do {
          const query: HeadQuery = { tenant: owner, order: 'updated', direction, limit: 3 }
          const result = await driver.heads(cursor === undefined ? query : { ...query, cursor })
          seen.push(...names(result.heads))
          cursor = result.cursor
          step++
          for (const [name, { at, createdAt }] of ends) {
            if (!isChanging(name)) continue
            const index = { createdAt, updatedAt: (step * 7919) % 40_000 }
            ends.set(name, { createdAt, at: await mustAppend(writer, makeAppend(logKey(owner, name), at, { index })) })
          }
          assert.ok(step < 200)
        } while (cursor !== undefined)
        for (const name of ends.keys()) {
          if (!isChanging(name)) assert.equal(seen.filter((other) => other === name).length, 1, `${name} comes once`)
        }
      }
    },
  },
]

function isChanging(name: string): boolean {
  return Number(name.slice(1)) % 3 === 0
}

/** Threads t0, t1, … whose times are neither in the order of their names nor in that of each other. */
async function createMany(
  driver: Driver,
  tenant: TenantId,
  count: number,
  time: (i: number) => number = (i) => ((i * 7) % count) * 1000,
): Promise<Map<string, { readonly at: Expect; readonly createdAt: number }>> {
  const ends = new Map<string, { readonly at: Expect; readonly createdAt: number }>()
  for (let i = 0; i < count; i++) {
    const createdAt = time(i)
    const index = { createdAt, updatedAt: time(i * 3 + 1) }
    ends.set(`t${i}`, { createdAt, at: await createLog(driver, logKey(tenant, `t${i}`), { index }) })
  }
  return ends
}

function names(heads: readonly Head[]): readonly string[] {
  return heads.map((head) => head.log.thread)
}
