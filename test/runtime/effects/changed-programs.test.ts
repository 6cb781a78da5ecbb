import fc from 'fast-check'
import { type Effect, flow, Holdfast, type Reconciled } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver, virtualClock, type VirtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'

interface Step {
  readonly name: string
  readonly effect: Effect
  /** What it does, whatever it is declared as. */
  readonly pays: boolean
  readonly key?: string
}

/** Branches that run side by side, each step after the one before. */
type Program = readonly (readonly Step[])[]

/** What is different when the run is resumed. */
interface Change {
  readonly effect: Effect | undefined
  readonly key: boolean
  readonly removed: boolean
  readonly reversed: boolean
  readonly at: number
}

const KINDS = ['read', 'idempotent', 'reconcilable', 'once'] as const
const programs: fc.Arbitrary<Program> = fc
  .array(fc.array(fc.constantFrom(...KINDS), { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 2 })
  .map((branches) =>
    branches.map((kinds, b) => kinds.map((effect, i) => ({ name: `s${b}${i}`, effect, pays: effect !== 'read' }))),
  )
const changes: fc.Arbitrary<Change> = fc.record({
  effect: fc.option(fc.constantFrom(...KINDS), { nil: undefined }),
  key: fc.boolean(),
  removed: fc.nat(3).map((n) => n === 0),
  reversed: fc.boolean(),
  at: fc.nat(3),
})

/** The program of another day: one step of it is another one, or gone, and branches may come in another order. */
function change(program: Program, { effect, key, removed, reversed, at }: Change): Program {
  const names = program.flat().map(({ name }) => name)
  const chosen = names[at % names.length]
  const now = program.map((branch) =>
    branch.flatMap((step) => {
      if (step.name !== chosen) return [step]
      // The key of an idempotent effect that left no record is nobody's to know.
      const isOwn = key && step.effect !== 'idempotent' && step.effect !== 'read'
      return removed ? [] : [{ ...step, effect: effect ?? step.effect, ...(isOwn ? { key: 'another key' } : {}) }]
    }),
  )
  return reversed ? now.toReversed() : now
}

/** A service that does each thing once per key, and tells what it did. */
class Service {
  readonly done = new Map<string, Set<string>>()
  readonly calls = new Map<string, number>()

  call(name: string, key: string): string {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1)
    this.done.set(name, (this.done.get(name) ?? new Set()).add(key))
    return `${name} done`
  }

  ask(key: string): Reconciled<string> {
    const name = [...this.done].find(([, keys]) => keys.has(key))?.[0]
    return name === undefined ? { outcome: 'not-executed' } : { outcome: 'executed', result: `${name} done` }
  }
}

function build(program: Program, service: Service) {
  return flow<number, number>({ name: 'changing', version: '1.0.0' }, async (ctx) => {
    const branch = async (steps: readonly Step[]) => {
      for (const { name, effect, pays, key } of steps) {
        await ctx.step(
          name,
          {
            effect,
            ...(effect === 'reconcilable' ? { reconcile: (asked: string) => service.ask(asked) } : {}),
            ...(key === undefined ? {} : { idempotencyKey: key }),
          },
          ({ idempotencyKey }) => (pays ? service.call(name, idempotencyKey) : 'seen'),
        )
      }
    }
    await Promise.all(program.map(branch))
    return 1
  })
}

async function drive<Result>(clock: VirtualClock, running: Promise<Result>): Promise<Result> {
  let over = false
  const mark = () => {
    over = true
  }
  running.then(mark, mark)
  while (!over) await clock.advance(60_000)
  return running
}

it('no effect is made twice or forgotten when the program changes between a crash and the resume, and every run ends', async () => {
  await fc.assert(
    fc.asyncProperty(programs, changes, fc.nat(12), fc.boolean(), async (program, changed, call, after) => {
      const clock = virtualClock()
      const driver = await openDriver('memory:', { clock })
      const mortal = faultyDriver(driver)
      const service = new Service()
      mortal.crashAt(call + 1, after ? 'after' : 'before')
      const first = new Holdfast(new LogStore(mortal, { clock })).thread(build(program, service), 't')
      await drive(clock, first.run({ input: 1, key: 'message' })).catch(() => {})
      const begun = new Set(service.done.keys())

      const now = change(program, changed)
      const hf = new Holdfast(new LogStore(driver, { clock }))
      const left = (await hf.log('t')).fold.state['run'] as { readonly status?: string } | undefined
      const thread = hf.thread(build(now, service), 't')
      let outcome = await drive(clock, thread.run({ input: 1, key: 'message' }))
      for (let i = 0; outcome.status === 'paused' && i < 20; i++) {
        for (const { id, question } of outcome.pauses) {
          const { step, idempotencyKey } = question as { step: string; idempotencyKey: string }
          const isDone = service.done.get(step)?.has(idempotencyKey) ?? false
          await thread.answer(id, isDone ? { outcome: 'succeeded', result: 'found' } : { outcome: 'not-executed' })
        }
        outcome = await drive(clock, thread.run())
      }

      expect(['completed', 'incompatible', 'failed']).toContain(outcome.status)
      for (const [name, keys] of service.done) expect([name, keys.size]).toEqual([name, 1])
      const mustNotRepeat = program.flat().filter(({ effect }) => effect === 'once' || effect === 'reconcilable')
      for (const { name } of mustNotRepeat) expect([name, (service.calls.get(name) ?? 0) > 1]).toEqual([name, false])
      // What left no record, as an idempotent effect may, can't be missed.
      const kept = new Set(now.flat().map(({ name }) => name))
      const isKept = ({ name, effect }: Step) => kept.has(name) || !begun.has(name) || effect === 'idempotent'
      if (outcome.status === 'completed' && left?.status === 'running') expect(program.flat().every(isKept)).toBe(true)
    }),
    randomly(rounds(250)),
  )
})
