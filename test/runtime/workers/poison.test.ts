import fc from 'fast-check'
import { flow, Holdfast, type WorkerEvent } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { type VirtualClock, virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { mortalDriver } from '../../support/mortal-driver.js'
import { randomly, rounds } from '../../support/scale.js'

const { set } = ops

const LEASE = 10_000

/** Processes that work on one store, die of what they run, and are replaced at once. */
class Fleet {
  readonly clock: VirtualClock
  readonly events: WorkerEvent[] = []
  readonly #store: Driver
  readonly #options: { readonly concurrency: number; readonly maxCrashes: number }
  crashes = 0
  #dead = new Set<number>()
  #next = 0

  constructor(clock: VirtualClock, store: Driver, options: { concurrency: number; maxCrashes: number }) {
    this.clock = clock
    this.#store = store
    this.#options = options
  }

  /** `program` is made for the process that runs it, which it can end. */
  start(program: (die: () => void, isDead: () => boolean) => Parameters<Holdfast['worker']>[0]['programs'][number]) {
    const id = this.#next++
    const { driver, dieAt } = mortalDriver(this.#store)
    const die = () => {
      if (this.#dead.has(id)) return
      this.#dead.add(id)
      this.crashes++
      dieAt(1, 'before')
      this.start(program)
    }
    const hf = new Holdfast(new LogStore(driver, { clock: this.clock }))
    hf.worker({
      programs: [program(die, () => this.#dead.has(id))],
      ...this.#options,
      leaseMs: LEASE,
      handleSignals: false,
      onEvent: (event) => this.events.push(event),
    })
    return hf
  }
}

const forever = () => new Promise<never>(() => {})

describe('a thread that ends every process that runs it', () => {
  const world = fc.record({
    innocents: fc.integer({ min: 1, max: 14 }),
    poisons: fc.integer({ min: 1, max: 2 }),
    processes: fc.integer({ min: 1, max: 3 }),
    concurrency: fc.integer({ min: 1, max: 12 }),
    maxCrashes: fc.integer({ min: 1, max: 6 }),
    steps: fc.integer({ min: 1, max: 3 }),
    stepMs: fc.integer({ min: 0, max: 8000 }),
    fuseMs: fc.integer({ min: 0, max: 4000 }),
  })

  it('is parked, and none of those that shared its processes', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ({ innocents, poisons, processes, steps, stepMs, fuseMs, ...options }) => {
        const clock = virtualClock()
        const store = await openDriver('memory:', { clock })
        const fleet = new Fleet(clock, store, options)
        const work = (die: () => void, isDead: () => boolean) =>
          flow({ name: 'work', version: '1.0.0' }, async (ctx, kind: string) => {
            for (let key = 0; key < steps; key++) {
              await ctx.step('one', { key }, async () => {
                await clock.sleep(kind === 'poison' ? fuseMs : stepMs)
                if (isDead()) await forever()
                if (kind !== 'poison') return
                die()
                await forever()
              })
            }
          })
        const hf = new Holdfast(new LogStore(store, { clock }))
        const program = work(
          () => {},
          () => false,
        )
        for (let i = 0; i < innocents + poisons; i++) {
          await hf.thread(program, `t-${i}`).enqueue(i < poisons ? 'poison' : 'innocent')
        }
        for (let i = 0; i < processes; i++) fleet.start(work)
        const atRest = async () => {
          const { threads } = await hf.threads({ limit: 100 })
          return threads.every(({ status }) => status === 'completed' || status === 'failed')
        }
        // Each crash costs the lease of all that were there, and each suspect a turn of its own.
        for (let minutes = 0; minutes < 60 && !(await atRest()); minutes++) await clock.advance(60_000)
        for (let i = 0; i < innocents + poisons; i++) {
          const outcome = await hf.thread(program, `t-${i}`).waitFor()
          const expected = i < poisons ? { status: 'failed', error: { code: 'poisoned' } } : { status: 'completed' }
          expect(outcome, `t-${i} ${JSON.stringify('error' in outcome && outcome.error)}`).toMatchObject(expected)
        }
        // A single crash is never enough, because it could have been that of any thread that was there.
        expect(fleet.crashes).toBeLessThanOrEqual(poisons * Math.max(2, options.maxCrashes))
      }),
      randomly(rounds(15)),
    )
  })

  it('is not blamed for a crash that it shared with a run of the same process that nobody put off', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const hf = new Holdfast(new LogStore(driver, { clock }))
    let finish = () => {}
    const waits = flow({ name: 'waits', version: '1.0.0' }, (ctx) =>
      ctx.step('wait', () => new Promise<void>((resolve) => (finish = resolve))),
    )
    const direct = flow({ name: 'direct', version: '1.0.0' }, async (ctx) => {
      const { alone } = (await hf.log('suspect')).fold.state
      return ctx.step('look', () => alone ?? null)
    })
    await hf.thread(waits, 'suspect').enqueue(null)
    // Taken four times by processes that are gone: once more and it would have ended five.
    const log = await hf.log('suspect')
    for (const claims of [1, 2, 3, 4]) {
      const claim = await log.claim({
        owner: 'gone',
        ms: 1000,
        decide: () => [{ kind: 'resume', ops: [set('claims', claims)] }],
      })
      await claim.release()
    }
    const worker = hf.worker({ programs: [waits], handleSignals: false, leaseMs: LEASE })
    await clock.advance(1000)
    const alone = async () => (await hf.log('suspect')).fold.state['alone']
    expect(await alone()).toBe(1)
    // Before it begins, the log says that the suspect has company.
    expect(await hf.thread(direct, 'beside').run({ input: null })).toMatchObject({ output: 0 })
    expect(await alone()).toBe(0)
    finish()
    await clock.advance(1000)
    expect(await hf.thread(waits, 'suspect').waitFor()).toMatchObject({ status: 'completed' })
    await worker.stop()
  })
})
