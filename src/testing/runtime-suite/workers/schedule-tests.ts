import assert from 'node:assert/strict'
import { flow, type Holdfast, isHoldfastError } from '../../../index.js'
import { named, type RuntimeTest } from '../runtime-context.js'

const YEARLY = { cron: '0 0 1 1 *' }

/** Lets workers work until something is so. */
async function work(
  places: readonly Holdfast[],
  programs: Parameters<Holdfast['worker']>[0]['programs'],
  isSo: () => Promise<boolean>,
): Promise<void> {
  const workers = places.map((hf) => hf.worker({ programs, pollMs: 10, handleSignals: false }))
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10))
  await Promise.all(workers.map((worker) => worker.stop()))
}

export const scheduleTests: readonly RuntimeTest[] = [
  {
    name: 'start each occurrence once, whoever looks',
    timeoutMs: 300_000,
    async run({ hf, other }) {
      const ran: string[] = []
      const report = flow<string, string>(named('scheduled-report'), async (ctx, region) => {
        ran.push(ctx.thread as string)
        return region
      })
      const set = await hf.schedules.set('yearly', report, { ...YEARLY, input: 'eu' })
      assert.equal(set.next?.getUTCMonth(), 0)
      assert.deepEqual(await hf.schedules.set('yearly', report, { ...YEARLY, input: 'eu' }), set)
      const places = [hf, await other()]
      for (let round = 1; round <= 3; round++) {
        await hf.schedules.trigger('yearly')
        await work(places, [report], async () => {
          const { last, started } = (await hf.schedules.get('yearly')) ?? {}
          const thread = started === round ? last?.thread : undefined
          return thread !== undefined && (await hf.threads({ thread, status: 'completed' })).threads.length === 1
        })
        const schedule = await hf.schedules.get('yearly')
        assert.equal(ran.length, round)
        assert.equal(schedule?.last?.thread, ran.at(-1))
        assert.deepEqual(schedule?.next, set.next)
      }
    },
  },
  {
    name: 'are listed, paused, resumed and deleted, each tenant its own',
    async run({ hf, other }) {
      const program = flow<null, null>(named('scheduled-nothing'), async () => null)
      await hf.schedules.set('a', program, { ...YEARLY, input: null })
      await hf.schedules.set('b', program, { everyMs: 60_000, input: null, thread: 'b', missed: 'all' })
      const theirs = (await other()).tenant('somebody else')
      assert.deepEqual((await theirs.schedules.list()).schedules, [])
      const names = async () => (await hf.schedules.list()).schedules.map(({ name }) => name).sort()
      assert.deepEqual(await names(), ['a', 'b'])
      assert.deepEqual(await hf.schedules.pause('a'), { ...(await hf.schedules.get('a')), paused: true, next: null })
      assert.equal((await hf.schedules.set('a', program, { cron: '0 0 2 1 *', input: null })).paused, true)
      assert.equal((await hf.schedules.resume('a')).next?.getUTCDate(), 2)
      assert.equal(await hf.schedules.delete('a'), true)
      assert.equal(await hf.schedules.delete('a'), false)
      assert.deepEqual(await names(), ['b'])
      await assert.rejects(hf.schedules.pause('a'), (error) => isHoldfastError(error, 'not-found'))
    },
  },
]
