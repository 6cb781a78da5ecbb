import assert from 'node:assert/strict'
import { type Holdfast, isHoldfastError } from '../../index.js'
import { ops, type StoreWrite } from '../../log/index.js'
import { type FaultMoment, faultyDriver } from '../faulty-driver.js'
import { contents, notes, refuses, type StoreContext, type StoreTest } from './store-context.js'

const { set } = ops

const MOMENTS: readonly FaultMoment[] = ['before', 'after']

/** A process dies between an entry and its items: the next load makes it whole. */
export const repairTests: readonly StoreTest[] = [
  {
    name: 'holds the items of exactly the entries that landed, after a crash at any call',
    async run(context) {
      for (const moment of MOMENTS) {
        await atEveryCall(async (call, thread) => {
          const survived = await crash(context, thread, call, moment, async (hf, log) => {
            const { write } = notes(hf, { thread })
            await log.update(() => [entry(1, [['put', spaceOf(thread), 'a', 1, null]])])
            const store = [await write.put('a', 2), await write.put('b', 2), write.delete('c')]
            await log.update(() => [entry(2, store)])
            await log.update(() => [entry(3, [write.delete('b')])])
          })
          const expected = [
            [],
            [['a', 1]],
            [
              ['a', 2],
              ['b', 2],
            ],
            [['a', 2]],
          ]
          await assertRepaired(context, thread, (entries) => expected[entries] ?? [], survived)
          return survived
        }, moment)
      }
    },
  },
  {
    name: 'repairs what a crash left while another handle goes on, before its own writes',
    async run(context) {
      for (const moment of MOMENTS) {
        await atEveryCall(async (call, thread) => {
          const other = await (await context.open()).log(thread)
          await other.update(() => [{ kind: 'step', ops: [set('n', 0)] }])
          const survived = await crash(context, thread, call, moment, async (hf, log) => {
            const { write } = notes(hf, { thread })
            const store = [await write.put('a', 'crashed'), await write.put('b', 'crashed')]
            await log.update(() => [entry(1, store)])
          })
          const { write } = notes(context.hf, { thread })
          const store = [await write.put('b', 'later')]
          let hadLanded = false
          await other.update(({ state }) => {
            hadLanded = state.n === 1
            return [entry(2, store)]
          })
          const expected = hadLanded
            ? [
                ['a', 'crashed'],
                ['b', 'later'],
              ]
            : [['b', 'later']]
          assert.deepEqual(await contents(notes(context.hf, { thread })), expected)
          assert.ok(hadLanded || !survived)
          return survived
        }, moment)
      }
    },
  },
  {
    name: 'repairs what a crash left when another handle claims the thread or reads on, before it writes anything',
    async run(context) {
      for (const moment of MOMENTS) {
        await atEveryCall(async (call, thread) => {
          const [claimer, reader] = [await (await context.open()).log(thread), await (await context.open()).log(thread)]
          await claimer.update(() => [{ kind: 'step', ops: [set('n', 0)] }])
          await reader.refresh()
          const survived = await crash(context, thread, call, moment, async (hf, log) => {
            const store = [await notes(hf, { thread }).write.put('a', 1)]
            await log.update(() => [entry(1, store)])
          })
          const isClaimed = call % 2 === 0
          const { state } = isClaimed
            ? (await claimer.claim({ owner: 'w', ms: 1000 })).log.fold
            : await reader.refresh()
          assert.deepEqual(await contents(notes(context.hf, { thread })), state.n === 1 ? [['a', 1]] : [])
          return survived
        }, moment)
      }
    },
  },
  {
    name: 'applies with the next update what could not be applied at once',
    async run({ driver, open, hf }) {
      const faulty = faultyDriver(await driver())
      const lossy = await open({ retryMs: 0 }, faulty)
      const log = await lossy.log('thread')
      const { write } = notes(lossy)
      const [first, second] = [await write.put('first', 1), await write.put('second', 2)]
      const isApart = !faulty.capabilities.storeAtomic
      if (isApart) faulty.loseNext('applyWrites', 'before')
      const update = log.update(() => [entry(1, [first])])
      await (isApart ? refuses(() => update, 'unavailable') : update)
      assert.equal(log.fold.state.n, 1, 'the entry landed')
      await log.update(() => [{ kind: 'step', ops: [set('n', 2)] }])
      assert.deepEqual(await contents(notes(hf)), [['first', 1]])
      await log.update(() => [entry(3, [second])])
      assert.deepEqual(await contents(notes(hf)), [
        ['first', 1],
        ['second', 2],
      ])
    },
  },
  {
    name: 'undoes nothing that happened between a crash and the repair',
    async run(context) {
      for (const moment of MOMENTS) {
        await atEveryCall(async (call, thread) => {
          const collection = notes(context.hf, { thread })
          await collection.put('deleted', 0)
          const survived = await crash(context, thread, call, moment, async (hf, log) => {
            const { write } = notes(hf, { thread })
            const store = [
              await write.put('changed', 'step'),
              await write.put('deleted', 'step'),
              await write.put('kept', 'step'),
            ]
            await log.update(() => [entry(1, store)])
          })
          await context.clock.advance(1000)
          await collection.put('changed', 'since')
          await collection.delete('deleted')
          for (let twice = 0; twice < 2; twice++) {
            const log = await (await context.open()).log(thread)
            const expected = log.exists
              ? [
                  ['changed', 'since'],
                  ['kept', 'step'],
                ]
              : [['changed', 'since']]
            assert.deepEqual(await contents(collection), expected)
            assert.ok(log.exists || !survived)
          }
          return survived
        }, moment)
      }
    },
  },
  {
    name: 'repairs before it prunes, and through every crash of the repair itself',
    async run(context) {
      for (const moment of MOMENTS) {
        await atEveryCall(async (call, thread) => {
          // Dies right after the entry landed, where there is such a moment.
          await crash(context, thread, 4, 'before', async (hf, log) => {
            const { write } = notes(hf, { thread })
            const store = [await write.put('a', 1), await write.put('b', 1)]
            await log.update(() => [entry(1, store), { kind: 'step', keyframe: true }])
          })
          const faulty = faultyDriver(await context.driver())
          faulty.crashAt(call, moment)
          let survived = true
          try {
            await (await context.open({}, faulty)).prune(thread, 1)
          } catch (error) {
            if (isHoldfastError(error, 'not-found')) return true
            assert.ok(isHoldfastError(error, 'closed'), `only the crash may fail it: ${String(error)}`)
            survived = false
          }
          const log = await (await context.open()).log(thread)
          const expected = log.exists
            ? [
                ['a', 1],
                ['b', 1],
              ]
            : []
          assert.deepEqual(await contents(notes(context.hf, { thread })), expected)
          return survived
        }, moment)
      }
    },
  },
]

