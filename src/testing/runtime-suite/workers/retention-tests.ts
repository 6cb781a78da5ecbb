import assert from 'node:assert/strict'
import { append, END, flow, graph, type Holdfast, START, type ThreadIdInput } from '../../../index.js'
import { names, talk } from './retention-fixtures.js'
import { DAY, dies, expectStatus, gate, named, refuses, type RuntimeTest } from '../runtime-context.js'

const asks = flow<string, unknown>(named('asks'), (ctx, question) => ctx.pause(question))
const fails = flow<string, string>(named('fails'), () => {
  throw new Error('no')
})

async function expiryOf(hf: Holdfast, thread: ThreadIdInput, branch = 'main'): Promise<Date | null | undefined> {
  const { threads } = await hf.threads({ thread, branch })
  return threads[0]?.expiresAt
}

/** How long retention policies keep a thread, and what they never take. */
export const retentionTests: readonly RuntimeTest[] = [
  {
    name: 'lets a thread expire 7 days after its last use, and says so when it is used again',
    async run({ hf, clock }) {
      const thread = hf.thread(talk, 't')
      const before = clock.now()
      await thread.run({ input: { said: 'hello' } })
      const first = await expiryOf(hf, 't')
      assert.ok(first && Math.abs(first.getTime() - before - 7 * DAY) < DAY / 2, `${first?.toISOString()} is in 7 days`)
      clock.skip(6 * DAY)
      assert.equal((await hf.sweep()).threads, 0)
      await thread.run({ input: { said: 'again' } })
      assert.ok(((await expiryOf(hf, 't')) as Date) > first, 'use extends its life')
      clock.skip(6 * DAY)
      assert.equal((await hf.sweep()).threads, 0)
      clock.skip(2 * DAY)
      const swept = await hf.sweep()
      assert.deepEqual([swept.threads, swept.entries > 0, swept.bytes > 0], [1, true, true])
      assert.deepEqual(await names(hf), [])
      assert.equal((await hf.tombstone('t'))?.reason, 'expired')
      const outcome = await thread.run({ input: { said: 'back' }, expect: 'existing' })
      assert.deepEqual([outcome.status, outcome.restarted], ['completed', true])
      assert.equal((await hf.sweep()).threads, 0)
    },
  },
  {
    name: 'keeps what is open, however old: a question, a run that was interrupted, input that waits, a held lease',
    async run({ hf, clock, mortal }) {
      await hf.thread(asks, 'asks').run({ input: '?' })
      await hf.thread(talk, 'waits').enqueue({ said: 'hello' })
      const { hf: victim, die } = mortal()
      const hangs = flow<null, null>(named('hangs'), (ctx) =>
        ctx.step('hang', () => {
          die()
          throw new Error('died')
        }),
      )
      await dies(victim.thread(hangs, 'left').run({ input: null }))
      const begun = gate()
      const ended = gate()
      const slow = flow<null, null>(named('slow'), async (ctx) => {
        await ctx.step('wait', async () => {
          begun.open()
          await ended.passed
        })
        return null
      })
      const running = hf.thread(slow, 'runs').run({ input: null })
      await begun.passed
      clock.skip(1000 * DAY)
      assert.equal((await hf.sweep({ retention: { ttlMs: 1, existing: true } })).threads, 0)
      assert.deepEqual(await names(hf), ['asks main', 'left main', 'runs main', 'waits main'])
      ended.open()
      expectStatus(await running, 'completed')
      const [pause] = await hf.inspect('asks').pauses()
      await hf.inspect('asks').answer(pause?.id ?? '', 'late')
      assert.equal((await hf.sweep({ retention: { ttlMs: DAY, existing: true } })).threads, 0)
      assert.equal(expectStatus(await hf.thread(asks, 'asks').run(), 'completed').output, 'late')
      clock.skip(8 * DAY)
      assert.equal((await hf.sweep()).threads, 2)
      assert.deepEqual(await names(hf), ['left main', 'waits main'])
    },
  },
  {
    name: 'keeps a failed run for as long as a completed one, and one that asks until it is answered',
    async run({ hf, clock }) {
      await hf.thread(fails, 'fails').run({ input: 'x' })
      const both = graph({ ...named('both'), state: { n: append<number>() } })
        .node('asks', async (_state, ctx) => {
          await ctx.pause('?')
        })
        .node('fails', () => {
          throw new Error('no')
        })
        .edge(START, 'asks')
        .edge(START, 'fails')
        .edge('asks', END)
        .edge('fails', END)
      expectStatus(await hf.thread(both, 'both').run({ input: {} }), 'failed')
      clock.skip(6 * DAY)
      assert.equal((await hf.sweep()).threads, 0)
      clock.skip(2 * DAY)
      assert.equal((await hf.sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['both main'])
    },
  },
  {
    name: 'keeps a tagged thread, and a thread for as long as one of its branches lives',
    async run({ hf, clock }) {
      const thread = hf.thread(talk, 't')
      await thread.run({ input: { said: 'one' } })
      await hf.thread(talk, 'tagged').run({ input: { said: 'one' } })
      await (await hf.log('tagged')).tag('release')
      clock.skip(6 * DAY)
      const [newest] = await thread.history({ limit: 1 })
      await thread.at(newest?.id ?? '').fork({ name: 'side' })
      clock.skip(2 * DAY)
      assert.equal((await hf.sweep()).threads, 0)
      assert.deepEqual(await names(hf), ['t main', 't side', 'tagged main'])
      clock.skip(6 * DAY)
      assert.equal((await hf.sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['tagged main'])
      await (await hf.log('tagged')).untag('release')
      assert.equal((await hf.sweep()).threads, 0)
      clock.skip(8 * DAY)
      assert.equal((await hf.sweep()).threads, 1)
    },
  },
  {
    name: 'leaves alone what was begun under no policy, until one names it',
    async run({ hf, opened, clock }) {
      const keeping = opened({ retention: 'keep' })
      await keeping.thread(talk, 'old').run({ input: { said: 'one' } })
      assert.equal(await expiryOf(hf, 'old'), null)
      clock.skip(100 * DAY)
      // Used again under a policy: it was not begun there.
      await hf.thread(talk, 'old').run({ input: { said: 'two' } })
      assert.equal(await expiryOf(hf, 'old'), null)
      await hf.thread(talk, 'new').run({ input: { said: 'one' } })
      clock.skip(100 * DAY)
      assert.equal((await keeping.sweep()).threads, 0)
      assert.equal((await hf.sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['old main'])
      const named = { ttlMs: 30 * DAY, existing: true }
      assert.equal((await hf.sweep({ retention: named, metadata: { 'holdfast.program': 'other' } })).threads, 0)
      const counted = await hf.sweep({ retention: named, dryRun: true })
      assert.deepEqual([counted.dryRun, counted.threads, counted.bytes > 0], [true, 1, true])
      assert.deepEqual(await names(hf), ['old main'])
      assert.deepEqual(await opened({ retention: named }).sweep(), { ...counted, dryRun: false })
      assert.deepEqual(await names(hf), [])
    },
  },
  {
    name: 'goes by the thread, else its program, else the store; and a longer life given later holds',
    async run({ hf, opened, clock }) {
      const brief = flow<string, string>({ ...named('brief'), retention: { ttlMs: DAY } }, (_ctx, said) => said)
      const kept = flow<string, string>({ ...named('kept'), retention: 'keep' }, (_ctx, said) => said)
      await hf.thread(brief, 'brief').run({ input: 'x' })
      await hf.thread(kept, 'kept').run({ input: 'x' })
      await hf.thread(brief, 'own', { retention: { ttlMs: 30 * DAY } }).run({ input: 'x' })
      // Recorded: whoever runs it next need not know.
      await hf.thread(brief, 'own').run({ input: 'y' })
      await hf.thread(talk, 'plain').run({ input: { said: 'x' } })
      await hf.thread(talk, 'set').run({ input: { said: 'x' } })
      await hf.inspect('set').setRetention('keep')
      assert.equal(await expiryOf(hf, 'set'), null)
      clock.skip(2 * DAY)
      assert.equal((await opened({ retention: { ttlMs: 90 * DAY } }).sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['kept main', 'own main', 'plain main', 'set main'])
      clock.skip(10 * DAY)
      assert.equal((await opened({ retention: { ttlMs: 90 * DAY } }).sweep()).threads, 0)
      assert.equal((await hf.sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['kept main', 'own main', 'set main'])
      clock.skip(30 * DAY)
      assert.equal((await hf.sweep()).threads, 1)
      assert.deepEqual(await names(hf), ['kept main', 'set main'])
      await hf.inspect('set').setRetention({ ttlMs: DAY })
      clock.skip(2 * DAY)
      assert.equal((await hf.sweep()).threads, 1)
    },
  },
  {
    name: 'is refused where it makes no sense, with the words that do',
    async run({ hf, opened }) {
      for (const retention of [
        7,
        'never',
        [],
        { ttlMs: 0 },
        { ttlMs: '7d' },
        { keepLast: 0 },
        { ttl: 1 },
        { existing: true },
      ])
        await refuses(() => opened({ retention: retention as never }), 'invalid-option')
      const error = await refuses(() => hf.thread(talk, 't', { retention: { keep: 3 } as never }), 'invalid-option')
      assert.match(error.message, /keepLast/)
    },
  },
]
