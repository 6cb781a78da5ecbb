import assert from 'node:assert/strict'
import { DUE, PROGRAM_LABEL } from '../../../log/contract.js'
import { makeAppend, mustAppend } from '../../entries.js'
import { exempt, leave, MINUTE, names, newProgram, NOW, take } from './due-fixtures.js'
import { createLog, logKey, LONG_MS, PAST_SHORT_MS, SHORT_MS, type SuiteTest } from '../suite-context.js'

/** What is due is given to one who asks, and kept for that one. */
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
]