function entry(n: number, store: readonly StoreWrite[]) {
  return { kind: 'step', ops: [set('n', n)], store }
}

function spaceOf(thread: string): string {
  return `{thread=${thread}}notes`
}

type Work = (hf: Holdfast, log: Awaited<ReturnType<Holdfast['log']>>) => Promise<void>

/** Works in a process that dies at its nth call to the backend. True if it was done before that. */
async function crash(
  context: StoreContext,
  thread: string,
  call: number,
  moment: FaultMoment,
  work: Work,
): Promise<boolean> {
  const faulty = faultyDriver(await context.driver())
  faulty.crashAt(call, moment)
  const hf = await context.open({}, faulty)
  try {
    await work(hf, await hf.log(thread))
    return true
  } catch (error) {
    assert.ok(isHoldfastError(error, 'closed'), `only the crash may fail it: ${String(error)}`)
    return false
  }
}

/** Runs with a crash at the first call, the second, and so on, until one run survives. */
async function atEveryCall(
  run: (call: number, thread: string) => Promise<boolean>,
  moment: FaultMoment,
): Promise<void> {
  for (let call = 1; ; call++) {
    assert.ok(call < 100, 'the work comes to an end')
    if (await run(call, `t-${moment}-${call}`)) {
      assert.ok(call > 1, 'at least one crash was tried')
      return
    }
  }
}

async function assertRepaired(
  context: StoreContext,
  thread: string,
  expected: (entries: number) => unknown,
  survived: boolean,
): Promise<void> {
  const other = await context.open()
  const log = await other.log(thread)
  const entries = log.fold.seq + 1
  if (survived) assert.equal(entries, 3)
  assert.deepEqual(await contents(notes(context.hf, { thread })), expected(entries))
  await other.log(thread)
  assert.deepEqual(await contents(notes(context.hf, { thread })), expected(entries))
}
