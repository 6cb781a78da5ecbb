import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import {
  aborted,
  dies,
  entriesOf,
  expectStatus,
  gate,
  named,
  quick,
  type RuntimeTest,
  takeOver,
} from '../runtime-context.js'

export const flowTests: readonly RuntimeTest[] = [
  {
    name: 'records steps and returns their records when the function is called again',
    async run({ hf, mortal }) {
      const ran: string[] = []
      const program = (onThird: () => unknown) =>
        flow<string, string>(named('three'), async (ctx, input) => {
          const one = await ctx.step('one', () => {
            ran.push('one')
            return `${input}1`
          })
          const two = await ctx.step('two', { input: one }, () => {
            ran.push('two')
            return `${one}2`
          })
          return ctx.step('three', { retry: { attempts: 1 } }, async () => {
            await onThird()
            ran.push('three')
            return `${two}3`
          })
        })
      const { hf: victim, die } = mortal()
      const dying = program(() => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: '>' }))
      await takeOver(hf, 't')
      const { output } = expectStatus(
        await hf
          .thread(
            program(() => {}),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual([output, ran], ['>123', ['one', 'two', 'three']])
    },
  },
  {
    name: 'tells steps of a loop apart by their keys',
    async run({ hf }) {
      const program = flow<number, number[]>(named('loop'), async (ctx, n) => {
        const results: number[] = []
        for (let i = 0; i < n; i++) results.push(await ctx.step('square', { key: i, input: i }, () => i * i))
        return results
      })
      const { output } = expectStatus(await hf.thread(program, 't').run({ input: 4 }), 'completed')
      assert.deepEqual(output, [0, 1, 4, 9])
    },
  },
  {
    name: 'runs steps side by side',
    async run({ hf }) {
      const met = [gate(), gate()]
      const program = flow<undefined, string[]>(named('all'), (ctx) =>
        Promise.all(
          ['a', 'b'].map((name, i) =>
            ctx.step(name, async () => {
              met[i]?.open()
              await met[1 - i]?.passed
              return name
            }),
          ),
        ),
      )
      const { output } = expectStatus(await hf.thread(program, 't').run({ input: 'go' as never }), 'completed')
      assert.deepEqual(output, ['a', 'b'])
    },
  },
  {
    name: 'lets the other steps end when one of them fails, and keeps what they brought',
    async run({ hf }) {
      let broken = true
      const ran: string[] = []
      const fast = gate()
      const program = flow<number, unknown[]>(named('all'), (ctx) =>
        Promise.all([
          ctx.step('bad', { retry: { attempts: 1 } }, () => {
            fast.open()
            if (broken) throw new Error('not yet')
            return 'mended'
          }),
          ctx.step('slow', async () => {
            await fast.passed
            await new Promise((resolve) => setTimeout(resolve, 30))
            ran.push('slow')
            return 'slow'
          }),
        ]),
      )
      const thread = hf.thread(program, 't')
      expectStatus(await thread.run({ input: 1 }), 'failed')
      assert.deepEqual(ran, ['slow'])
      const entries = await entriesOf(hf, 't')
      await new Promise((resolve) => setTimeout(resolve, 30))
      assert.equal(await entriesOf(hf, 't'), entries, 'nothing is written after the run ended')
      broken = false
      const { output } = expectStatus(await thread.run(), 'completed')
      assert.deepEqual([output, ran], [['mended', 'slow'], ['slow']])
    },
  },
  {
    name: 'forgets steps that the function did not wait for: their signal is aborted and nothing of them is recorded',
    async run({ hf }) {
      const over = gate()
      const program = flow<number, string>(named('race'), (ctx) =>
        Promise.race([
          ctx.step('fast', () => 'fast'),
          ctx.step('slow', async ({ abortSignal: abort, store }) => {
            await store.scope({ user: 'u' }).collection<number>('made').put('slow', 1)
            await aborted(abort)
            over.open()
            return 'slow'
          }),
        ]),
      )
      assert.equal(expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'completed').output, 'fast')
      const entries = await entriesOf(hf, 't')
      await over.passed
      await new Promise((resolve) => setTimeout(resolve, 10))
      assert.equal(await entriesOf(hf, 't'), entries)
      assert.equal((await hf.threads()).threads[0]?.claimedBy, null)
      assert.equal(await hf.store.scope({ user: 'u' }).collection<number>('made').get('slow'), undefined)
    },
  },
  {
    name: 'lets the function catch the failure of a step, and fails there again when it is called anew',
    async run({ hf, mortal }) {
      let tries = 0
      const program = (onLast: () => unknown) =>
        flow<number, string>({ ...named('catch'), retry: quick }, async (ctx) => {
          let seen = 'nothing'
          try {
            await ctx.step('bad', () => {
              tries++
              throw new Error('always')
            })
          } catch (error) {
            seen = (error as Error).message
          }
          await ctx.step('last', { retry: { attempts: 1 } }, onLast)
          return seen
        })
      const { hf: victim, die } = mortal()
      const dying = program(() => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: 1 }))
      await takeOver(hf, 't')
      const { output } = expectStatus(
        await hf
          .thread(
            program(() => 'ok'),
            't',
          )
          .run(),
        'completed',
      )
      assert.match(output, /always/)
      assert.equal(tries, 3)
    },
  },
  {
    name: 'waits out a short sleep and suspends for a long one, holding nothing',
    async run({ hf, clock, other }) {
      const program = flow<number, string>(named('sleep'), async (ctx, ms) => {
        await ctx.sleep(1)
        await ctx.sleep(ms, { key: 'long' })
        await ctx.sleep(new Date(0))
        return 'awake'
      })
      const thread = hf.thread(program, 't')
      const { pauses, waiting, wakeAt } = expectStatus(await thread.run({ input: DAYS }), 'paused')
      assert.deepEqual([pauses, waiting.map(({ kind }) => kind)], [[], ['sleep']])
      assert.ok(wakeAt && Math.abs(wakeAt.getTime() - (clock.now() + DAYS)) < 60_000)
      const [summary] = (await hf.threads()).threads
      assert.deepEqual([summary?.status, summary?.claimedBy, summary?.wakeAt], ['waiting', null, wakeAt])
      const entries = await entriesOf(hf, 't')
      expectStatus(await thread.run(), 'paused')
      assert.equal(await entriesOf(hf, 't'), entries, 'looking at a sleeper writes nothing')
      clock.skip(DAYS)
      assert.equal(expectStatus(await (await other()).thread(program, 't').run(), 'completed').output, 'awake')
    },
  },
  {
    name: 'starts steps again that a sleep in a neighbour did not hinder',
    async run({ hf, clock }) {
      const ran: string[] = []
      const program = flow<number, unknown[]>(named('beside'), (ctx) =>
        Promise.all([
          ctx.sleep(DAYS).then(() => ctx.step('after', () => ran.push('after'))),
          ctx.step('beside', () => ran.push('beside')),
        ]),
      )
      const thread = hf.thread(program, 't')
      expectStatus(await thread.run({ input: 1 }), 'paused')
      clock.skip(DAYS)
      assert.deepEqual(expectStatus(await thread.run(), 'completed').output, [2, 1])
      assert.deepEqual(ran, ['beside', 'after'])
    },
  },
  {
    name: 'hands out values to whoever reads the stream, and beats for the lease',
    async run({ hf }) {
      const program = flow<number, number>(named('live'), async (ctx) => {
        ctx.emit({ at: 'flow' })
        await ctx.heartbeat()
        return ctx.step('s', async (step) => {
          step.emit({ at: 'step', attempt: step.attempt })
          await step.heartbeat()
          return 1
        })
      })
      const stream = hf.thread(program, 't').stream({ input: 1 })
      const heard: unknown[] = []
      for await (const event of stream) if (event.type === 'custom') heard.push([event.step, event.value])
      assert.deepEqual(heard, [
        ['', { at: 'flow' }],
        ['s', { at: 'step', attempt: 1 }],
      ])
    },
  },
  {
    name: 'counts how often a run was taken up, and shows who resumes it their own context',
    async run({ hf }) {
      const seen: unknown[] = []
      const program = flow<number, string>(named('facts'), async (ctx) => {
        seen.push([ctx.attempt, ctx.context])
        await ctx.step('once only', () => 1)
        return ctx.pause<string>('go on?')
      })
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 1, context: { user: 'Ada' } }), 'paused')
      await thread.answer(pauses[0]?.id ?? '', 'yes')
      assert.equal(expectStatus(await thread.run({ context: { user: 'Grace' } }), 'completed').output, 'yes')
      assert.deepEqual(seen, [
        [1, { user: 'Ada' }],
        [2, { user: 'Grace' }],
      ])
    },
  },
]

const DAYS = 3 * 24 * 60 * 60 * 1000
