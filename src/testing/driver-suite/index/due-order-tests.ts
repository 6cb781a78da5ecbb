import assert from 'node:assert/strict'
import { DUE, type DueQuery, LIMIT_LABEL, PRIORITY_LABEL, PROGRAM_LABEL } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import { exempt, leave, MINUTE, names, newProgram, NOW, take } from './due-fixtures.js'
import { createLog, logKey, LONG_MS, PAST_SHORT_MS, SHORT_MS, type SuiteTest } from '../suite-context.js'

/** Whose turn it is: by priority, by tenant, and by who held it last. */
export const dueOrderTests: readonly SuiteTest[] = [
  {
    name: 'gives higher priorities first, of one the longest due, and none at all counts as 0',
    exempt,
    async run(context) {
      const { driver } = context
      const [one, two] = [newProgram(), newProgram()]
      const at = (priority: number) => ({ [PRIORITY_LABEL]: priority })
      await leave(context, 'plain', one, DUE, NOW - 9 * MINUTE)
      await leave(context, 'plain dated', one, NOW - 8 * MINUTE)
      await leave(context, 'zero', one, DUE, NOW - 7 * MINUTE, at(0))
      await leave(context, 'low', one, DUE, NOW - 20 * MINUTE, at(-5))
      await leave(context, 'high late', one, DUE, NOW - MINUTE, at(10))
      await leave(context, 'high', one, NOW - 2 * MINUTE, NOW, at(10))
      await leave(context, 'higher of another', two, NOW, NOW, at(200))
      await leave(context, 'highest, later', two, NOW + 1000, NOW, at(1000))
      const order = ['higher of another', 'high', 'high late', 'plain', 'plain dated', 'zero', 'low']
      assert.deepEqual(names(await take(driver, [one, two], { reserveMs: SHORT_MS })), order)
      await context.advance(PAST_SHORT_MS)
      const found: string[] = []
      for (let rounds = 0; found.length < order.length; rounds++) {
        assert.ok(rounds < 50, `all are given in the end, ${found.join()} so far`)
        found.push(...names(await take(driver, [one, two], { limit: 1 })))
      }
      assert.deepEqual(found, order)
      const none = await take(driver, [one, two])
      assert.ok(none.nextMs !== null && none.nextMs <= 1000, `${none.nextMs} ms`)
    },
  },
  {
    name: 'moves what is due when its priority changes',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const program = newProgram()
      const at = await leave(context, 'raised', program, DUE, NOW, { [PRIORITY_LABEL]: -3 })
      await leave(context, 'other', program, DUE, NOW - MINUTE)
      const metadata = { [PROGRAM_LABEL]: program, [PRIORITY_LABEL]: 3 }
      await mustAppend(
        driver,
        makeAppend(logKey(tenant, 'raised'), at, {
          index: { wakeAt: DUE, updatedAt: NOW, metadata },
        }),
      )
      assert.deepEqual(names(await take(driver, [program])), ['raised', 'other'])
    },
  },
  {
    name: 'gives tenants their turns, whoever has most and waits longest',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const program = newProgram()
      const tenants = ['a', 'b', 'c'].map((name) => `${tenant}-${name}` as typeof tenant)
      const flood = Array.from({ length: 30 }, (_, i) => i)
      for (const i of flood) {
        await leave({ driver, tenant: tenants[0] as typeof tenant }, `a${i}`, program, DUE, NOW - (40 - i) * MINUTE)
      }
      await leave({ driver, tenant: tenants[1] as typeof tenant }, 'b0', program, DUE, NOW)
      await leave({ driver, tenant: tenants[2] as typeof tenant }, 'c0', program, DUE, NOW - MINUTE)
      await leave({ driver, tenant: tenants[2] as typeof tenant }, 'c1', program, DUE, NOW)
      const page = await take(driver, [program], { limit: 6, reserveMs: SHORT_MS })
      assert.deepEqual(names(page), ['a0', 'b0', 'c0', 'a1', 'c1', 'a2'])
      assert.equal(page.more, true)
      await context.advance(PAST_SHORT_MS)
      const found: string[] = []
      let after: DueQuery['after']
      for (let i = 0; i < 5; i++) {
        const one = await take(driver, [program], { limit: 1, ...(after === undefined ? {} : { after }) })
        found.push(...names(one))
        after = one.heads[0]?.log.tenant
      }
      assert.deepEqual(found, ['a0', 'b0', 'c0', 'a1', 'c1'])
    },
  },
  {
    name: 'passes over groups that it is told to, and gives the rest',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const [program, another] = [newProgram(), newProgram()]
      const other = `${tenant}-2` as typeof tenant
      const keyed = (key: string) => ({ [LIMIT_LABEL]: key })
      await leave(context, 'plain', program, DUE, NOW - 4 * MINUTE)
      await leave(context, 'k', program, DUE, NOW - 3 * MINUTE, keyed('k "1"'))
      await leave(context, 'k dated', program, NOW - 2 * MINUTE, NOW, keyed('k "1"'))
      await leave(context, 'l', program, DUE, NOW - MINUTE, keyed('l'))
      await leave(context, 'of another', another, DUE, NOW, keyed('k "1"'))
      await leave({ driver, tenant: other }, 'theirs', program, DUE, NOW, keyed('k "1"'))
      await leave({ driver, tenant: other }, 'theirs dated', program, NOW, NOW)
      const given = async (except: NonNullable<DueQuery['except']>) => {
        const page = names(await take(driver, [program, another], { except, reserveMs: SHORT_MS }))
        await context.advance(PAST_SHORT_MS)
        return page.sort()
      }
      assert.deepEqual(await given([{ program, tenant, key: 'k "1"' }]), [
        'l',
        'of another',
        'plain',
        'theirs',
        'theirs dated',
      ])
      const many = Array.from({ length: 1500 }, (_, i) => ({ program, tenant, ...(i % 2 ? { key: `k${i}` } : {}) }))
      const others = many.map((group, i) => ({ ...group, tenant: `${tenant}-n${i}` as typeof tenant }))
      assert.equal((await given([...others, ...many.filter(({ key }) => key)])).length, 7)
      assert.deepEqual(await given([{ program, tenant }]), ['of another', 'theirs', 'theirs dated'])
      assert.deepEqual(
        await given([
          { program, tenant: other },
          { program: another, tenant },
        ]),
        ['k', 'k dated', 'l', 'plain'],
      )
    },
  },
  {
    name: 'leaves what became due just now for a moment to whoever held it last',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const program = newProgram()
      const metadata = { [PROGRAM_LABEL]: program }
      const claim = { kind: 'claim', owner: 'first "1"', ms: LONG_MS, force: false } as const
      const rest = { index: { wakeAt: null, updatedAt: NOW, metadata }, lease: { kind: 'release' } } as const
      await leave(context, 'never held', program)
      for (const [thread, wakeAt] of [
        ['written to', DUE],
        ['woken', NOW],
      ] as const) {
        const log = logKey(tenant, thread)
        const held = await createLog(driver, log, { index: { wakeAt: DUE, updatedAt: NOW, metadata }, lease: claim })
        const rested = await mustAppend(driver, makeAppend(log, held, rest))
        await context.advance(5)
        await mustAppend(driver, makeAppend(log, rested, { index: { wakeAt, updatedAt: NOW, metadata } }))
      }
      const given = async (owner: string | undefined, now = NOW) => {
        const warm = owner === undefined ? {} : { warm: { owner, ms: 1000 } }
        const page = await take(driver, [program], { now, reserveMs: SHORT_MS, ...warm })
        await context.advance(PAST_SHORT_MS)
        return { names: names(page).sort(), nextMs: page.nextMs }
      }
      const all = ['never held', 'woken', 'written to']
      const others = await given('second')
      assert.deepEqual(others.names, ['never held'])
      assert.ok(others.nextMs !== null && others.nextMs > 0 && others.nextMs <= 1000, `${others.nextMs} ms`)
      assert.deepEqual((await given('first "1"')).names, all)
      assert.deepEqual((await given(undefined)).names, all)
      assert.deepEqual((await given('second', NOW + 1000)).names, all, 'the moment is over')
    },
  },
  {
    name: 'leaves nothing to an owner that released it while it was due, nor by a clock that is ahead',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const program = newProgram()
      const metadata = { [PROGRAM_LABEL]: program }
      const claim = { kind: 'claim', owner: 'first', ms: LONG_MS, force: false } as const
      const due = { wakeAt: DUE, updatedAt: NOW - LONG_MS / 2, metadata }
      for (const thread of ['by an append', 'by a renewal']) {
        const log = logKey(tenant, thread)
        const held = await createLog(driver, log, { index: due, lease: claim })
        if (thread === 'by a renewal') await driver.renew(log, held.incarnation, held.epoch, 0)
        else await mustAppend(driver, makeAppend(log, held, { index: due, lease: { kind: 'release' } }))
      }
      const ahead = logKey(tenant, 'ahead')
      const held = await createLog(driver, ahead, { index: { ...due, updatedAt: NOW }, lease: claim })
      const rest = { index: { ...due, wakeAt: null }, lease: { kind: 'release' } } as const
      const rested = await mustAppend(driver, makeAppend(ahead, held, rest))
      await context.advance(5)
      await mustAppend(driver, makeAppend(ahead, rested, { index: { ...due, updatedAt: NOW + 2 * LONG_MS } }))
      const page = await take(driver, [program], { warm: { owner: 'second', ms: LONG_MS } })
      assert.deepEqual(names(page).sort(), ['ahead', 'by a renewal', 'by an append'])
    },
  },
]
