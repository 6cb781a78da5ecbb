import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  DUE,
  type Driver,
  type DuePage,
  type DueQuery,
  LIMIT_LABEL,
  PRIORITY_LABEL,
  PROGRAM_LABEL,
} from '../../log/contract.js'
import { makeAppend, mustAppend } from '../entries.js'
import {
  createLog,
  LONG_MS,
  logKey,
  PAST_SHORT_MS,
  SHORT_MS,
  type SuiteContext,
  type SuiteTest,
} from './suite-context.js'

const NOW = 1_700_000_000_000
const MINUTE = 60_000

const exempt = (driver: Driver): string | undefined => (driver.takeDue ? undefined : 'it has no index of what is due')
// Servers are shared, and workers look at all tenants: programs tell the tests apart.
const newProgram = (): string => `p-${randomBytes(6).toString('hex')}`

function leave(
  { driver, tenant }: Pick<SuiteContext, 'driver' | 'tenant'>,
  thread: string,
  program: string,
  wakeAt: number | null = DUE,
  updatedAt = NOW,
  labels: Readonly<Record<string, string | number>> = {},
) {
  const other = 'x"],["holdfast.program","fake"],["holdfast.priority",9]'
  const index = { wakeAt, updatedAt, metadata: { [PROGRAM_LABEL]: program, other, ...labels } }
  return createLog(driver, logKey(tenant, thread), { index })
}

function take(driver: Driver, programs: readonly string[], more: Partial<DueQuery> = {}) {
  return driver.takeDue?.(query(programs, more)) as Promise<DuePage>
}

function query(programs: readonly string[], more: Partial<DueQuery>): DueQuery {
  return { programs, now: NOW, limit: 100, reserveMs: LONG_MS, ...more }
}

const names = ({ heads }: DuePage): string[] => heads.map(({ log }) => log.thread)

