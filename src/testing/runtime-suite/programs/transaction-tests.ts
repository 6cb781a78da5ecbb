import assert from 'node:assert/strict'
import { flow, type Holdfast } from '../../../index.js'
import { dies, expectStatus, named, type RuntimeTest, takeOver } from '../runtime-context.js'

/** One that no other test counts the rows of: suites of several configurations may share a database and a process. */
const newTable = () => `runtime_suite_${process.pid}_${Math.random().toString(36).slice(2, 10)}`

const program = (table: string, owner: string, onLast: () => unknown = () => {}) =>
  flow<number, unknown>(named('books'), async (ctx, amount) => {
    const booked = await ctx.transaction('book', { input: amount }, async (sql) => {
      await sql.query(`create table if not exists ${table} (owner text, amount integer)`)
      await sql.query(`insert into ${table} values ('${owner}', ${amount})`)
      const { rows } = await sql.query<{ n: unknown }>(`select count(*) as n from ${table} where owner = '${owner}'`)
      return Number(rows[0]?.n)
    })
    await ctx.step('last', { retry: { attempts: 1 } }, onLast)
    return booked
  })

export const transactionTests: readonly RuntimeTest[] = [
  {
    name: 'commit the SQL of a step with its record, exactly once, where the backend has transactions',
    async run({ hf, mortal }) {
      if (!hf.capabilities.transactions) return lacks(hf)
      const table = newTable()
      const { hf: victim, die } = mortal()
      const dying = program(table, 'crash', () => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: 5 }))
      await takeOver(hf, 't')
      assert.equal(expectStatus(await hf.thread(program(table, 'crash'), 't').run(), 'completed').output, 1)
      assert.equal(expectStatus(await hf.thread(program(table, 'crash'), 'u').run({ input: 7 }), 'completed').output, 2)
    },
  },
  {
    name: 'find out first about an effect that a step of the same name had begun in an earlier version',
    async run({ hf, mortal }) {
      if (!hf.capabilities.transactions) return lacks(hf)
      for (const happened of [true, false]) {
        let booked = 0
        const { hf: victim, die } = mortal()
        const before = flow<number, unknown>(named('moves'), (ctx, amount) =>
          ctx.step('book', { effect: 'once', input: amount }, () => {
            booked++
            die()
          }),
        )
        const after = flow<number, unknown>(named('moves'), (ctx, amount) =>
          ctx.transaction('book', { input: amount }, async () => `booked ${++booked} times`),
        )
        const id = `moves ${happened}`
        await dies(victim.thread(before, id).run({ input: 5 }))
        await takeOver(hf, id)
        const thread = hf.thread(after, id)
        const { pauses } = expectStatus(await thread.run(), 'paused')
        assert.deepEqual([pauses[0]?.kind, booked], ['unknown-effect', 1])
        const answer = happened ? { outcome: 'succeeded', result: 'booked' } : { outcome: 'not-executed' }
        await thread.answer(pauses[0]?.id ?? '', answer)
        const { output } = expectStatus(await thread.run(), 'completed')
        assert.equal(output, happened ? 'booked' : 'booked 2 times')
      }
    },
  },
  {
    name: 'are tried again when they fail, and fail in the same way for a program that went on from there',
    async run({ hf }) {
      if (!hf.capabilities.transactions) return lacks(hf)
      let tried = 0
      const retry = { attempts: 3, initialMs: 1 }
      const going = (fails: boolean) =>
        flow<number, unknown>(named('going on'), async (ctx) => {
          const once = await ctx.transaction(
            'late',
            {
              retry,
            },
            async () => ++tried > 1 || Promise.reject(new Error('late')),
          )
          const caught = await ctx
            .transaction('refused', { retry }, (sql) => sql.query('select * from no_such_table'))
            .catch(({ code, data }) => [code, data.step])
          if (fails) throw new Error('later')
          return [once, caught]
        })
      expectStatus(await hf.thread(going(true), 't').run({ input: 1 }), 'failed')
      assert.equal(tried, 2)
      const { output } = expectStatus(await hf.thread(going(false), 't').run(), 'completed')
      assert.deepEqual([output, tried], [[true, ['step-failed', 'refused']], 2])
    },
  },
  {
    name: 'leave nothing behind when their SQL fails, and the run says so',
    async run({ hf, calls }) {
      if (!hf.capabilities.transactions) return lacks(hf)
      const table = newTable()
      const bad = flow<number, unknown>(named('bad'), async (ctx) => {
        await ctx.transaction('table', (sql) =>
          sql.query(`create table if not exists ${table} (owner text, amount integer)`).then(() => 1),
        )
        return ctx.transaction('bad', async (sql) => {
          await sql.query(`insert into ${table} values ('bad', 1)`)
          throw new RangeError('thought better of it')
        })
      })
      const { error } = expectStatus(await hf.thread(bad, 't').run({ input: 1 }), 'failed')
      assert.deepEqual([error.code, error.step], ['step-failed', 'bad'])
      assert.match(error.message, /thought better/)
      assert.ok(calls.transactions >= 2)
      const { output } = expectStatus(await hf.thread(program(table, 'bad'), 'u').run({ input: 1 }), 'completed')
      assert.equal(output, 1)
    },
  },
]

async function lacks(hf: Holdfast): Promise<void> {
  const { error } = expectStatus(await hf.thread(program(newTable(), 'none'), 't').run({ input: 1 }), 'failed')
  assert.equal(error.code, 'invalid-option')
  assert.match(error.message, /transact.*SQLite or Postgres/)
}
