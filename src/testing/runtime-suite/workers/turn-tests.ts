import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { flow, type Holdfast, type Outcome, type WorkerEvent } from '../../../index.js'
import { DAY, expectStatus, gate, named, type RuntimeTest, refuses } from '../runtime-context.js'

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
  {
    name: 'take what is more urgent first, and of the same priority what has waited longest',
    async run({ hf, clock }) {
      const order: string[] = []
      const notes = flow<string, null>(named('turn-notes'), async (_, input) => {
        order.push(input)
        return null
      })
      const item = (thread: string, priority?: number) => ({
        program: notes,
        thread,
        input: thread,
        ...(priority === undefined ? {} : { priority }),
      })
      for (const one of [item('low', -1), item('first'), item('second', 0), item('high', 7), item('raised', -9)]) {
        await hf.enqueue([one])
        clock.skip(120_000)
      }
      // Input behind what is not urgent needs that to be done first.
      await hf.thread(notes, 'raised').enqueue('raised more', { priority: 100 })
      const all = ['raised', 'high', 'first', 'second', 'low'].map((thread) => hf.thread(notes, thread))
      await work(hf, [notes], () => Promise.all(all.map((thread) => thread.waitFor())), { concurrency: 1 })
      assert.deepEqual(order, ['raised', 'raised more', 'high', 'first', 'second', 'low'])
      const priorityOf = async (thread: string) =>
        (await hf.threads({ thread })).threads[0]?.metadata['holdfast.priority']
      assert.equal(await priorityOf('high'), 7)
      await hf.thread(notes, 'high').enqueue('once more')
      assert.equal(await priorityOf('high'), undefined, 'a thread at rest forgets how urgent it was')
      for (const priority of [1.5, 1001, '9']) {
        await refuses(() => hf.thread(notes, 'x').enqueue('x', { priority: priority as number }), 'invalid-option')
      }
    },
  },
  {
    name: 'give every tenant its turn, however much another has left',
    async run({ everyone }) {
      const taken: string[] = []
      const [full, held] = [gate(), gate()]
      const own = randomBytes(6).toString('hex')
      const [flood = '', ...others] = ['flood', 'one', 'two', 'three'].map((name) => `${own}-${name}`)
      const notes = flow<string, null>(named(`turn-${own}`), (ctx, input) =>
        ctx.step('hold', async () => {
          if (taken.push(input) === 4) full.open()
          await held.passed
          return null
        }),
      )
      const many = Array.from({ length: 60 }, (_, i) => ({ program: notes, thread: `t-${i}`, input: flood }))
      await everyone.tenant(flood).enqueue(many)
      for (const tenant of others) await everyone.tenant(tenant).thread(notes, 't').enqueue(tenant)
      const worker = everyone.worker({ programs: [notes], concurrency: 4, pollMs: 10, handleSignals: false })
      await full.passed
      held.open()
      await worker.stop()
      assert.deepEqual([...taken.slice(0, 4)].sort(), [flood, ...others].sort(), 'each has one of the first places')
    },
  },
  {
    name: 'are kept within limits that hold over all processes',
    async run({ hf, other }) {
      const running: string[] = []
      const most = { all: 0, key: 0 }
      const counts = flow<string, string>(named('turn-counts'), (ctx, key) =>
        ctx.step('count', async () => {
          running.push(key)
          most.all = Math.max(most.all, running.length)
          most.key = Math.max(most.key, running.filter((one) => one === key).length)
          // Long enough that others come in between, if they can.
          for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
          running.splice(running.indexOf(key), 1)
          return key
        }),
      )
      const threads = Array.from({ length: 12 }, (_, i) => `t-${i}`)
      await hf.enqueue(
        threads.map((thread, i) => {
          const limitKey = i % 2 === 0 ? 'even' : `odd ${i % 3}`
          return { program: counts, thread, input: limitKey, limitKey }
        }),
      )
      const limits = [{ concurrency: 3 }, { per: 'key', concurrency: 1 }] as const
      const options = { programs: [counts], limits, leaseMs: 60_000, pollMs: 20, handleSignals: false }
      const workers = [hf.worker(options), (await other()).worker(options)]
      await Promise.all(threads.map((thread) => hf.thread(counts, thread).waitFor()))
      await Promise.all(workers.map((worker) => worker.stop()))
      assert.ok(most.all <= 3, `${most.all} at once`)
      assert.equal(most.key, 1)
    },
  },
]
