import assert from 'node:assert/strict'
import { END, flow, graph, last, START } from '../../../index.js'
import { asker, childrenOf, double, fourfold, statusOf, waits } from './child-programs.js'
import { expectStatus, gate, named, type RuntimeTest } from '../runtime-context.js'

/** Programs that run others on threads of their own. */
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
