import assert from 'node:assert/strict'
import { flow } from '../../../index.js'
import { DAY, gate, named, type RuntimeTest } from '../runtime-context.js'

export const queueTests: readonly RuntimeTest[] = [
  {
    name: 'counts what is due of some programs and nobody holds, and how long the oldest has been',
    async run({ hf, clock }) {
      const begun = gate()
      const open = gate()
      const program = flow<string, string>(named('queued'), (ctx, input) =>
        ctx.step('hold', async () => {
          begun.open()
          await open.passed
          return input
        }),
      )
      const sleeper = flow<number, string>(named('sleeper'), async (ctx) => {
        await ctx.sleep(DAY)
        return 'rested'
      })
      assert.deepEqual(await hf.queueAge(), { due: 0, more: false, oldestMs: 0 })
      await hf.thread(sleeper, 's').run({ input: 1 })
      await hf.thread(program, 'a').enqueue('a')
      const { threads } = await hf.threads({ thread: 'a' })
      await hf.thread(program, 'b').enqueue('b')
      const two = await hf.queueAge({ programs: ['queued', 'sleeper'] })
      assert.deepEqual([two.due, two.more], [2, false])
      // As long as its first thread has been due, by the same clock.
      assert.ok(two.oldestMs <= clock.now() - (threads[0]?.wakeAt?.getTime() ?? 0), `${two.oldestMs} ms`)
      assert.deepEqual(await hf.queueAge({ programs: ['sleeper'] }), { due: 0, more: false, oldestMs: 0 })

      clock.skip(2 * DAY)
      const woken = await hf.queueAge({ programs: ['sleeper'] })
      assert.equal(woken.due, 1)
      // Due since it should have been woken, a day after it was last written.
      assert.ok(woken.oldestMs >= DAY && woken.oldestMs < 2 * DAY, `${woken.oldestMs} ms`)
      const old = await hf.queueAge()
      assert.equal(old.due, 3)
      assert.ok(old.oldestMs >= 2 * DAY, `${old.oldestMs} ms`)

      const running = hf.thread(program, 'a').run()
      await begun.passed
      assert.equal((await hf.queueAge({ programs: ['queued'] })).due, 1)
      open.open()
      await running
    },
  },
]
