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
} from '../runtime-context.js'

const asking = flow<string, unknown>(named('asking'), async (ctx, input) => {
  if (input === 'fail') throw new Error('failed')
  return input === 'ask' ? ctx.pause('well?') : input
})

export const cancelTests: readonly RuntimeTest[] = [
  {
    name: 'of a running run aborts its signal, ends it for good and frees the thread',
    async run({ hf, watchful, other }) {
      const begun = gate()
      let reason: unknown
      const program = flow<string, string>(named('long'), async (ctx, input) => {
        if (input !== 'hold') return input
        return ctx.step('hold', async ({ abortSignal: abort }) => {
          begun.open()
          await aborted(abort)
          reason = abort.reason
          return 'too late'
        })
      })
      const thread = hf.thread(program, 't')
      const running = watchful().thread(program, 't').run({ input: 'hold', leaseMs: LONG_LEASE_MS })
      await begun.passed
      await (await other()).inspect('t').cancel({ reason: 'no longer needed', by: 'Ada' })
      const { error, canResume } = expectStatus(await running, 'failed')
      assert.deepEqual([error.code, canResume], ['cancelled', false])
      assert.match(error.message, /no longer needed/)
      assert.match(String(reason), /no longer needed/)
      assert.equal((await hf.threads()).threads[0]?.claimedBy, null)
      assert.equal(expectStatus(await thread.run({ input: 'next' }), 'completed').output, 'next')
    },
  },
  ...(['ask', 'fail'] as const).map(
    (input): RuntimeTest => ({
      name: `of a ${input === 'ask' ? 'paused' : 'failed'} run ends it at once, without its program`,
      async run({ hf, other }) {
        const thread = hf.thread(asking, 't')
        const before = await thread.run({ input, key: 'k' })
        await (await other()).inspect('t').cancel({ reason: 'enough' })
        const outcome = expectStatus(await thread.run(), 'failed')
        assert.deepEqual([outcome.error.code, outcome.canResume, outcome.pauses], ['cancelled', false, []])
        if (before.status === 'paused') {
          const late = await refuses(() => thread.answer(before.pauses[0]?.id ?? '', 1), 'pause-closed')
          assert.equal(late.data['reason'], 'cancelled')
        }
        const again = expectStatus(await thread.run({ input, key: 'k' }), 'failed')
        assert.equal(again.error.code, 'cancelled', 'its key stays taken')
        assert.equal(expectStatus(await thread.run({ input: 'next' }), 'completed').output, 'next')
      },
    }),
  ),
  {
    name: 'by new input that drops a paused run leaves its key taken',
    async run({ hf }) {
      const thread = hf.thread(asking, 't')
      expectStatus(await thread.run({ input: 'ask', key: 'k' }), 'paused')
      expectStatus(await thread.run({ input: 'next', onPaused: 'cancel' }), 'completed')
      const again = expectStatus(await thread.run({ input: 'ask', key: 'k' }), 'failed')
      assert.equal(again.error.code, 'cancelled')
    },
  },
  {
    name: 'of a finished run changes nothing',
    async run({ hf }) {
      const thread = hf.thread(asking, 't')
      await thread.run({ input: 'done' })
      const entries = await entriesOf(hf, 't')
      await thread.cancel()
      assert.equal(await entriesOf(hf, 't'), entries)
      assert.equal((await thread.run()).status, 'completed')
    },
  },
]
