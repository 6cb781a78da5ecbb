import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import {
  aborted,
  entriesOf,
  expectStatus,
  gate,
  LONG_LEASE_MS,
  named,
  refuses,
  type RuntimeTest,
  takeOver,
} from '../runtime-context.js'

export const fenceTests: readonly RuntimeTest[] = [
  {
    name: 'is an error, aborts the signal of what runs, and lets nothing more be written',
    async run({ hf, other }) {
      const begun = gate()
      const signals: AbortSignal[] = []
      let hold = true
      const program = flow<number, string>(named('fenced'), (ctx) =>
        ctx.step('work', async (step) => {
          signals.push(step.abortSignal)
          await step.store.scope({ user: 'u' }).collection<number>('made').put('by', signals.length)
          if (!hold) return 'by the successor'
          begun.open()
          await aborted(step.abortSignal)
          return 'by the old owner'
        }),
      )
      const fenced = refuses(() => hf.thread(program, 't').run({ input: 1, leaseMs: 900 }), 'fenced')
      await begun.passed
      hold = false
      const successor = await other()
      await takeOver(successor, 't')
      const { output } = expectStatus(await successor.thread(program, 't').run(), 'completed')
      const entries = await entriesOf(successor, 't')
      await fenced
      assert.equal(signals[0]?.aborted, true)
      assert.deepEqual([output, await entriesOf(successor, 't')], ['by the successor', entries])
      assert.equal((await hf.store.scope({ user: 'u' }).collection<number>('made').get('by'))?.value, 2)
    },
  },
  {
    name: 'is found out by a step that ends, before anything of it is recorded',
    async run({ hf, other }) {
      const program = flow<number, string>(named('fenced'), async (ctx) => {
        await ctx.step('loses its thread', async () => {
          await takeOver(await other(), 't')
        })
        return 'never'
      })
      await refuses(() => hf.thread(program, 't').run({ input: 1 }), 'fenced')
      const steps = (await hf.log('t')).fold.state['steps']
      assert.equal(steps, undefined)
    },
  },
  {
    name: 'is found out by a heartbeat',
    async run({ hf, other }) {
      let heard: unknown
      const program = flow<number, string>(named('fenced'), (ctx) =>
        ctx.step('beats', { retry: { attempts: 1 } }, async ({ heartbeat }) => {
          await heartbeat()
          await takeOver(await other(), 't')
          await heartbeat().catch((error: unknown) => {
            heard = error
          })
          return 'never'
        }),
      )
      await refuses(() => hf.thread(program, 't').run({ input: 1 }), 'fenced')
      assert.equal((heard as { code?: string }).code, 'fenced')
    },
  },
  {
    name: 'does not happen to a long step, whose lease is renewed',
    async run({ watchful, other }) {
      const program = flow<number, string>(named('long'), (ctx) =>
        ctx.step('long', async () => {
          begun.open()
          await looked
          return 'done'
        }),
      )
      let end = () => {}
      const looked = new Promise<void>((resolve) => {
        end = resolve
      })
      const begun = gate()
      const running = watchful().thread(program, 't').run({ input: 1, leaseMs: LONG_LEASE_MS })
      await begun.passed
      const second = (await other()).thread(program, 't')
      const left = async () => {
        await new Promise((resolve) => setTimeout(resolve, 20))
        return expectStatus(await second.run(), 'busy').remainingMs
      }
      // Less and less of it is left, until it is renewed.
      for (let before = await left(), now = before; now <= before; now = await left()) before = now
      end()
      assert.equal(expectStatus(await running, 'completed').output, 'done')
    },
  },
  {
    name: 'follows from a lease that ran out: whoever comes then takes the run over',
    async run({ hf, mortal }) {
      let ran = 0
      const { hf: victim, die } = mortal()
      const program = flow<number, number>(named('expires'), (ctx) =>
        ctx.step('work', async () => {
          if (++ran === 1) die()
          return ran
        }),
      )
      await refuses(() => victim.thread(program, 't').run({ input: 1, leaseMs: 200 }), 'closed')
      let outcome = await hf.thread(program, 't').run()
      while (outcome.status === 'busy') {
        await new Promise((resolve) => setTimeout(resolve, 20))
        outcome = await hf.thread(program, 't').run()
      }
      assert.equal(expectStatus(outcome, 'completed').output, 2)
    },
  },
]
