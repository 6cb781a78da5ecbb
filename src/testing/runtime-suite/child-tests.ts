import assert from 'node:assert/strict'
import { END, flow, graph, type Holdfast, isHoldfastError, last, START, type ThreadIdInput } from '../../index.js'
import { expectStatus, gate, named, type RuntimeTest } from './runtime-context.js'

const double = flow<number, number>(named('double'), async (ctx, n) => ctx.step('double', () => n * 2))

/** Doubles twice, one after the other, on threads of their own. */
const fourfold = flow<number, number>(named('fourfold'), async (ctx, n) => {
  return ctx.run(double, 'second', await ctx.run(double, 'first', n))
})

const asks = flow<string, string>(named('asks'), async (ctx, what) => `${await ctx.pause({ what })}`)
const asker = flow<string, string>(named('asker'), async (ctx, what) => `said ${await ctx.run(asks, 'a', what)}`)

/** Waits for a signal that nobody sends, two threads below. */
const waits = flow<string, unknown>(named('waits'), async (ctx) => ctx.receive('never'))
const between = flow<string, unknown>(named('between'), async (ctx, what) => ctx.run(waits, 'below', what))
const above = flow<string, unknown>(named('above'), async (ctx, what) => ctx.run(between, 'between', what))

async function childrenOf(hf: Holdfast, parent: ThreadIdInput): Promise<readonly string[]> {
  return (await hf.threads({ parent })).threads.map(({ thread }) => thread as string).sort()
}

async function statusOf(hf: Holdfast, thread: ThreadIdInput): Promise<readonly unknown[]> {
  const [found] = (await hf.threads({ thread })).threads
  return [found?.status, found?.wakeAt, found?.claimedBy]
}

