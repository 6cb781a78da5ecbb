import fc from 'fast-check'
import { flow, Holdfast, isHoldfastError } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock, type VirtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { fateOf } from '#src/runtime/run/input/given-input.js'
import { findEnded } from '#src/runtime/run/input/input-keys.js'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import { mortalDriver } from '../../support/mortal-driver.js'
import { randomly, rounds } from '../../support/scale.js'

// Any sequence of inputs with and without keys, given once or many times, to a thread that fails, pauses, is pruned,
// cancelled and run by processes that die: no input has two runs, each with a key has exactly one in the end, and what an
// outcome says became of its input is so.

const KINDS = ['run', 'fail', 'ask', 'long'] as const
interface Input {
  readonly n: number
  readonly kind: (typeof KINDS)[number]
}

const call = fc.record({
  kind: fc.constant('call' as const),
  how: fc.constantFrom('run' as const, 'run' as const, 'enqueue' as const),
  /** A new input, or one that was given before. */
  again: fc.option(fc.nat(30)),
  what: fc.constantFrom(...KINDS),
  keyed: fc.boolean(),
  onPaused: fc.constantFrom(undefined, 'return' as const, 'queue' as const, 'cancel' as const),
  busy: fc.constantFrom(undefined, 'queue' as const, 'interrupt' as const),
  dies: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.record({ at: fc.integer({ min: 1, max: 9 }), after: fc.boolean() }) },
  ),
})
const pair = fc.record({ kind: fc.constant('pair' as const), calls: fc.tuple(call, call) })
const other = fc.record({
  kind: fc.constantFrom('resume' as const, 'mend' as const, 'answer' as const, 'cancel' as const, 'prune' as const),
})
const sequence = fc.array(fc.oneof({ weight: 5, arbitrary: call }, { weight: 2, arbitrary: pair }, other), {
  minLength: 3,
  maxLength: 24,
})
type Call = typeof call extends fc.Arbitrary<infer One> ? One : never

class World {
  readonly clock: VirtualClock = virtualClock()
  readonly given: { readonly input: Input; readonly key: string | undefined }[] = []
  /** The runs that each input had. */
  readonly runs = new Map<number, Set<string>>()
  readonly #driver: Driver
  broken = true
  lost = 0

  readonly program = flow({ name: 'teller', version: '1.0.0', retry: { attempts: 1 } }, async (ctx, input: Input) => {
    this.runs.set(input.n, (this.runs.get(input.n) ?? new Set()).add(ctx.runId))
    if (input.kind === 'long') for (let key = 0; key < 4; key++) await ctx.step('part', { key }, () => 'x'.repeat(9000))
    if (input.kind === 'ask') await ctx.pause({ about: input.n })
    return ctx.step('do', () => {
      if (input.kind === 'fail' && this.broken) throw new Error('broken')
      return input.n
    })
  })

  constructor(driver: Driver, clock: VirtualClock) {
    this.#driver = driver
    this.clock = clock
  }

  static async open(): Promise<World> {
    const clock = virtualClock()
    return new World(await openDriver('memory:', { clock }), clock)
  }

  process(driver = this.#driver): Holdfast {
    return new Holdfast(new LogStore(driver, { clock: this.clock }))
  }

  thread(driver?: Driver) {
    return this.process(driver).thread(this.program, 't')
  }

  async state(): Promise<RunState> {
    return (await this.process().log('t')).fold.state as RunState
  }

  /** Something takes the time it takes, or dies on the way. */
  async until<Result>(done: Promise<Result>): Promise<Result> {
    let over = false
    const mark = () => (over = true)
    done.then(mark, mark)
    for (let i = 0; i < 400 && !over; i++) await this.clock.advance(i < 20 ? 20 : 500)
    if (!over) throw new Error(`It hangs: ${JSON.stringify(await this.state())}`)
    return done
  }

