import assert from 'node:assert/strict'
import { flow, type ThreadIdInput } from '../../../index.js'
import type { DueThread } from '../../../types.js'
import { gate, named, type RuntimeTest } from '../runtime-context.js'

export const dispatchTests: readonly RuntimeTest[] = [
  {
    name: 'is handed what is due of its programs, and again what it lost',
    timeoutMs: 120_000,
    async run({ hf }) {
      const ran: string[] = []
      const program = flow<string, string>(named('handed'), (ctx, input) =>
        ctx.step('work', async () => {
          ran.push(input)
          return input
        }),
      )
      const foreign = flow<string, string>(named('foreign'), async (_, input) => input)
      const worker = hf.worker({ programs: [program], looks: false, handleSignals: false })
      const lost = new Set<string>()
      const handed: DueThread[] = []
      const dispatcher = hf.dispatch({
        programs: ['handed'],
        everyMs: 100,
        async hand(due) {
          handed.push(...due)
          for (const one of due) {
            const name = String(one.thread)
            if (lost.has(name)) await worker.work(one)
            else lost.add(name)
          }
        },
      })
      await hf.thread(foreign, 'foreign').enqueue('foreign')
      const threads = ['a', 'b', 'c']
      for (const id of threads) await hf.thread(program, id).enqueue(id)
      const outcomes = await Promise.all(threads.map((id) => hf.thread(program, id).waitFor()))
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        threads.map(() => 'completed'),
      )
      assert.deepEqual(ran.toSorted(), threads)
      await dispatcher.stop()
      await worker.stop()
      assert.deepEqual([...new Set(handed.map(({ program }) => program))], ['handed'])
      assert.equal((await hf.threads({ thread: 'foreign' })).threads[0]?.claimedBy, null)
    },
  },
  {
    name: 'may bring a thread to a worker any number of times, and to several: one of them runs it',
    timeoutMs: 120_000,
    async run({ hf, other }) {
      const begun = gate()
      const open = gate()
      let runs = 0
      const program = flow<number, string>(named('brought'), (ctx) =>
        ctx.step('work', async () => {
          runs++
          begun.open()
          await open.passed
          return 'done'
        }),
      )
      const options = { programs: [program], looks: false, handleSignals: false, leaseMs: 60_000 }
      const here = hf.worker(options)
      const there = (await other()).worker(options)
      await hf.thread(program, 't').enqueue(1)
      const [summary] = (await hf.threads({ thread: 't' })).threads
      assert.ok(summary)
      // Of which tenant it is, is told by who hands it out.
      let due: DueThread | undefined
      const dispatcher = hf.dispatch({
        programs: [program],
        hand: async (all) => {
          due ??= all[0]
        },
      })
      while (due === undefined) await pause(5)
      await dispatcher.stop()
      const first = here.work(due)
      await begun.passed
      for (const worker of [here, there, there]) assert.equal((await worker.work(due)).status, 'held')
      open.open()
      const worked = await first
      assert.equal(worked.status === 'ended' && worked.outcome.status, 'completed')
      for (const worker of [here, there]) assert.equal((await worker.work(due)).status, 'idle')
      assert.equal((await here.work({ ...due, thread: 'nobody' })).status, 'idle')
      assert.equal(runs, 1)

      const unknown = flow<number, string>(named('unknown'), async () => 'never')
      await hf.thread(unknown, 'u').enqueue(1)
      assert.equal((await here.work({ ...due, thread: 'u' })).status, 'unfit')
      await assert.rejects(() => here.work({ ...due, branch: '' } as DueThread))
      await here.stop()
      assert.equal((await here.work(due)).status, 'stopped')
      await there.stop()
    },
  },
  {
    name: 'is handed sleepers and schedules when their time has come',
    timeoutMs: 120_000,
    async run({ hf }) {
      const program = flow<string, string>(named('later'), async (ctx, input) => {
        if (input === 'sleeps') await ctx.sleep(1500)
        return input
      })
      const worker = hf.worker({ programs: [program], looks: false, handleSignals: false })
      const dispatcher = hf.dispatch({
        programs: [program],
        everyMs: 500,
        hand: async (due) => {
          for (const one of due) await worker.work(one)
        },
      })
      await hf.thread(program, 's').enqueue('sleeps')
      await hf.schedules.set('often', program, { everyMs: 3_600_000, input: 'scheduled' })
      await hf.schedules.trigger('often')
      const status = async (id: ThreadIdInput | undefined) =>
        id === undefined ? undefined : (await hf.thread(program, id).waitFor()).status
      while ((await status((await hf.schedules.get('often'))?.last?.thread)) !== 'completed') await pause(20)
      while ((await status('s')) !== 'completed') await pause(20)
      await dispatcher.stop()
      await worker.stop()
    },
  },
]

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
