import { setTimeout as sleep } from 'node:timers/promises'
import { Holdfast, isHoldfastError, openHoldfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { faultyDriver } from 'holdfast/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Backend, durableBackends } from '../support/backends.js'
import { seeded } from '../support/seeded.js'
import { makeUserTable, type UserTable } from '../support/user-table.js'

const { push, set } = ops

const backends = await durableBackends()
const able = backends.filter(({ name }) => name === 'SQLite' || name === 'Postgres')
const LEASE = { owner: 'worker', ms: 60_000, force: true }

function describeEach(body: (backend: Backend) => void): void {
  for (const backend of able) {
    describe.skipIf(backend.missing)(`transactions on ${backend.name}`, () => {
      body(backend)
    })
  }
}

describeEach((backend) => {
  let url: string
  let driver: Driver
  let hf: Holdfast
  let table: UserTable
  let counter = 0
  const fresh = () => `thread-${counter++}`
  const insert = (id: string) =>
    [`INSERT INTO ${table.name} (id, n) VALUES (${table.mark(1)}, ${table.mark(2)})`, [id, 1]] as const

  beforeAll(async () => {
    url = await backend.fresh()
    await (await openHoldfast(url)).close()
    table = await makeUserTable(backend, url)
  })
  beforeEach(async () => {
    await table.run(`DELETE FROM ${table.name}`)
    driver = await openDriver(url)
    hf = new Holdfast(new LogStore(driver))
  })
  afterEach(() => hf.close())
  afterAll(async () => {
    await table?.run(`DROP TABLE ${table.name}`)
    await backend.cleanup()
  })

  it('records what the SQL returned, in the same transaction', async () => {
    const thread = fresh()
    const claim = await (await hf.log(thread)).claim(LEASE)
    const { result, updated } = await claim.transact(
      async (sql) => {
        await sql.query(...insert('a'))
        const { rows } = await sql.query<{ n: unknown }>(`SELECT count(*) AS n FROM ${table.name}`)
        return Number(rows[0]?.n)
      },
      (fold, count) => [{ kind: 'step', ops: [set('count', count), set('after', fold.seq)] }],
    )
    expect(result).toBe(1)
    expect(updated.entries).toHaveLength(1)
    expect(updated.fold.state).toEqual({ count: 1, after: 0 })
    expect(await table.ids()).toEqual(['a'])
    const again = await openHoldfast(url)
    expect((await again.log(thread)).fold.state).toEqual({ count: 1, after: 0 })
    expect((await again.verify(thread))?.problems).toEqual([])
    await again.close()
    await claim.update(() => [{ kind: 'step', ops: [set('next', true)] }])
  })

  it('keeps nothing when the work or the decision throws, or when nothing is recorded', async () => {
    const claim = await (await hf.log(fresh())).claim(LEASE)
    const before = claim.log.fold.seq
    const thrown = new Error('no')
    const work = (sql: { query: (...args: ReturnType<typeof insert>) => Promise<unknown> }) => sql.query(...insert('a'))
    const cases = [
      claim.transact(
        async (sql) => {
          await work(sql)
          throw thrown
        },
        () => [{ kind: 'step' }],
      ),
      claim.transact(work, () => {
        throw thrown
      }),
    ]
    for (const each of cases) await expect(each).rejects.toBe(thrown)
    await expect(claim.transact(work, () => [])).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path: 'decide' },
    })
    await expect(claim.transact(work, () => [{ kind: 'step', ops: [set('f', () => 1)] }])).rejects.toMatchObject({
      code: 'invalid-value',
    })
    expect(await table.ids()).toEqual([])
    expect((await claim.log.refresh()).seq).toBe(before)
  })

  it('refuses a time limit that is none, and ends one that is over', async () => {
    const claim = await (await hf.log(fresh())).claim(LEASE)
    for (const timeoutMs of [0, -1, 1.5, Number.NaN, 60_001, '5' as never]) {
      await expect(
        claim.transact(
          async () => 1,
          () => [{ kind: 'step' }],
          { timeoutMs },
        ),
      ).rejects.toMatchObject({
        code: 'invalid-option',
        data: { field: 'timeoutMs' },
      })
    }
    const slow = claim.transact(
      async (sql) => {
        await sql.query(...insert('slow'))
        await sleep(60_000, undefined, { ref: false })
      },
      () => [{ kind: 'step' }],
      { timeoutMs: 50 },
    )
    await expect(slow).rejects.toMatchObject({ code: 'transaction', data: { reason: 'timeout' } })
    expect(await table.ids()).toEqual([])
    await claim.update(() => [{ kind: 'step' }])
  })

  // On SQLite a guest has to wait for the end of the transaction, so it can't come in between.
  it.runIf(backend.name === 'Postgres')('runs again when a guest appended meanwhile, and counts once', async () => {
    const thread = fresh()
    const claim = await (await hf.log(thread)).claim(LEASE)
    const guest = await hf.log(thread)
    let runs = 0
    const { updated } = await claim.transact(
      async (sql) => {
        await sql.query(...insert('once'))
        if (++runs === 1) await guest.update(() => [{ kind: 'input', ops: [push('inputs', 'hello')] }])
      },
      (fold) => [{ kind: 'step', ops: [set('seen', fold.state['inputs'] ?? null)] }],
    )
    expect(runs).toBe(2)
    expect(updated.fold.state['seen']).toEqual(['hello'])
    expect(await table.ids()).toEqual(['once'])
  })

  it('ends at its time limit when the work waits for a write that waits for it', async () => {
    const claim = await (await hf.log(fresh())).claim(LEASE)
    let inner: Promise<unknown> | undefined
    // Again where the time was over before it came to that.
    while (inner === undefined) {
      const stuck = claim.transact(
        async (sql) => {
          await sql.query(...insert('stuck'))
          inner = claim.update(() => [{ kind: 'step', ops: [set('inner', true)] }])
          await inner
        },
        () => [{ kind: 'step' }],
        { timeoutMs: 100 },
      )
      await expect(stuck).rejects.toMatchObject({ code: 'transaction', data: { reason: 'timeout' } })
    }
    await inner
    expect(claim.log.fold.state['inner']).toBe(true)
    expect(await table.ids()).toEqual([])
  })

  it('catches up first when a guest appended before it began', async () => {
    const thread = fresh()
    const claim = await (await hf.log(thread)).claim(LEASE)
    const other = await openHoldfast(url)
    await (await other.log(thread)).update(() => [{ kind: 'input', ops: [push('inputs', 'hello')] }])
    let runs = 0
    await claim.transact(
      async (sql) => {
        runs++
        await sql.query(...insert('once'))
      },
      (fold) => [{ kind: 'step', ops: [set('seen', fold.state['inputs'] ?? null)] }],
    )
    expect(runs).toBe(2)
    expect(claim.log.fold.state['seen']).toEqual(['hello'])
    expect(await table.ids()).toEqual(['once'])
    await other.close()
  })

  it('leaves nothing of a worker whose log was taken over', async () => {
    const thread = fresh()
    const claim = await (await hf.log(thread)).claim(LEASE)
    const other = await openHoldfast(url)
    const taken = await (await other.log(thread)).claim({ ...LEASE, owner: 'thief' })
    const late = claim.transact(
      (sql) => sql.query(...insert('late')),
      () => [{ kind: 'step' }],
    )
    await expect(late).rejects.toMatchObject({ code: 'fenced', data: { epoch: 1, current: 2 } })
    expect(await table.ids()).toEqual([])
    await taken.update(() => [{ kind: 'step' }])
    await other.close()
  })

  it('keeps its place among the other writes of a handle', async () => {
    const claim = await (await hf.log(fresh())).claim(LEASE)
    await Promise.all([
      claim.update(() => [{ kind: 'step', ops: [push('order', 1)] }]),
      claim.transact(
        (sql) => sql.query(...insert('a')),
        () => [{ kind: 'step', ops: [push('order', 2)] }],
      ),
      claim.update(() => [{ kind: 'step', ops: [push('order', 3)] }]),
      claim.transact(
        (sql) => sql.query(...insert('b')),
        () => [{ kind: 'step', ops: [push('order', 4)] }],
      ),
      claim.update(() => [{ kind: 'step', ops: [push('order', 5)] }]),
    ])
    expect(claim.log.fold.state['order']).toEqual([1, 2, 3, 4, 5])
    expect(await table.ids()).toEqual(['a', 'b'])
  })

  it('stores large values, keyframes and writes to the store with it, under keys as well', async () => {
    const thread = fresh()
    const keyed = await openHoldfast(url, { keys: { current: 'k1', masters: { k1: new Uint8Array(32).fill(7) } } })
    const large = 'x'.repeat(200_000)
    for (const store of [hf, keyed.tenant('keyed')]) {
      const claim = await (await store.log(thread)).claim(LEASE)
      for (const keyframe of [false, true, false]) {
        await claim.transact(
          (sql) => sql.query(...insert('large')),
          () => [
            {
              kind: 'step',
              keyframe,
              ops: [set('large', `${large}${keyframe}`), push('sizes', { large })],
              store: [['put', 'notes', 'size', large.length, null]],
            },
          ],
        )
      }
      expect((await store.log(thread)).fold.state['sizes']).toHaveLength(3)
      expect((await store.verify(thread))?.problems).toEqual([])
    }
    await keyed.close()
    expect(new Set(await table.ids())).toEqual(new Set(['large']))
  })

  it('counts exactly once when its acknowledgement, or the call, is lost', async () => {
    const faulty = faultyDriver(driver)
    const store = new Holdfast(new LogStore(faulty))
    const claim = await (await store.log(fresh())).claim(LEASE)
    let recorded = 0
    for (const moment of ['after', 'before', 'after', 'after'] as const) {
      faulty.loseNext('transact', moment)
      const { updated, result } = await claim.transact(
        async (sql) => {
          await sql.query(...insert(`n${recorded}`))
          return recorded
        },
        (_, n) => [{ kind: 'step', ops: [push('done', n)] }],
      )
      expect(result).toBe(recorded)
      expect(updated.fold.seq).toBe(++recorded)
    }
    expect(claim.log.fold.state['done']).toEqual([0, 1, 2, 3])
    expect(await table.ids()).toEqual(['n0', 'n1', 'n2', 'n3'])
  })

  it('finds what landed although the look after it failed too', async () => {
    const faulty = faultyDriver(driver)
    const store = new Holdfast(new LogStore(faulty))
    const claim = await (await store.log(fresh())).claim(LEASE)
    faulty.loseNext('transact', 'after')
    faulty.loseNext('read', 'before')
    let runs = 0
    const { result } = await claim.transact(
      async (sql) => {
        await sql.query(...insert('once'))
        return ++runs
      },
      (_, n) => [{ kind: 'step', ops: [set('run', n)] }],
    )
    // The second run met the first in the log, and was undone.
    expect([runs, result]).toEqual([2, 1])
    expect(await table.ids()).toEqual(['once'])
    expect((await claim.log.refresh()).state['run']).toBe(1)
  })

  it('is exactly once under random conflicts and lost acknowledgements', { timeout: 600_000 }, async () => {
    const thread = fresh()
    const random = seeded(8847)
    const FIRST_DICE = [0.15, 0.1, 0.05]
    const faulty = faultyDriver(driver)
    const store = new Holdfast(new LogStore(faulty))
    const claim = await (await store.log(thread)).claim(LEASE)
    const other = await openHoldfast(url)
    const guest = await other.log(thread)
    let over = false
    let inputs = 0
    const disturb = (async () => {
      while (!over) {
        await guest.update(() => [{ kind: 'input', ops: [push('inputs', inputs)] }])
        inputs++
        await sleep(Math.random() * 8)
      }
    })()
    let runs = 0
    const count = 40
    for (let n = 0; n < count; n++) {
      // The first ones of each kind, so that every seed meets them: before (done again), after, and a failing look.
      const dice = FIRST_DICE[n] ?? random.next()
      if (dice < 0.2) faulty.loseNext('transact', dice < 0.14 ? 'after' : 'before')
      if (dice < 0.07) faulty.loseNext('read', 'before')
      await claim.transact(
        async (sql) => {
          runs++
          await sql.query(...insert(String(n).padStart(3, '0')))
        },
        () => [{ kind: 'step', ops: [push('done', n)] }],
      )
      if (n % 3 === 0) await sleep(Math.random() * 5)
    }
    over = true
    await disturb
    const fold = await claim.log.refresh()
    expect(fold.state['done']).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(fold.state['inputs']).toHaveLength(inputs)
    expect(await table.ids()).toEqual(Array.from({ length: count }, (_, n) => String(n).padStart(3, '0')))
    expect(runs).toBeGreaterThan(count)
    await other.close()
  })

  it('lets many workers count in one row without losing any', async () => {
    await table.run(`INSERT INTO ${table.name} (id, n) VALUES ('total', 0)`)
    await Promise.all(
      Array.from({ length: 12 }, async () => {
        const claim = await (await hf.log(fresh())).claim(LEASE)
        for (let i = 0; i < 4; i++) {
          await claim.transact(
            (sql) => sql.query(`UPDATE ${table.name} SET n = n + 1 WHERE id = ${table.mark(1)}`, ['total']),
            (_, { changes }) => [{ kind: 'step', ops: [push('changes', changes)] }],
          )
        }
        expect(claim.log.fold.state['changes']).toEqual([1, 1, 1, 1])
      }),
    )
    const [row] = await table.run(`SELECT n FROM ${table.name}`)
    expect(Number(row?.['n'])).toBe(48)
  })
})

describe('transactions where the backend has none', () => {
  for (const backend of [{ name: 'memory', missing: false, fresh: async () => 'memory:' }, ...backends]) {
    if (able.some(({ name }) => name === backend.name)) continue
    it.skipIf(backend.missing)(`are refused on ${backend.name}, with the backends that can`, async () => {
      const hf = await openHoldfast(await backend.fresh())
      const claim = await (await hf.log('t')).claim(LEASE)
      const refused = await claim
        .transact(
          async () => 1,
          () => [{ kind: 'step' }],
        )
        .catch((error: unknown) => error)
      expect(isHoldfastError(refused, 'invalid-option')).toBe(true)
      expect(String(refused)).toMatch(/SQLite or Postgres/)
      await hf.close()
    })
  }
  afterAll(() => Promise.all(backends.map((backend) => backend.cleanup())))
})