  /** One request, and what it was told; undefined if it died. */
  async give({ how, again, what, keyed, onPaused, busy, dies }: Call) {
    const known = again === null ? undefined : this.given[again % Math.max(1, this.given.length)]
    // Without a key nobody can tell whether what was given before is the same: it is given again only where it was refused.
    const isNew = known === undefined || known.key === undefined
    const input: Input = isNew ? { n: this.given.length, kind: what } : known.input
    const key = isNew ? (keyed ? `key ${input.n}` : undefined) : known.key
    if (isNew) this.given.push({ input, key })
    const named = key === undefined ? {} : { key }
    const mortal = mortalDriver(this.#driver)
    if (dies) mortal.dieAt(dies.at, dies.after ? 'after' : 'before')
    const thread = this.thread(mortal.driver)
    const settings = { leaseMs: 5000, ...(onPaused ? { onPaused } : {}), ...(busy ? { busy } : {}) }
    const told =
      how === 'enqueue' ? thread.enqueue(input, named) : thread.run({ input, ...named, ...settings } as never)
    const ended = await Promise.race([told, mortal.died]).catch((error: unknown) => {
      if (isHoldfastError(error, 'fenced')) return 'died' as const
      throw error
    })
    if (ended === 'died') this.lost++
    return ended === 'died' ? undefined : { input, key, fate: ended.input, outcome: ended }
  }

  /** What was said is so. While others are at work, what was queued may have been taken since. */
  async check(said: Awaited<ReturnType<World['give']>>, alone: boolean): Promise<void> {
    if (said === undefined) return
    const { input, key, fate, outcome } = said
    const state = await this.state()
    const ran = this.runs.has(input.n)
    const waits = (state.inputs ?? []).some(({ value }) => (value as unknown as Input).n === input.n)
    const what = `${JSON.stringify(outcome)} of ${input.n} on ${JSON.stringify(state)}`
    // Of one that was cancelled before it did anything only the log knows.
    const isKnown = key !== undefined || ('error' in outcome && outcome.error.code === 'cancelled')
    if (fate === 'taken') expect(ran || isKnown, what).toBe(true)
    if (fate === 'queued') expect(waits || (!alone && ran), what).toBe(true)
    if (fate === 'refused' && (alone || key === undefined)) expect([ran, waits], what).toEqual([false, false])
    if (key !== undefined && alone) expect(fateOf(state, { id: '', key }), what).toBe(fate)
  }

  async act(kind: 'resume' | 'mend' | 'answer' | 'cancel' | 'prune'): Promise<void> {
    const { exists, fold } = await this.process().log('t')
    if (kind === 'mend') this.broken = !this.broken
    if (!exists) return
    if (kind === 'resume') await this.until(this.thread().run({ busy: 'queue' }))
    if (kind === 'cancel') await this.until(this.thread().cancel())
    if (kind === 'prune') await this.process().prune('t', fold.seq)
    if (kind === 'answer') for (const { id } of await this.thread().pauses()) await this.thread().answer(id, 1)
  }

  /** All that is left is done, and everything with a key is given once more. */
  async finish(): Promise<void> {
    this.broken = false
    for (let i = 0; i < 2; i++) {
      await this.#settle()
      for (const { input, key } of this.given) {
        if (key === undefined) continue
        const { input: fate } = await this.until(this.thread().run({ input, key, busy: 'queue' }))
        expect(['taken', 'queued']).toContain(fate)
      }
    }
    await this.#settle()
    for (const { input, key } of this.given) {
      const runs = this.runs.get(input.n)?.size ?? 0
      // One that was cancelled may have ended before it did anything.
      const ended = key === undefined ? 'unknown' : findEnded(await this.state(), key, 'main')?.ended
      expect(ended, `the end of ${input.n}`).toBeDefined()
      expect(ended === 'completed' ? [1] : [0, 1], `runs of ${input.n}`).toContain(runs)
    }
  }

  async #settle(): Promise<void> {
    for (let i = 0; i < 100; i++) {
      if (!(await this.process().log('t')).exists) return
      await this.act('answer')
      const { status } = await this.until(this.thread().run({ busy: 'queue' }))
      if (status === 'completed' && ((await this.state()).inputs ?? []).length === 0) return
      if (status === 'failed' && (await this.state()).run?.status === 'cancelled') return
    }
    throw new Error(`It does not end: ${JSON.stringify(await this.state())}`)
  }
}

it('no input has two runs, each with a key has one, and what is said of it is so', async () => {
  await fc.assert(
    fc.asyncProperty(sequence, async (acts) => {
      const world = await World.open()
      for (const act of acts) {
        if (act.kind === 'call') await world.check(await world.until(world.give(act)), true)
        else if (act.kind === 'pair') {
          const said = await world.until(Promise.all(act.calls.map((one) => world.give(one))))
          for (const one of said) await world.check(one, false)
        } else await world.act(act.kind)
        // Whoever died lets go when his lease is over.
        if (world.lost > 0) await world.clock.advance(5001)
        world.lost = 0
      }
      await world.finish()
    }),
    randomly(rounds(40, 3000)),
  )
})
