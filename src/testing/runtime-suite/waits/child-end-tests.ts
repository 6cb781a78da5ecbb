import assert from 'node:assert/strict'
import { flow, isHoldfastError } from '../../../index.js'
import { above, asker, asks, between, childrenOf, double, statusOf, waits } from './child-programs.js'
import { expectStatus, named, type RuntimeTest } from '../runtime-context.js'

/** What failures, cancellations, forks and erasures on one side mean on the other. */
export const childEndTests: readonly RuntimeTest[] = [
  {
    name: 'throws what a child failed of, with its thread, and resumes the child when it is resumed',
    async run({ hf }) {
      let calls = 0
      const broken = flow<number, number>(named('broken'), async (ctx, n) => {
        await ctx.step('before', () => void calls++)
        return ctx.step('flaky', { retry: { attempts: 1 } }, () => {
          if (n > 0) throw new Error('no luck')
          return 7
        })
      })
      const seen: unknown[] = []
      const parent = flow<number, unknown>(named('parent'), async (ctx, n) => {
        try {
          return await ctx.run(broken, 'b', n)
        } catch (error) {
          if (!isHoldfastError(error, 'child-failed')) throw error
          const { thread, status, step } = error.data
          seen.push([typeof thread, status, step, /no luck/.test(error.message)])
          throw error
        }
      })
      const thread = hf.thread(parent, 't')
      const { error } = expectStatus(await thread.run({ input: 1 }), 'failed')
      assert.deepEqual([error.code, error.step], ['child-failed', 'child[b]'])
      assert.deepEqual(seen, [['string', 'failed', 'child[b]', true]])
      const [child] = await childrenOf(hf, 't')
      // It is tried again with its parent, from where it was.
      expectStatus(await thread.run(), 'failed')
      assert.deepEqual(seen.length, 2)
      assert.deepEqual([(await childrenOf(hf, 't')).length, calls], [1, 1])
      const { state } = (await hf.log(child ?? '')).fold
      assert.equal((state as { run: { takes: number } }).run.takes, 2)
    },
  },
  {
    name: 'gives a program that caught the failure of a child the same failure when it is called again',
    async run({ hf }) {
      const broken = flow<number, number>(named('broken'), async () => {
        throw new Error('no luck')
      })
      const told: string[] = []
      const parent = flow<number, unknown>(named('parent'), async (ctx, n) => {
        const why = await ctx.run(broken, 'b', n).catch((error: Error) => error.message)
        told.push(why as string)
        return [why, await ctx.receive('go')]
      })
      const thread = hf.thread(parent, 't')
      expectStatus(await thread.run({ input: 1 }), 'paused')
      await thread.signal('go', 1)
      expectStatus(await thread.run(), 'completed')
      assert.ok(told.length >= 2)
      assert.equal(new Set(told).size, 1)
      assert.equal((await childrenOf(hf, 't')).length, 1)
      assert.equal((await thread.replay()).status, 'identical')
    },
  },
  {
    name: 'cancels the children of a cancelled run, and those below them',
    async run({ hf, other }) {
      const thread = hf.thread(above, 't')
      expectStatus(await thread.run({ input: 'x' }), 'paused')
      const [middle = ''] = await childrenOf(hf, 't')
      const [lowest = ''] = await childrenOf(hf, middle)
      const elsewhere = await other()
      assert.equal(await elsewhere.inspect('t').cancel({ reason: 'not needed', by: 'ann' }), true)
      for (const id of ['t', middle, lowest]) {
        assert.deepEqual(await statusOf(hf, id), ['failed', null, null], id)
        const { run } = (await hf.log(id)).fold.state as { run: { status: string; error: { message: string } } }
        assert.equal(run.status, 'cancelled')
        assert.match(run.error.message, /not needed/)
      }
    },
  },
  {
    name: 'throws where only the child was cancelled, and begins it anew when it is resumed',
    async run({ hf }) {
      const thread = hf.thread(between, 't')
      expectStatus(await thread.run({ input: 'x' }), 'paused')
      const [child = ''] = await childrenOf(hf, 't')
      await hf.inspect(child).cancel({ reason: 'wrong way' })
      const { error } = expectStatus(await thread.run(), 'failed')
      assert.equal(error.code, 'child-failed')
      assert.match(error.message, /was cancelled.*wrong way/)
      expectStatus(await thread.run(), 'paused')
      assert.deepEqual(await childrenOf(hf, 't'), [child])
      const { run } = (await hf.log(child)).fold.state as { run: { number: number; status: string } }
      assert.deepEqual([run.number, run.status], [2, 'running'])
      await hf.inspect(child).signal('never', 'after all')
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'after all')
    },
  },
  {
    name: 'cancels a child that its run ended without',
    async run({ hf }) {
      const parent = flow<number, unknown>(named('parent'), async (ctx, n) =>
        Promise.race([ctx.run(double, 'quick', n), ctx.run(waits, 'slow', 'x')]),
      )
      assert.equal(expectStatus(await hf.thread(parent, 't').run({ input: 2 }), 'completed').output, 4)
      const slow = (await childrenOf(hf, 't')).find((id) => id.includes('slow')) ?? ''
      assert.deepEqual(await statusOf(hf, slow), ['failed', null, null])
    },
  },
  {
    name: 'a fork takes what its children had brought, and begins its own where one was under way',
    async run({ hf }) {
      const parent = flow<number, unknown>(named('parent'), async (ctx, n) => [
        await ctx.run(double, 'done', n),
        await ctx.run(waits, 'open', 'x'),
      ])
      const thread = hf.thread(parent, 't')
      expectStatus(await thread.run({ input: 4 }), 'paused')
      const before = await childrenOf(hf, 't')
      const [newest] = await thread.history({ limit: 1, all: true })
      const fork = await thread.at(newest?.id ?? '').fork({ name: 'what-if', effects: 'allow' })
      const { waiting } = expectStatus(await fork.run(), 'paused')
      const after = await childrenOf(hf, 't')
      const own = after.filter((id) => !before.includes(id))
      assert.deepEqual([own.length, waiting.map((wait) => wait.kind === 'child' && wait.thread)], [1, own])
      await hf.inspect(own[0] ?? '').signal('never', 'mine')
      assert.deepEqual(expectStatus(await fork.run(), 'completed').output, [8, 'mine'])
      // The original still waits for its own.
      expectStatus(await thread.run(), 'paused')
      const first = before.find((id) => id.includes('open')) ?? ''
      await hf.inspect(first).signal('never', 'yours')
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, [8, 'yours'])
      // A fork asks before it begins anything.
      const careful = await thread.at(newest?.id ?? '').fork({ name: 'careful' })
      const asked = expectStatus(await careful.run(), 'paused')
      assert.deepEqual(
        asked.pauses.map(({ kind }) => kind),
        ['permission'],
      )
      assert.equal((await childrenOf(hf, 't')).length, 3)
    },
  },
  {
    name: 'a fork of a child tells its parent nothing',
    async run({ hf }) {
      const thread = hf.thread(asker, 't')
      expectStatus(await thread.run({ input: 'sure?' }), 'paused')
      const [id = ''] = await childrenOf(hf, 't')
      const child = hf.thread(asks, id)
      const [newest] = await child.history({ limit: 1, all: true })
      const fork = await child.at(newest?.id ?? '').fork({ name: 'other' })
      const { pauses } = expectStatus(await fork.run(), 'paused')
      await fork.answer(pauses[0]?.id ?? '', 'no')
      expectStatus(await fork.run(), 'completed')
      const [open] = await child.pauses()
      await child.answer(open?.id ?? '', 'yes')
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'said yes')
    },
  },
  {
    name: 'tells a run that the thread it awaits was erased, and erases the children of an erased thread',
    async run({ hf }) {
      const thread = hf.thread(between, 't')
      expectStatus(await thread.run({ input: 'x' }), 'paused')
      const [child = ''] = await childrenOf(hf, 't')
      await hf.erase(child)
      assert.match(expectStatus(await thread.run(), 'failed').error.message, /erased/)
      const other = hf.thread(above, 'o')
      expectStatus(await other.run({ input: 'x' }), 'paused')
      await hf.erase('o')
      const { threads } = await hf.threads()
      assert.deepEqual(
        threads.map((one) => one.thread),
        ['t'],
      )
    },
  },
]
