import assert from 'node:assert/strict'
import { flow, type Holdfast, type Outcome, type WorkerEvent } from '../../index.js'
import { DAY, expectStatus, named, type RuntimeTest, refuses } from './runtime-context.js'

const echo = flow<string, string>(named('turn-echo'), (ctx, input) => ctx.step('echo', () => input))

/** Lets a worker work until something has happened, and says which threads it took, in that order. */
async function work(
  hf: Holdfast,
  programs: Parameters<Holdfast['worker']>[0]['programs'],
  until: () => Promise<unknown>,
  options: Partial<Parameters<Holdfast['worker']>[0]> = {},
): Promise<readonly string[]> {
  const taken: string[] = []
  const onEvent = (event: WorkerEvent) => void (event.type === 'taken' && taken.push(event.log))
  const worker = hf.worker({ programs, pollMs: 10, handleSignals: false, ...options, onEvent })
  await until()
  await worker.stop()
  return taken
}

export const turnTests: readonly RuntimeTest[] = [
  {
    name: 'take input that was left for later when its time has come, and other input before it',
    async run({ hf, clock, other }) {
      const thread = hf.thread(echo, 'later')
      const runAt = clock.now() + DAY
      const left = await thread.enqueue('tomorrow', { key: 'tomorrow', runAt: new Date(runAt) })
      assert.equal(left.input, 'queued')
      assert.deepEqual(
        await thread.enqueue('tomorrow', { key: 'tomorrow', runAt: 0 }),
        left,
        'a known key stays as it is',
      )
      assert.equal((await hf.threads({ thread: 'later' })).threads[0]?.wakeAt?.getTime(), runAt)
      assert.equal((await hf.threads({ thread: 'later', due: true })).threads.length, 0)
      await refuses(() => thread.run(), 'not-found')
      await thread.enqueue('today')
      await work(await other(), [echo], () => thread.waitFor())
      assert.equal(expectStatus(await thread.waitFor(), 'completed').output, 'today')
      assert.equal((await hf.threads({ thread: 'later' })).threads[0]?.wakeAt?.getTime(), runAt)
      clock.skip(DAY)
      await work(hf, [echo], () => thread.waitFor())
      const outcome = expectStatus(await thread.waitFor(), 'completed')
      assert.deepEqual([outcome.output, outcome.run], ['tomorrow', left.run])
      assert.equal((await thread.enqueue('tomorrow', { key: 'tomorrow' })).input, 'taken')
    },
  },
  {
    name: 'leave input for many threads at once, and say what became of each',
    async run({ hf, calls, other }) {
      const item = (thread: string, input: unknown, more = {}) => ({ program: echo, thread, input, ...more })
      await hf.thread(echo, 'known').run({ input: 'before' })
      const before = calls.appends
      const many = Array.from({ length: 50 }, (_, i) => item(`many-${i}`, `n${i}`))
      const told: number[] = []
      const results = await hf.enqueue(
        [
          ...many,
          item('known', 'after', { key: 'a' }),
          item('known', 'after', { key: 'a' }),
          item('', 'no such id'),
          item('twice', 'first'),
          item('twice', 'second'),
          item('bad', () => {}),
        ],
        { onEnqueued: (_, index) => told.push(index) },
      )
      assert.deepEqual(
        results.map(({ enqueued, error }) => enqueued?.input ?? (error as Error & { code: string }).code),
        [...many.map(() => 'queued'), 'queued', 'queued', 'invalid-id', 'queued', 'queued', 'invalid-value'],
      )
      assert.equal(results[50]?.enqueued?.run, results[51]?.enqueued?.run)
      assert.deepEqual(
        told.sort((a, b) => a - b),
        [...results.keys()],
      )
      assert.equal(calls.appends - before, 53)
      await refuses(() => hf.enqueue([...many, { program: echo, thread: 'x', inputs: 1 } as never]), 'invalid-option')
      assert.equal(calls.appends - before, 53, 'nothing is written of a list that can not be read')
      const ends: Outcome<unknown, string>[] = []
      const threads = ['many-0', 'many-49', 'known', 'twice']
      await work(await other(), [echo], async () => {
        ends.push(...(await Promise.all(threads.map((thread) => hf.thread(echo, thread).waitFor()))))
      })
      assert.deepEqual(
        ends.map((end) => expectStatus(end, 'completed').output),
        ['n0', 'n49', 'after', 'second'],
      )
    },
  },
]