export const childTests: readonly RuntimeTest[] = [
  {
    name: 'runs other programs on threads of their own, without any worker, and goes on with what they gave back',
    async run({ hf }) {
      const outcome = expectStatus(await hf.thread(fourfold, 't').run({ input: 3 }), 'completed')
      assert.deepEqual([outcome.output, outcome.input], [12, 'taken'])
      const children = await childrenOf(hf, 't')
      assert.deepEqual(
        children.map((id) => id.replace(/~.*/, '')),
        ['t/first', 't/second'],
      )
      for (const id of [...children, 't']) assert.deepEqual(await statusOf(hf, id), ['completed', null, null])
      // Another run of the same thread has children of its own.
      assert.equal(expectStatus(await hf.thread(fourfold, 't').run({ input: 5 }), 'completed').output, 20)
      assert.equal((await childrenOf(hf, 't')).length, 4)
    },
  },
  {
    name: 'holds nothing while it waits, and is woken by the end of its child in another process',
    async run({ hf, other }) {
      const began = gate()
      const goOn = gate()
      const slow = flow<number, number>(named('slow'), async (ctx, n) => {
        return ctx.step('work', async () => {
          began.open()
          await goOn.passed
          return n + 1
        })
      })
      const parent = flow<number, number>(named('parent'), async (ctx, n) => ctx.run(slow, 'slow', n))
      await hf.thread(parent, 't').enqueue(1)
      const parents = hf.worker({ programs: [parent], concurrency: 1, handleSignals: false })
      const elsewhere = await other()
      const children = elsewhere.worker({ programs: [slow], concurrency: 1, handleSignals: false })
      try {
        await began.passed
        for await (const event of hf.inspect('t').events({ untilRest: false })) {
          if (event.type === 'run' && event.status === 'paused') break
        }
        assert.deepEqual(await statusOf(hf, 't'), ['waiting', null, null])
        const facts = (await hf.inspect('t').history({ limit: 1, all: true }))[0]
        const { run } = await hf
          .inspect('t')
          .look(facts?.id ?? '')
          .facts()
        const [wait] = run?.waiting ?? []
        assert.deepEqual([wait?.kind, wait?.step], ['child', 'child[slow]'])
        goOn.open()
        const outcome = expectStatus(await elsewhere.thread(parent, 't').waitFor(), 'completed')
        assert.equal(outcome.output, 2)
      } finally {
        goOn.open()
        await Promise.all([parents.stop(), children.stop()])
      }
    },
  },
  {
    name: 'waits for a child that waits for a person: its question is listed, and the outcome says which thread asks',
    async run({ hf, other }) {
      const thread = hf.thread(asker, 't')
      const { waiting, pauses } = expectStatus(await thread.run({ input: 'sure?' }), 'paused')
      assert.deepEqual(pauses, [])
      const [wait] = waiting
      assert.ok(wait?.kind === 'child')
      assert.equal(wait.program, 'asks')
      const elsewhere = await other()
      const open = (await elsewhere.pauses()).pauses
      assert.deepEqual(
        open.map((pause) => pause.thread),
        [wait.thread],
      )
      // Asked again, nothing changes and nothing is asked twice.
      expectStatus(await thread.run(), 'paused')
      expectStatus(await thread.waitFor(), 'paused')
      await elsewhere.inspect(wait.thread).answer(open[0]?.id ?? '', 'yes')
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'said yes')
    },
  },
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
    name: 'refuses a named thread that has other work, or waits for its turn there',
    async run({ hf }) {
      const on = (busy: 'reject' | 'queue' | undefined) =>
        flow<number, unknown>(named('on'), async (ctx, n) =>
          ctx.run(double, 'shared', n, { thread: 'shared', ...(busy ? { busy } : {}) }),
        )
      assert.equal(expectStatus(await hf.thread(on(undefined), 'a').run({ input: 1 }), 'completed').output, 2)
      // Another parent, and the same thread: its next run.
      assert.equal(expectStatus(await hf.thread(on(undefined), 'b').run({ input: 2 }), 'completed').output, 4)
      await hf.thread(waits, 'held').run({ input: 'x' })
      const held = (busy: 'reject' | 'queue') =>
        flow<number, unknown>(named('held'), async (ctx) => ctx.run(waits, 'w', 'y', { thread: 'held', busy }))
      const { error } = expectStatus(await hf.thread(held('reject'), 'c').run({ input: 1 }), 'failed')
      assert.match(error.message, /other work/)
      const queued = hf.thread(held('queue'), 'd')
      expectStatus(await queued.run({ input: 1 }), 'paused')
      await hf.inspect('held').cancel()
      expectStatus(await queued.run(), 'paused')
      await hf.inspect('held').signal('never', 'mine')
      assert.equal(expectStatus(await queued.run(), 'completed').output, 'mine')
      assert.deepEqual(await childrenOf(hf, 'd'), [])
    },
  },
  {
    name: 'refuses to await a thread that awaits it',
    async run({ hf }) {
      const self = flow<number, unknown>(named('self'), async (ctx, n) =>
        ctx.run(double, 'x', n, { thread: 't', busy: 'queue' }),
      )
      const { error } = expectStatus(await hf.thread(self, 't').run({ input: 1 }), 'failed')
      assert.equal(error.code, 'invalid-program')
      const up = flow<string, unknown>(named('up'), async (ctx) =>
        ctx.run(double, 'x', 1, { thread: 'u', busy: 'queue' }),
      )
      const down = flow<number, unknown>(named('down'), async (ctx) => ctx.run(up, 'y', 'z'))
      const failed = expectStatus(await hf.thread(down, 'u').run({ input: 1 }), 'failed')
      assert.match(failed.error.message, /neither would ever end/)
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
  {
    name: 'waits for a worker that has the program of a child, as any thread does',
    async run({ hf }) {
      const parent = flow<number, number>(named('parent'), async (ctx, n) => ctx.run(double, 'd', n))
      const thread = hf.thread(parent, 't')
      await thread.enqueue(5)
      const parents = hf.worker({ programs: [parent], handleSignals: false })
      for await (const event of thread.events({ untilRest: false })) {
        if (event.type === 'run' && event.status === 'paused') break
      }
      const [child = ''] = await childrenOf(hf, 't')
      assert.equal((await statusOf(hf, child))[0], 'active')
      const children = hf.worker({ programs: [double], handleSignals: false })
      assert.equal(expectStatus(await thread.waitFor(), 'completed').output, 10)
      await Promise.all([parents.stop(), children.stop()])
    },
  },
  {
    name: 'hands a child what is recorded of its context, unless it is given another',
    async run({ hf }) {
      const tells = flow<number, unknown>(named('tells'), async (ctx) => ctx.context ?? null)
      const parent = flow<number, unknown>({ ...named('parent'), transientContext: ['token'] }, async (ctx, n) => [
        await ctx.run(tells, 'a', n),
        await ctx.run(tells, 'b', n, { context: { region: 'us' } }),
      ])
      const context = { region: 'eu', token: 'secret' }
      const { output } = expectStatus(await hf.thread(parent, 't').run({ input: 1, context }), 'completed')
      assert.deepEqual(output, [{ region: 'eu' }, { region: 'us' }])
    },
  },
  {
    name: 'refuses input that the child does not take, before anything of it is begun',
    async run({ hf }) {
      const strict = flow(
        {
          ...named('strict'),
          input: { '~standard': { version: 1, vendor: 'suite', validate: () => ({ issues: [{ message: 'never' }] }) } },
        },
        async () => 1,
      )
      const parent = flow<number, unknown>(named('parent'), async (ctx, n) =>
        ctx.run(strict as never, 's', n as never).catch((error: { code: string }) => error.code),
      )
      assert.equal(expectStatus(await hf.thread(parent, 't').run({ input: 1 }), 'completed').output, 'invalid-value')
      assert.deepEqual(await childrenOf(hf, 't'), [])
      const twice = flow<number, unknown>(named('twice'), async (ctx, n) =>
        Promise.all([ctx.run(double, 'a', n), ctx.run(double, 'a', n)]),
      )
      const { error } = expectStatus(await hf.thread(twice, 'u').run({ input: 1 }), 'failed')
      assert.equal(error.code, 'invalid-program')
      const unkept = expectStatus(await hf.thread(fourfold, 'v').run({ input: 1, frequency: 'none' }), 'failed')
      assert.equal(unkept.error.code, 'invalid-option')
    },
  },
  {
    name: 'awaits children in the nodes of a graph, side by side',
    async run({ hf }) {
      const sums = graph({
        ...named('sums'),
        state: { n: last<number>(undefined, { initial: 0 }), got: last<number[]>(undefined, { initial: [] }) },
      })
        .node('fan', async ({ n }, ctx) => ({
          got: await Promise.all([ctx.run(double, 'a', n), ctx.run(fourfold, 'b', n)]),
        }))
        .node('last', async ({ got }, ctx) => ({ n: await ctx.run(double, 'c', got[0] ?? 0) }))
        .edge(START, 'fan')
        .edge('fan', 'last')
        .edge('last', END)
      const outcome = expectStatus(await hf.thread(sums, 't').run({ input: { n: 3 } }), 'completed')
      assert.deepEqual([outcome.state.n, outcome.state.got], [12, [6, 12]])
    },
  },
]
