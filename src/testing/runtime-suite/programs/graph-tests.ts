import assert from 'node:assert/strict'
import { append, END, graph, last, reduced, START, send } from '../../../index.js'
import { aborted, dies, expectStatus, gate, named, quick, type RuntimeTest, takeOver } from '../runtime-context.js'

const trail = { trail: append<string>(), n: last<number>(undefined, { initial: 0 }) }
const mark = (name: string) => () => ({ trail: name })

export const graphTests: readonly RuntimeTest[] = [
  {
    name: 'runs nodes one after the other',
    async run({ hf }) {
      const program = graph({ ...named('sequence'), state: trail })
        .node('a', mark('a'))
        .node('b', mark('b'))
        .node('c', () => {})
        .edge(START, 'a')
        .edge('a', 'b')
        .edge('b', 'c')
      const { state } = expectStatus(await hf.thread(program, 't').run({ input: {} }), 'completed')
      assert.deepEqual(state.trail, ['a', 'b'])
    },
  },
  {
    name: 'takes the way that a condition chooses by the state',
    async run({ hf }) {
      const program = graph({ ...named('condition'), state: trail })
        .node('low', mark('low'))
        .node('high', mark('high'))
        .branch(START, async ({ n }) => (n > 5 ? 'high' : 'low'), ['low', 'high'])
      const low = await hf.thread(program, 'l').run({ input: { n: 1 } })
      const high = await hf.thread(program, 'h').run({ input: { n: 9 } })
      assert.deepEqual([low.state.trail, high.state.trail], [['low'], ['high']])
    },
  },
  {
    name: 'runs branches side by side and joins them when the longest is done',
    async run({ hf }) {
      const met = [gate(), gate()]
      const meet = async (at: 0 | 1) => {
        met[at]?.open()
        await met[1 - at]?.passed
      }
      const program = graph({ ...named('parallel'), state: trail })
        .node('short', async () => {
          await meet(0)
          return { trail: 'short' }
        })
        .node('long 1', async () => {
          await meet(1)
          return { trail: 'long 1' }
        })
        .node('long 2', mark('long 2'))
        .node('long 3', mark('long 3'))
        .node('join', ({ trail }) => ({ trail: `join of ${trail.length}` }))
        .edge(START, 'short')
        .edge(START, 'long 1')
        .edge('long 1', 'long 2')
        .edge('long 2', 'long 3')
        .edge(['short', 'long 3'], 'join')
      const { state } = expectStatus(await hf.thread(program, 't').run({ input: {} }), 'completed')
      assert.deepEqual(state.trail, ['short', 'long 1', 'long 2', 'long 3', 'join of 4'])
    },
  },
  {
    name: 'joins updates of one super-step in the order of its nodes, however fast they are',
    async run({ hf }) {
      const later = gate()
      const program = graph({ ...named('order'), state: trail })
        .node('a', async () => {
          await later.passed
          return { trail: 'a', n: 1 }
        })
        .node('b', () => {
          later.open()
          return { trail: 'b', n: 2 }
        })
        .edge(START, 'a')
        .edge(START, 'b')
      const { state } = await hf.thread(program, 't').run({ input: {} })
      assert.deepEqual(state, { trail: ['a', 'b'], n: 2 })
    },
  },
  {
    name: 'fans out over a list, one activation per item, and joins what they bring',
    async run({ hf }) {
      const program = graph({
        ...named('fan'),
        state: { items: last<readonly number[]>(undefined, { initial: [] }), squares: append<number>() },
      })
        .node('plan', () => {})
        .node('square', (_state, { input }) => ({ squares: (input as number) ** 2 }))
        .node('sum', ({ squares }) => ({ items: [squares.reduce((a, b) => a + b, 0)] }))
        .edge(START, 'plan')
        .branch('plan', ({ items }) => items.map((item) => send('square', item)), ['square', END])
        .edge('square', 'sum')
      const { state } = await hf.thread(program, 't').run({ input: { items: [1, 2, 3, 4] } })
      assert.deepEqual(state, { items: [30], squares: [1, 4, 9, 16] })
      const empty = expectStatus(await hf.thread(program, 'empty').run({ input: { items: [] } }), 'completed')
      assert.deepEqual(empty.state, { items: [], squares: [] })
    },
  },
  {
    name: 'does not repeat the activations of a fan-out that were recorded before a crash',
    async run({ hf, mortal }) {
      const done: number[] = []
      const { hf: victim, die } = mortal()
      const program = (onLast: () => unknown) =>
        graph({ ...named('fan'), state: { squares: append<number>() } })
          .node('square', async (_state, { input }) => {
            const item = input as number
            if (item === 3) await onLast()
            else done.push(item)
            return { squares: item ** 2 }
          })
          .branch(START, () => [1, 2, 3].map((item) => send('square', item)), ['square'])
      const dying = program(async () => {
        const log = await hf.log('t')
        // The others were recorded, one entry each, after the claim with the input.
        while ((await log.refresh()).seq < 2) await new Promise((resolve) => setTimeout(resolve, 5))
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: {} }))
      await takeOver(hf, 't')
      const { state } = expectStatus(
        await hf
          .thread(
            program(() => done.push(3)),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual(
        [done, state.squares],
        [
          [1, 2, 3],
          [1, 4, 9],
        ],
      )
    },
  },
  {
    name: 'loops until a condition ends it, and fails at the step limit when none does',
    async run({ hf }) {
      const program = graph({
        ...named('loop'),
        maxSteps: 10,
        state: {
          n: reduced<number, number>(undefined, (a, b) => a + b, { initial: 0 }),
          goal: last<number>(undefined, { initial: 0 }),
        },
      })
        .node('more', () => ({ n: 1 }))
        .edge(START, 'more')
        .branch('more', ({ n, goal }) => (n >= goal ? END : 'more'), ['more', END])
      const ends = expectStatus(await hf.thread(program, 'ends').run({ input: { goal: 10 } }), 'completed')
      assert.equal(ends.state.n, 10)
      const { error, state, canResume } = expectStatus(
        await hf.thread(program, 'never').run({ input: { goal: 1000 } }),
        'failed',
      )
      assert.match(error.message, /limit of 10 super-steps/)
      assert.deepEqual([state.n, canResume], [10, true])
    },
  },
  {
    name: 'tries a failing node again after growing pauses, and gives up after its attempts',
    async run({ hf }) {
      let tries = 0
      const program = (attempts: number) =>
        graph({ ...named('retry'), state: trail })
          .node('flaky', {
            retry: { attempts, initialMs: 2, factor: 3, jitter: 0 },
            run: () => {
              if (++tries < 3) throw new Error(`no ${tries}`)
              return { n: tries }
            },
          })
          .edge(START, 'flaky')
      const stream = hf.thread(program(3), 't').stream({ input: {} })
      const pauses: number[] = []
      for await (const event of stream) if (event.type === 'retry') pauses.push(event.inMs)
      assert.deepEqual([(await stream.outcome).state.n, pauses], [3, [2, 6]])
      tries = 0
      const { error } = expectStatus(await hf.thread(program(2), 'u').run({ input: {} }), 'failed')
      assert.deepEqual([tries, error.step, error.code], [2, '0:flaky', 'step-failed'])
      assert.match(error.message, /no 2/)
    },
  },
  {
    name: 'ends a node that takes too long, with its signal aborted, and tries it again',
    async run({ hf }) {
      let tries = 0
      const program = graph({ ...named('slow'), state: trail })
        .node('slow', {
          timeoutMs: 100,
          // More than it takes: on a busy machine an attempt may run out of time by itself.
          retry: { ...quick, attempts: 20 },
          run: async (_state, ctx) => {
            if (++tries > 1) return { n: 7 }
            await aborted(ctx.abortSignal)
            await new Promise(() => {})
            return {}
          },
        })
        .edge(START, 'slow')
      const { state } = expectStatus(await hf.thread(program, 't').run({ input: {} }), 'completed')
      assert.equal(state.n, 7)
      assert.ok(tries > 1)
    },
  },
  {
    name: 'fails with a timeout that names the node when every attempt took too long',
    async run({ hf }) {
      const program = graph({ ...named('slow'), state: trail })
        .node('slow', { timeoutMs: 20, retry: { attempts: 1 }, run: () => new Promise<undefined>(() => {}) })
        .edge(START, 'slow')
      const { error } = expectStatus(await hf.thread(program, 't').run({ input: {} }), 'failed')
      assert.match(error.message, /"0:slow" took longer than 20 ms/)
    },
  },
  {
    name: 'keeps what siblings brought when one of them fails, and runs only that one again',
    async run({ hf }) {
      const ran: string[] = []
      let broken = true
      const note = (name: string) => {
        ran.push(name)
        return { trail: name }
      }
      const program = graph({ ...named('siblings'), state: trail })
        .node('good', () => note('good'))
        .node('bad', {
          retry: { attempts: 1 },
          run: () => {
            if (broken) throw new Error('not yet')
            return note('bad')
          },
        })
        .node('also good', async () => {
          await new Promise((resolve) => setTimeout(resolve, 10))
          return note('also good')
        })
        .edge(START, 'good')
        .edge(START, 'bad')
        .edge(START, 'also good')
      const thread = hf.thread(program, 't')
      expectStatus(await thread.run({ input: {} }), 'failed')
      broken = false
      const { state } = expectStatus(await thread.run(), 'completed')
      assert.deepEqual(
        [ran, state.trail],
        [
          ['good', 'also good', 'bad'],
          ['good', 'bad', 'also good'],
        ],
      )
    },
  },
  {
    name: 'tries all failed siblings again when the run is resumed',
    async run({ hf }) {
      let broken = true
      const mend = () => {
        if (broken) throw new Error('not yet')
        return 'fine'
      }
      const program = graph({ ...named('both'), state: trail })
        .node('a', {
          retry: { attempts: 1 },
          run: async (_, ctx) => ({ trail: await ctx.step('s', { retry: { attempts: 1 } }, mend) }),
        })
        .node('b', {
          retry: { attempts: 1 },
          run: async (_, ctx) => ({ trail: await ctx.step('s', { retry: { attempts: 1 } }, mend) }),
        })
        .edge(START, 'a')
        .edge(START, 'b')
      const thread = hf.thread(program, 't')
      expectStatus(await thread.run({ input: {} }), 'failed')
      broken = false
      assert.deepEqual(expectStatus(await thread.run(), 'completed').state.trail, ['fine', 'fine'])
    },
  },
  {
    name: 'hands nodes the facts of their run',
    async run({ hf }) {
      const facts: unknown[] = []
      const program = graph({ ...named('facts'), state: trail })
        .node('look', (_state, ctx) => {
          facts.push(ctx.thread, ctx.branch, ctx.attempt, ctx.context, typeof ctx.tenant, ctx.abortSignal.aborted)
          facts.push(ctx.checkpoint !== '', ctx.idempotencyKey.length > 20, ctx.runId !== '')
        })
        .edge(START, 'look')
      await hf.thread(program, 't').run({ input: {}, context: { region: 'EU' } })
      assert.deepEqual(facts, ['t', 'main', 1, { region: 'EU' }, 'string', false, true, true, true])
    },
  },
]