export const dueTests: readonly SuiteTest[] = [
  {
    name: 'gives what is due of some programs, those that have waited longest first, and nothing of others',
    exempt,
    async run(context) {
      const { driver } = context
      const [one, two, foreign] = [newProgram(), newProgram(), newProgram()]
      await leave(context, 'marked', one, DUE, NOW - 3 * MINUTE)
      await leave(context, 'overdue', one, NOW - 7 * MINUTE)
      await leave(context, 'of the second', two, DUE, NOW - 5 * MINUTE)
      await leave(context, 'just now', two, NOW)
      await leave(context, 'later', one, NOW + 1000)
      await leave(context, 'at rest', one, null)
      await leave(context, 'foreign', foreign)
      await createLog(driver, logKey(context.tenant, 'without a program'), { index: { wakeAt: DUE } })
      const page = await take(driver, [one, two, one])
      assert.deepEqual(names(page), ['overdue', 'of the second', 'marked', 'just now'])
      assert.equal(page.more, false)
      assert.equal(page.heads[2]?.index.metadata[PROGRAM_LABEL], one)
      assert.deepEqual(names(await take(driver, ['fake'])), [], 'a label of the user that only looks like it is none')
      assert.deepEqual(names(await take(driver, [])), [])
    },
  },
  {
    name: 'gives what is due of one tenant only, if asked to',
    exempt,
    async run(context) {
      const program = newProgram()
      const other = { ...context, tenant: `${context.tenant}-2` as typeof context.tenant }
      await leave(context, 'ours', program)
      await leave(other, 'theirs', program)
      const page = await take(context.driver, [program], { tenant: context.tenant })
      assert.deepEqual(names(page), ['ours'])
      assert.deepEqual(names(await take(context.driver, [program])), ['theirs'])
    },
  },
  {
    name: 'finds programs of any name',
    exempt,
    async run(context) {
      const start = newProgram()
      for (const name of [
        `${start} a]b`,
        `${start} "quoted"`,
        `${start} ${String.fromCharCode(92)}`,
        `${start} 🦀 %41`,
      ]) {
        await leave(context, name, name)
        assert.deepEqual(names(await take(context.driver, [name])), [name])
      }
    },
  },
  {
    name: 'keeps what it gave from others until something is written to it',
    exempt,
    async run(context) {
      const { driver, open } = context
      const program = newProgram()
      const other = await open()
      const ends = { a: await leave(context, 'a', program), b: await leave(context, 'b', program) }
      const [one] = names(await take(driver, [program], { limit: 1 })) as ('a' | 'b')[]
      assert.ok(one === 'a' || one === 'b')
      const two = one === 'a' ? 'b' : 'a'
      assert.deepEqual(names(await take(other, [program])), [two])
      const none = await take(other, [program])
      assert.deepEqual(names(none), [])
      assert.ok(none.nextMs !== null && none.nextMs > 0, `the next is free in ${none.nextMs} ms`)
      assert.ok(none.nextMs <= LONG_MS, `the next is free in ${none.nextMs} ms`)
      const index = { wakeAt: DUE, updatedAt: NOW, metadata: { [PROGRAM_LABEL]: program } }
      await mustAppend(other, makeAppend(logKey(context.tenant, one), ends[one], { index }))
      assert.deepEqual(names(await take(other, [program])), [one])
    },
  },
  {
    name: 'gives again what nobody wrote to when the time it was kept for is over',
    exempt,
    async run(context) {
      const program = newProgram()
      await leave(context, 'a', program)
      assert.deepEqual(names(await take(context.driver, [program], { reserveMs: SHORT_MS })), ['a'])
      await context.advance(PAST_SHORT_MS)
      assert.deepEqual(names(await take(context.driver, [program])), ['a'])
    },
  },
  {
    name: 'passes over what somebody holds, and says when the next may be due',
    exempt,
    async run(context) {
      const { driver } = context
      const program = newProgram()
      assert.equal((await take(driver, [program])).nextMs, null)
      await leave(context, 'sleeper', program, NOW + 50_000)
      assert.equal((await take(driver, [program])).nextMs, 50_000)
      const at = await leave(context, 'held', program)
      const index = { wakeAt: DUE, updatedAt: NOW, metadata: { [PROGRAM_LABEL]: program } }
      const lease = { kind: 'claim', owner: 'worker', ms: 20_000, force: false } as const
      const held = await mustAppend(driver, makeAppend(logKey(context.tenant, 'held'), at, { index, lease }))
      const page = await take(driver, [program])
      assert.deepEqual(names(page), [])
      assert.ok(page.nextMs !== null && page.nextMs > 0 && page.nextMs <= 20_000, `${page.nextMs} ms`)
      await driver.renew(logKey(context.tenant, 'held'), held.incarnation, held.epoch, 0)
      assert.deepEqual(names(await take(driver, [program])), ['held'])
    },
  },
  {
    name: 'gives no more than asked for, and says that there is more',
    exempt,
    async run(context) {
      const program = newProgram()
      for (let i = 0; i < 5; i++) await leave(context, `t${i}`, program, DUE, NOW + i * MINUTE)
      const found: string[] = []
      for (let rounds = 0; found.length < 5; rounds++) {
        assert.ok(rounds < 20, 'all are given in the end')
        const page = await take(context.driver, [program], { limit: 2 })
        assert.ok(page.heads.length <= 2)
        assert.ok(page.more || found.length + page.heads.length === 5)
        found.push(...names(page))
      }
      assert.deepEqual(found.sort(), ['t0', 't1', 't2', 't3', 't4'])
      assert.deepEqual(names(await take(context.driver, [program])), [])
    },
  },
  {
    name: 'forgets what was erased or is no longer due',
    exempt,
    async run(context) {
      const { driver, tenant } = context
      const program = newProgram()
      const at = await leave(context, 'done', program)
      await leave(context, 'erased', program)
      const index = { wakeAt: null, updatedAt: NOW, metadata: { [PROGRAM_LABEL]: program } }
      await mustAppend(driver, makeAppend(logKey(tenant, 'done'), at, { index }))
      await driver.erase({ tenant, thread: logKey(tenant, 'erased').thread, tombstone: null })
      assert.deepEqual(await take(driver, [program]), { heads: [], more: false, nextMs: null })
    },
  },
  {
    name: 'gives each to one of many who ask at the same moment',
    exempt,
    async run(context) {
      const program = newProgram()
      const all = Array.from({ length: 40 }, (_, i) => `t${String(i).padStart(2, '0')}`)
      for (const thread of all) await leave(context, thread, program)
      const drivers = [context.driver, await context.open(), await context.open()]
      const found: string[] = []
      for (let rounds = 0; found.length < all.length; rounds++) {
        assert.ok(rounds < 100, 'all are given in the end')
        const pages = await Promise.all(drivers.map((driver) => take(driver, [program], { limit: 5 })))
        found.push(...pages.flatMap(names))
      }
      assert.deepEqual(found.sort(), all)
    },
  },
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
