import { flow, Holdfast, type WorkerEvent, type WorkerOptions } from 'holdfast'
import type { Driver, DueQuery } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { afterEach, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'
import { until } from '../../support/until.js'

const toClose: Holdfast[] = []
afterEach(async () => {
  for (const hf of toClose.splice(0)) await hf.close()
})

/** Processes that share a store, and a clock that stands still: nobody's moment is over before it is told so. */
function openFleet() {
  const clock = virtualClock()
  const store = createMemoryStore({ clock })
  const looks = { a: 0, b: 0 }
  /** `who: thread`, in the order in which they were taken; and how many ended. */
  const taken: string[] = []
  let ended = 0
  const open = async (onLook = () => {}): Promise<Holdfast> => {
    const driver = await openMemory({ store })
    const watched: Driver = {
      ...driver,
      takeDue: async (query: DueQuery) => {
        const page = await (driver.takeDue as NonNullable<Driver['takeDue']>)(query)
        onLook()
        return page
      },
    }
    const hf = new Holdfast(new LogStore(watched, { clock }))
    toClose.push(hf)
    return hf
  }
  return {
    clock,
    looks,
    taken,
    open,
    ended: () => ended,
    async start(name: 'a' | 'b', options: WorkerOptions) {
      const hf = await open(() => looks[name]++)
      return hf.worker({
        ...options,
        name,
        handleSignals: false,
        onEvent: (event: WorkerEvent) => {
          if (event.type === 'taken') taken.push(`${name}: ${/"(.*)"/.exec(event.log)?.[1]}`)
          if (event.type === 'ended') ended++
        },
      })
    },
  }
}

it('a thread goes to the worker that ran it last, each time', async () => {
  const { clock, taken, ended, open, start } = openFleet()
  const echo = flow({ name: 'echo', version: '1.0.0' }, (ctx, input: number) => ctx.step('say', () => input))
  const web = await open()
  await start('a', { programs: [echo] })
  await web.thread(echo, 't').enqueue(0)
  await until(() => ended() === 1)
  await start('b', { programs: [echo] })
  for (let turn = 1; turn <= 8; turn++) {
    await clock.advance(1)
    await web.thread(echo, 't').enqueue(turn)
    await until(() => ended() === turn + 1)
  }
  expect(taken).toEqual(Array(9).fill('a: t'))
})

it('others take it after a moment if that worker has no place for it', async () => {
  const { clock, looks, taken, ended, open, start } = openFleet()
  const [begun, over] = [gate(), gate()]
  const job = flow({ name: 'job', version: '1.0.0' }, (ctx, isLong: boolean) =>
    ctx.step('work', async () => {
      if (!isLong) return 'short'
      begun.open()
      await over.passed
      return 'long'
    }),
  )
  const web = await open()
  await start('a', { programs: [job], concurrency: 1 })
  await web.thread(job, 't').enqueue(false)
  await until(() => ended() === 1)
  // By then it expects no more short ones, and takes nothing ahead.
  await clock.advance(1000)
  await web.thread(job, 'long').enqueue(true)
  await begun.passed
  await start('b', { programs: [job] })
  await until(() => looks.b > 0)
  await clock.advance(1)
  const looked = looks.b
  await web.thread(job, 't').enqueue(false)
  await until(() => looks.b > looked)
  expect(taken).toEqual(['a: t', 'a: long'])
  await clock.advance(100)
  await until(() => ended() === 2)
  over.open()
  expect(taken).toEqual(['a: t', 'a: long', 'b: t'])
})

it('nobody waits for a worker that was stopped, and what it released goes on at once', async () => {
  const { clock, taken, ended, open, start } = openFleet()
  const [begun, over] = [gate(), gate()]
  const job = flow({ name: 'job', version: '1.0.0' }, async (ctx) => {
    await ctx.step('first', async () => {
      begun.open()
      await over.passed
    })
    return ctx.step('second', () => 'done')
  })
  const web = await open()
  const first = await start('a', { programs: [job] })
  await web.thread(job, 't').enqueue(null)
  await begun.passed
  await start('b', { programs: [job] })
  await clock.advance(5)
  const stopped = first.stop()
  over.open()
  await stopped
  await until(() => ended() >= 1 && taken.length === 2)
  expect(taken).toEqual(['a: t', 'b: t'])
  expect(await web.thread(job, 't').waitFor()).toMatchObject({ status: 'completed', output: 'done' })
})
