import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver, type VirtualClock, virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { full } from '../../support/scale.js'
import { until } from '../../support/until.js'

const named = (name: string) => ({ name, version: '1.0.0' })

/** What was paid, by the key that each payment had. */
type Paid = Map<string, Set<string>>

/** A run that awaits two others side by side, one of which awaits another, and then one more. */
function family(paid: Paid) {
  const leaf = flow<string, string>(named('leaf'), async (ctx, what) => {
    await ctx.step('pay', { effect: 'idempotent' }, ({ idempotencyKey }) => {
      paid.set(what, (paid.get(what) ?? new Set()).add(idempotencyKey))
    })
    return `paid ${what}`
  })
  const middle = flow<string, string>(named('middle'), async (ctx, what) => {
    return `${await ctx.run(leaf, 'below', `${what}.below`)} for ${what}`
  })
  const top = flow<string, string[]>(named('top'), async (ctx, what) => {
    const both = await Promise.all([ctx.run(middle, 'one', `${what}.one`), ctx.run(leaf, 'two', `${what}.two`)])
    return [...both, await ctx.run(leaf, 'three', `${what}.three`)]
  })
  return { top, programs: [top, middle, leaf] }
}

/** `npm test` tries each way at every nth call, each from another one on. */
const STRIDE = full ? 1 : 6

const OUTPUT = ['paid x.one.below for x.one', 'paid x.two', 'paid x.three']

const open = (driver: Driver, clock: VirtualClock) => new Holdfast(new LogStore(driver, { clock }))

/** Lets time pass until the work is done. */
async function drive<Result>(clock: VirtualClock, running: Promise<Result>): Promise<Result> {
  let over = false
  const mark = () => {
    over = true
  }
  running.then(mark, mark)
  while (!over) await clock.advance(1000)
  return running
}

/** Lets workers work until something holds. */
async function work(hf: Holdfast, clock: VirtualClock, programs: never, holds: () => Promise<boolean>): Promise<void> {
  const worker = hf.worker({ programs, handleSignals: false })
  await until(async () => {
    await clock.advance(1000)
    return holds()
  }, 1)
  await worker.stop()
}

/** Runs until it is over, or until the store is away for good. */
async function start(how: 'run' | 'worker', hf: Holdfast, clock: VirtualClock, died: () => boolean, paid: Paid) {
  const { top, programs } = family(paid)
  const thread = hf.thread(top, 't')
  if (how === 'run') return drive(clock, thread.run({ input: 'x', key: 'first' })).catch(() => {})
  try {
    await thread.enqueue('x', { key: 'first' })
    await work(hf, clock, programs as never, async () => died() || (await isDone(hf)))
  } catch {}
}

async function isDone(hf: Holdfast): Promise<boolean> {
  const { threads } = await hf.threads()
  return threads.length > 0 && threads.every(({ status, wakeAt }) => status === 'completed' && wakeAt === null)
}

