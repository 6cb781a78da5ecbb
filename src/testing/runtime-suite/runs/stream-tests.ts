import assert from 'node:assert/strict'
import { flow, graph, last, type RunEvent, START } from '../../../index.js'
import { aborted, expectStatus, gate, named, type RuntimeTest } from '../runtime-context.js'

const brief = (event: RunEvent) =>
  event.type === 'run' || event.type === 'step' ? `${event.type} ${event.status}` : event.type

export const streamTests: readonly RuntimeTest[] = [
  {
    name: 'tell what is recorded, in order, each with the checkpoint to reconnect after',
    async run({ hf }) {
      const program = graph({ ...named('two'), state: { n: last<number>(undefined, { initial: 0 }) } })
        .node('a', () => ({ n: 1 }))
        .node('b', () => ({ n: 2 }))
        .edge(START, 'a')
        .edge('a', 'b')
      const stream = hf.thread(program, 't').stream({ input: { n: 5 } })
      const events: RunEvent[] = []
      for await (const event of stream) events.push(event)
      assert.deepEqual(events.map(brief), [
        // The claim with the input.
        'checkpoint',
        'run started',
        'step completed',
        'state',
        'checkpoint',
        'step completed',
        'run completed',
        'state',
        'checkpoint',
      ])
      const outcome = expectStatus(await stream.outcome, 'completed')
      const checkpoints = events.flatMap((event) => (event.type === 'checkpoint' ? [event.checkpoint] : []))
      assert.equal(checkpoints.at(-1), outcome.checkpoint)
      const log = await hf.log('t')
      assert.deepEqual((await log.at(checkpoints[1] ?? '')).state['state'], { n: 1 })
    },
  },
  {
    name: 'go on whether or not anyone reads them',
    async run({ hf }) {
      const program = flow<number, number>(named('quiet'), (ctx, n) => ctx.step('s', () => n))
      assert.equal(expectStatus(await hf.thread(program, 't').stream({ input: 5 }).outcome, 'completed').output, 5)
      const stream = hf.thread(program, 'u').stream({ input: 6 })
      for await (const event of stream) if (event.type === 'run') break
      assert.equal(expectStatus(await stream.outcome, 'completed').output, 6)
    },
  },
  {
    name: 'stop the run where it is when aborted: it is free at once and goes on from its records',
    async run({ hf, other }) {
      const begun = gate()
      const ran: string[] = []
      let hold = true
      const program = flow<number, string>(named('stop'), async (ctx) => {
        await ctx.step('first', () => ran.push('first'))
        await ctx.step('second', async ({ abortSignal: abort }) => {
          ran.push('second')
          if (!hold) return
          begun.open()
          await aborted(abort)
        })
        return 'done'
      })
      const stream = hf.thread(program, 't').stream({ input: 1 })
      await begun.passed
      stream.abort()
      await assert.rejects(stream.outcome, { name: 'AbortError' })
      assert.equal((await hf.threads()).threads[0]?.claimedBy, null)
      hold = false
      assert.equal(expectStatus(await (await other()).thread(program, 't').run(), 'completed').output, 'done')
      assert.deepEqual(ran, ['first', 'second', 'second'])
    },
  },
  {
    name: 'stopped while the program throws something of its own are not failures',
    async run({ hf }) {
      const begun = gate()
      let hold = true
      const program = flow<number, string>(named('stop'), async (ctx) => {
        if (!hold) return 'done'
        begun.open()
        await aborted(ctx.abortSignal)
        throw new Error('my own words')
      })
      const abort = new AbortController()
      const running = hf.thread(program, 't').run({ input: 1, signal: abort.signal })
      await begun.passed
      abort.abort()
      await assert.rejects(running, { name: 'AbortError' })
      assert.notEqual((await hf.threads()).threads[0]?.status, 'failed')
      hold = false
      assert.equal(expectStatus(await hf.thread(program, 't').run(), 'completed').output, 'done')
    },
  },
  {
    name: 'of a signal that was aborted before write nothing',
    async run({ hf }) {
      const program = flow<number, number>(named('never'), () => 1)
      await assert.rejects(hf.thread(program, 't').run({ input: 1, signal: AbortSignal.abort() }), {
        name: 'AbortError',
      })
      await assert.rejects(hf.thread(program, 't').stream({ input: 1, signal: AbortSignal.abort() }).outcome)
      assert.deepEqual((await hf.threads()).threads, [])
    },
  },
]
