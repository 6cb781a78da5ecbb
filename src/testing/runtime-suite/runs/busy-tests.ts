import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import {
  aborted,
  dies,
  entriesOf,
  expectStatus,
  gate,
  LONG_LEASE_MS,
  named,
  type RuntimeTest,
  takeOver,
} from '../runtime-context.js'

/** Holds its thread until the gate of its input opens, or its signal is aborted. */
function holder() {
  const begun = gate()
  const leave = gate()
  const ran: unknown[] = []
  const program = flow<string, string>(named('holder'), async (ctx, input) => {
    ran.push(input)
    if (input !== 'hold') return input
    return ctx.step('hold', { retry: { attempts: 1 } }, async ({ abortSignal: abort }) => {
      begun.open()
      await Promise.race([leave.passed, aborted(abort)])
      return 'held'
    })
  })
  return { begun, leave, ran, program }
}

export const busyTests: readonly RuntimeTest[] = [
  {
    name: 'reject a second run with who holds them and for how long, and take no input of it',
    async run({ hf, other }) {
      const { begun, leave, program, ran } = holder()
      const first = hf.thread(program, 't').run({ input: 'hold' })
      await begun.passed
      const entries = await entriesOf(hf, 't')
      const second = (await other()).thread(program, 't')
      const busy = expectStatus(await second.run({ input: 'new' }), 'busy')
      assert.ok(busy.owner !== '' && busy.remainingMs > 0)
      expectStatus(await second.run(), 'busy')
      assert.equal(await entriesOf(hf, 't'), entries)
      leave.open()
      assert.equal(expectStatus(await first, 'completed').output, 'held')
      assert.deepEqual(ran, ['hold'])
      assert.equal((await hf.threads()).threads[0]?.claimedBy, null)
    },
  },
  {
    name: 'queue inputs in their order behind the run that is under way',
    async run({ hf, other }) {
      const { begun, leave, program, ran } = holder()
      const first = hf.thread(program, 't').run({ input: 'hold' })
      await begun.passed
      const second = (await other()).thread(program, 't')
      const queued = second.run({ input: 'b', busy: 'queue' })
      const log = await hf.log('t')
      const enters = async (value: string) => {
        const inputs = () => (log.fold.state['inputs'] ?? []) as readonly { readonly value?: unknown }[]
        while (!inputs().some((input) => input.value === value)) {
          await log.refresh()
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      await enters('b')
      const third = hf.thread(program, 't').run({ input: 'c', key: 'k', busy: 'queue' })
      await enters('c')
      leave.open()
      const outcomes = await Promise.all([first, queued, third])
      assert.deepEqual(
        outcomes.map((outcome) => expectStatus(outcome, 'completed').output),
        ['held', 'b', 'c'],
      )
      assert.deepEqual(ran, ['hold', 'b', 'c'])
    },
  },
  {
    name: 'are interrupted on request: the run is cancelled and the new input taken',
    async run({ watchful, other }) {
      const { begun, program, ran } = holder()
      const first = watchful().thread(program, 't').run({ input: 'hold', leaseMs: LONG_LEASE_MS })
      await begun.passed
      const second = (await other()).thread(program, 't').run({ input: 'new', busy: 'interrupt' })
      const { error, canResume } = expectStatus(await first, 'failed')
      assert.deepEqual([error.code, canResume], ['cancelled', false])
      assert.equal(expectStatus(await second, 'completed').output, 'new')
      assert.deepEqual(ran, ['hold', 'new'])
    },
  },
  {
    name: 'that a resumed run holds go on with the input that interrupted it',
    async run({ hf, mortal, watchful, other }) {
      const { hf: victim, die } = mortal()
      const { begun, program, ran } = holder()
      const dying = flow<string, string>(named('holder'), (ctx) => {
        die()
        return ctx.step('hold', () => 'never')
      })
      await dies(victim.thread(dying, 't').run({ input: 'hold' }))
      await takeOver(hf, 't')
      const first = watchful().thread(program, 't').run({ leaseMs: LONG_LEASE_MS })
      await begun.passed
      const second = (await other()).thread(program, 't').run({ input: 'new', busy: 'interrupt' })
      assert.equal(expectStatus(await second, 'completed').output, 'new')
      assert.equal((await first).status, 'completed')
      assert.deepEqual(ran, ['hold', 'new'])
    },
  },
]