describe('threads that await each other, crashed at any call of the store', () => {
  const ways = (['run', 'worker'] as const).flatMap((first) =>
    (['run', 'worker'] as const).flatMap((second) =>
      (['before', 'after'] as const).map((moment) => ({ first, second, moment })),
    ),
  )
  const numbered = ways.map((way, i) => ({ ...way, from: 1 + (i % STRIDE) }))

  it.each(numbered)('each is begun once and heard of: $first, crashed $moment the call, then $second', async (way) => {
    for (let nth = way.from; ; nth += STRIDE) {
      const clock = virtualClock()
      const driver = await openDriver('memory:', { clock })
      const faulty = faultyDriver(driver)
      faulty.crashAt(nth, way.moment)
      const paid: Paid = new Map()
      await start(way.first, open(faulty, clock), clock, () => faulty.crashed, paid)
      const { crashed } = faulty
      await clock.advance(60_000)

      const hf = open(driver, clock)
      const { top, programs } = family(paid)
      const thread = hf.thread(top, 't')
      if (way.second === 'run') {
        const outcome = await drive(clock, thread.run({ input: 'x', key: 'first' }))
        expect(outcome, `call ${nth}`).toMatchObject({ status: 'completed', output: OUTPUT })
        // What is left is owed to nobody any more, and cleared by whoever looks for work.
        await work(hf, clock, programs as never, () => isDone(hf))
      } else {
        await thread.enqueue('x', { key: 'first' })
        await work(hf, clock, programs as never, () => isDone(hf))
        expect(await thread.run({ input: 'x', key: 'first' })).toMatchObject({ status: 'completed', output: OUTPUT })
      }
      const { threads } = await hf.threads()
      expect(threads, `call ${nth}`).toHaveLength(5)
      for (const { thread: id } of threads) {
        const { state } = (await hf.log(id)).fold
        expect(state, `call ${nth}`).toMatchObject({ run: { number: 1 } })
        expect([state['errands'], state['children'], state['inputs'] ?? []]).toEqual([undefined, undefined, []])
      }
      expect([...paid.keys()].toSorted()).toEqual(['x.one.below', 'x.three', 'x.two'])
      for (const keys of paid.values()) expect(keys.size).toBe(1)
      await hf.close()
      if (!crashed) return
    }
  })

  it.each(['before', 'after'] as const)(
    'a cancellation reaches all of them, crashed %s any call of it',
    async (moment) => {
      for (let nth = 1; ; nth++) {
        const clock = virtualClock()
        const driver = await openDriver('memory:', { clock })
        const waits = flow<string, unknown>(named('waits'), async (ctx) => ctx.receive('never'))
        const middle = flow<string, unknown>(named('middle'), async (ctx, what) => ctx.run(waits, 'below', what))
        const top = flow<string, unknown>(named('top'), async (ctx, what) =>
          Promise.all([ctx.run(middle, 'one', what), ctx.run(waits, 'two', what)]),
        )
        const hf = open(driver, clock)
        expect(await drive(clock, hf.thread(top, 't').run({ input: 'x' }))).toMatchObject({ status: 'paused' })
        const faulty = faultyDriver(driver)
        faulty.crashAt(nth, moment)
        const isToldSo = await drive(clock, open(faulty, clock).inspect('t').cancel()).catch(() => false)
        await clock.advance(60_000)
        // Whoever was not told whether it worked asks again.
        if (!isToldSo) await drive(clock, hf.inspect('t').cancel())
        await work(hf, clock, [top, middle, waits] as never, async () => {
          const { threads } = await hf.threads()
          return threads.every(({ status, wakeAt }) => status === 'failed' && wakeAt === null)
        })
        const { threads } = await hf.threads()
        expect(threads).toHaveLength(4)
        for (const { thread } of threads) {
          const { state } = (await hf.log(thread)).fold
          expect([nth, state['errands'], state['children']]).toEqual([nth, undefined, undefined])
          expect(state).toMatchObject({ run: { status: 'cancelled' } })
        }
        await hf.close()
        if (!faulty.crashed) return
      }
    },
  )

  it.each(['before', 'after'] as const)('a failure of one is heard of, crashed %s any call', async (moment) => {
    for (let nth = 1; ; nth++) {
      const clock = virtualClock()
      const driver = await openDriver('memory:', { clock })
      const fails = flow<string, unknown>(named('fails'), async () => {
        throw new Error('no luck')
      })
      const top = flow<string, unknown>(named('top'), async (ctx, what) =>
        ctx.run(fails, 'f', what).catch((error: { data: { status: string; reason: string } }) => error.data),
      )
      const faulty = faultyDriver(driver)
      faulty.crashAt(nth, moment)
      await drive(clock, open(faulty, clock).thread(top, 't').run({ input: 'x', key: 'k' })).catch(() => {})
      await clock.advance(60_000)
      const hf = open(driver, clock)
      const thread = hf.thread(top, 't')
      await thread.enqueue('x', { key: 'k' })
      await work(hf, clock, [top, fails] as never, async () => {
        return (await hf.threads()).threads.every(({ wakeAt }) => wakeAt === null)
      })
      const output = { status: 'failed', reason: 'no luck' }
      expect(await thread.run({ input: 'x', key: 'k' }), `call ${nth}`).toMatchObject({ status: 'completed', output })
      expect((await hf.threads()).threads).toHaveLength(2)
      await hf.close()
      if (!faulty.crashed) return
    }
  })
})
