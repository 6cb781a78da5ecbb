import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import {
  count,
  DAY,
  entriesOf,
  expectStatus,
  gate,
  named,
  refuses,
  type RuntimeTest,
  takeOver,
} from '../runtime-context.js'

const listener = flow<number, unknown[]>(named('listener'), async (ctx, n) => {
  const got: unknown[] = []
  for (let i = 0; i < n; i++) got.push((await ctx.receive('news')) ?? null)
  return got
})

export const waitTests: readonly RuntimeTest[] = [
  {
    name: 'receives signals in order, each once, also those that came before it waited',
    async run({ hf, other }) {
      const thread = hf.thread(listener, 't')
      const { waiting } = expectStatus(await thread.run({ input: 4 }), 'paused')
      assert.deepEqual(waiting, [{ kind: 'signal', step: 'receive news[0]', name: 'news' }])
      const sender = (await other()).inspect('t')
      await sender.signal('news', { n: 1 })
      await sender.signal('other', 'not for us')
      await sender.signal('news', 2)
      expectStatus(await thread.run(), 'paused')
      await sender.signal('news')
      await sender.signal('news', [4])
      await sender.signal('news', 'too many')
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, [{ n: 1 }, 2, null, [4]])
      const next = expectStatus(await thread.run({ input: 1 }), 'completed')
      assert.deepEqual(next.output, ['too many'])
    },
  },
  {
    name: 'receives a signal once that was sent again with its key, also after it was received',
    async run({ hf, other }) {
      const thread = hf.thread(listener, 't')
      await thread.run({ input: 3 })
      const sender = (await other()).inspect('t')
      assert.deepEqual(await thread.signal('news', 1, { key: 'd-1' }), { signal: 'sent' })
      assert.deepEqual(await sender.signal('news', 'again', { key: 'd-1' }), { signal: 'known' })
      expectStatus(await thread.run(), 'paused')
      assert.deepEqual(await sender.signal('news', 'again', { key: 'd-1' }), { signal: 'known' })
      assert.deepEqual(await sender.signal('other', 2, { key: 'd-1' }), { signal: 'sent' })
      await sender.signal('news', 2, { key: 'd-2' })
      await sender.signal('news', 3)
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, [1, 2, 3])
      assert.deepEqual(await sender.signal('news', 'again', { key: 'd-1' }), { signal: 'known' })
      await refuses(() => sender.signal('news', 1, { key: '' }), 'invalid-value')
    },
  },
  {
    name: 'goes on with undefined when no signal came in time',
    async run({ hf, clock }) {
      const program = flow<number, unknown>(named('patience'), async (ctx) => [
        (await ctx.receive('news', { timeoutMs: DAY })) === undefined,
        await ctx.receive('news'),
      ])
      const thread = hf.thread(program, 't')
      const { wakeAt } = expectStatus(await thread.run({ input: 1 }), 'paused')
      assert.ok(wakeAt)
      clock.skip(DAY + 1000)
      expectStatus(await thread.run(), 'paused')
      await thread.signal('news', 'late')
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, [true, 'late'])
    },
  },
  {
    name: 'wakes a waiting thread by its signal, and only then',
    async run({ hf }) {
      const thread = hf.thread(listener, 't')
      await thread.run({ input: 1 })
      const wakeAt = async () => (await hf.threads()).threads[0]?.wakeAt
      assert.equal(await wakeAt(), null)
      await thread.signal('news', 1)
      assert.ok((await wakeAt()) instanceof Date)
      await thread.run()
      assert.equal(await wakeAt(), null)
    },
  },
  {
    name: 'checks what it receives by the schema of the program',
    async run({ hf }) {
      const program = flow<number, unknown>(named('strict'), (ctx) => ctx.receive('n', { schema: count }))
      const thread = hf.thread(program, 't')
      await thread.run({ input: 1 })
      await thread.signal('n', -1)
      const { error } = expectStatus(await thread.run(), 'failed')
      assert.equal(error.code, 'invalid-value')
    },
  },
  {
    name: 'asks a question, holds nothing while nobody answers, and goes on with the first answer',
    async run({ hf, other }) {
      const program = flow<string, string>(named('asks'), async (ctx, item) => {
        const price = await ctx.step('price', () => 5)
        return ctx.pause<string>({ buy: item, price })
      })
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 'hat' }), 'paused')
      const [pause] = pauses
      assert.deepEqual([pause?.kind, pause?.question], ['question', { buy: 'hat', price: 5 }])
      assert.deepEqual(
        (await hf.threads()).threads.map(({ status, claimedBy }) => [status, claimedBy]),
        [['waiting_human', null]],
      )
      const someone = (await other()).inspect('t')
      assert.deepEqual(await someone.pauses(), pauses)
      await someone.answer(pause?.id ?? '', 'yes', { by: 'Ada' })
      const late = await refuses(() => thread.answer(pause?.id ?? '', 'no'), 'pause-closed')
      assert.deepEqual([late.data['reason'], late.data['by']], ['answered', 'Ada'])
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'yes')
      const over = await refuses(() => thread.answer(pause?.id ?? '', 'no'), 'pause-closed')
      assert.equal(over.data['reason'], 'answered')
    },
  },
  {
    name: 'checks answers by the stored schema, without the program, and writes none that does not fit',
    async run({ hf, other }) {
      const jsonSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
      const program = flow<number, unknown>(named('strict'), (ctx) => ctx.pause('n?', { jsonSchema }))
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 1 }), 'paused')
      assert.deepEqual(pauses[0]?.schema, jsonSchema)
      const view = (await other()).inspect('t')
      const entries = await entriesOf(hf, 't')
      await refuses(() => view.answer(pauses[0]?.id ?? '', { n: 'x' }), 'invalid-value')
      await refuses(() => view.answer('p-unknown', { n: 1 }), 'not-found')
      assert.equal(await entriesOf(hf, 't'), entries)
      await view.answer(pauses[0]?.id ?? '', { n: 5 })
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, { n: 5 })
    },
  },
  {
    name: 'lets a question expire to its default, or to a failure',
    async run({ hf, clock }) {
      const program = flow<boolean, unknown>(named('expires'), (ctx, byDefault) =>
        ctx.pause('still there?', { expiresInMs: DAY, ...(byDefault ? { onExpire: { answer: 'no' } } : {}) }),
      )
      const [calm, strict] = [hf.thread(program, 'calm'), hf.thread(program, 'strict')]
      const { pauses, wakeAt } = expectStatus(await calm.run({ input: true }), 'paused')
      expectStatus(await strict.run({ input: false }), 'paused')
      assert.deepEqual(wakeAt, pauses[0]?.expiresAt)
      clock.skip(DAY + 1000)
      const late = await refuses(() => calm.answer(pauses[0]?.id ?? '', 'yes'), 'pause-closed')
      assert.equal(late.data['reason'], 'expired')
      assert.equal(expectStatus(await calm.run(), 'completed').output, 'no')
      assert.equal(expectStatus(await strict.run(), 'failed').error.code, 'pause-closed')
    },
  },
  {
    name: 'gives each of several waits its own by its key, in whatever order they come back after a crash',
    async run({ hf, mortal }) {
      const seen: string[][] = []
      const begun = gate()
      const waits = (order: readonly string[], hangs: boolean) =>
        flow<string, string[]>(named('keyed'), async (ctx, input) => {
          if (input === 'begin') return []
          const lines = order.map(async (key) => {
            await ctx.step(key, () => key)
            const news = await ctx.receive<string>('constructor', { key })
            return `${key}: ${news}`
          })
          const both = (await Promise.all(lines)).sort()
          seen.push(both)
          if (hangs) await ctx.step('hang', () => (begun.open(), new Promise(() => {})))
          return both
        })
      const dying = mortal()
      const first = dying.hf.thread(waits(['a', 'b'], true), 't')
      await first.run({ input: 'begin' })
      for (const value of ['one', 'two']) await first.signal('constructor', value)
      const dead = first.run({ input: 'go', leaseMs: 1000 }).catch(() => {})
      await begun.passed
      dying.die()
      await dead
      await takeOver(hf, 't')
      const { output } = expectStatus(await hf.thread(waits(['b', 'a'], false), 't').run(), 'completed')
      assert.deepEqual(seen, [output, output])
      assert.deepEqual(output.map((line) => line.split(': ')[1]).sort(), ['one', 'two'])
    },
  },
  {
    name: 'refuses waits of branches that only the order of arrival would tell apart',
    async run({ hf }) {
      const program = flow<number, unknown>(named('unkeyed'), (ctx) =>
        Promise.all(
          ['a', 'b'].map(async (name) => {
            await ctx.step(name, () => name)
            return ctx.receive('news')
          }),
        ),
      )
      const { error } = expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'failed')
      assert.equal(error.code, 'invalid-program')
      assert.match(error.message, /key/)
    },
  },
  {
    name: 'asks side by side and goes on when all that it waits for is answered',
    async run({ hf }) {
      let between = 0
      const program = flow<number, string[]>(named('two'), (ctx) =>
        Promise.all(
          ['a', 'b'].map(async (key) => {
            const answer = await ctx.pause<string>(`${key}?`, { key })
            await ctx.step(key, () => between++)
            return answer
          }),
        ),
      )
      const thread = hf.thread(program, 't')
      const first = expectStatus(await thread.run({ input: 1 }), 'paused')
      assert.deepEqual(first.pauses.map(({ question }) => question).sort(), ['a?', 'b?'])
      const [a, b] = ['a?', 'b?'].map((text) => first.pauses.find(({ question }) => question === text)?.id ?? '')
      await thread.answer(b ?? '', 'B')
      const second = expectStatus(await thread.run(), 'paused')
      assert.deepEqual([second.pauses.length, between], [1, 1])
      await thread.answer(a ?? '', 'A')
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, ['A', 'B'])
      assert.equal(between, 2)
    },
  },
  {
    name: 'rests for whoever waits for it from another process',
    async run({ hf, other }) {
      const thread = hf.thread(listener, 't')
      const watcher = (await other()).inspect('t')
      const waiting = watcher.waitFor({ timeoutMs: 20_000 })
      await thread.run({ input: 1 })
      assert.equal((await waiting).status, 'paused')
      await thread.signal('news', 'x')
      // What it waited for has come: it does not rest, though nobody has taken it up yet.
      const answered = watcher.waitFor({ timeoutMs: 20_000 })
      await refuses(() => watcher.waitFor({ timeoutMs: 0 }), 'timeout')
      const again = thread.run()
      assert.deepEqual(expectStatus(await again, 'completed').output, ['x'])
      assert.equal((await answered).status, 'completed')
      await refuses(() => hf.inspect('nobody').waitFor({ timeoutMs: 1 }), 'not-found')
      await refuses(() => watcher.waitFor({ timeoutMs: Number.NaN }), 'invalid-option')
    },
  },
]
