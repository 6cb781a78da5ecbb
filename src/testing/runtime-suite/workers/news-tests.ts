import assert from 'node:assert/strict'
import { flow, type Holdfast } from '../../../index.js'
import { aborted, expectStatus, gate, named, type RuntimeTest } from '../runtime-context.js'

const HOUR = 60 * 60 * 1000

/** Where no news cross processes, everybody looks for itself; other tests see that they do. */
const hasNews = (hf: Holdfast) => hf.capabilities.watch

export const newsTests: readonly RuntimeTest[] = [
  {
    name: 'of what another process leaves wake a worker that would look in an hour',
    timeoutMs: 300_000,
    async run({ hf, other }) {
      if (!hasNews(hf)) return
      const ran = new Set<string>()
      const program = flow<string, string>(named('heard'), async (_, input) => {
        ran.add(input)
        return input
      })
      await hf.thread(program, 'first').enqueue('first')
      const worker = (await other()).worker({ programs: [program], pollMs: HOUR, handleSignals: false })
      await until(() => ran.has('first'))
      // Whoever writes knows of the listener a moment after it came: what is told before may be lost.
      for (let i = 0; ran.size === 1; i++) {
        assert.ok(i < 1000, 'the worker hears of it')
        await hf.thread(program, `next-${i}`).enqueue(`next-${i}`)
        await pause(50)
      }
      await worker.stop()
    },
  },
  {
    name: 'of a cancellation by another process reach a run that would look in hours',
    timeoutMs: 300_000,
    async run({ hf, other }) {
      if (!hasNews(hf)) return
      const begun = gate()
      const program = flow(named('held'), (ctx) =>
        ctx.step('hold', async ({ abortSignal }) => {
          begun.open()
          await aborted(abortSignal)
        }),
      )
      let isOver = false
      const running = (await other())
        .thread(program, 't')
        .run({ input: 'go', leaseMs: 24 * HOUR })
        .finally(() => {
          isOver = true
        })
      await begun.passed
      const view = hf.inspect('t')
      await view.cancel({ reason: 'enough' })
      // Told again and again, for the same reason as above: one of these brings the cancellation along.
      for (let i = 0; !isOver; i++) {
        assert.ok(i < 1000, 'the run hears of it')
        await view.signal('look', i)
        await pause(50)
      }
      assert.equal(expectStatus(await running, 'failed').error.code, 'cancelled')
    },
  },
  {
    name: 'of its end reach those who wait for a thread, in this and other processes',
    timeoutMs: 300_000,
    async run({ hf, other }) {
      const leave = gate()
      const program = flow<string, string>(named('ends'), (ctx, input) =>
        ctx.step('hold', async () => {
          await leave.passed
          return input
        }),
      )
      const waiting = [hf, await other()].map((each) => each.thread(program, 't').waitFor())
      const running = hf.thread(program, 't').run({ input: 'done' })
      leave.open()
      expectStatus(await running, 'completed')
      for (const outcome of await Promise.all(waiting)) assert.equal(expectStatus(outcome, 'completed').output, 'done')
    },
  },
]

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(5)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
