import fc from 'fast-check'
import type { RunOptions } from 'holdfast'

/** Something that happens at a moment: just before the nth thing that any process does. */
export type Blow =
  /** The process that was about to do it is dead. */
  | { readonly kind: 'kill'; readonly at: number }
  /** It stands still, and goes on after so many things that others did, or when all is over. */
  | { readonly kind: 'freeze'; readonly at: number; readonly for: number }
  /** The reply to its next append is lost, before or after the store did it. */
  | { readonly kind: 'lose'; readonly at: number; readonly landed: boolean }
  /** People and other processes who don't wait for the run to rest. */
  | { readonly kind: 'answer' | 'signal' | 'cancel' | 'second-input'; readonly at: number }

export interface Chaos {
  readonly blows: readonly Blow[]
  /** How each process takes the thread up, in turn. */
  readonly modes: readonly Mode[]
  readonly options: readonly Pick<RunOptions, 'durability' | 'frequency'>[]
  /** How long it takes until somebody takes up what a dead process left. */
  readonly delays: readonly number[]
  /** How wrong the clocks of the processes' machines are, in turn. Absent: all are right. */
  readonly skews?: readonly number[]
  readonly secondInput: boolean
}

export type Mode = 'run' | 'run-input' | 'worker'

const moment = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 160 }))

const blow: fc.Arbitrary<Blow> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('kill' as const), at: moment }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('freeze' as const),
      at: moment,
      for: fc.constantFrom(5, 20, 60, 1_000_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('lose' as const), at: moment, landed: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('answer' as const, 'signal' as const, 'second-input' as const),
      at: moment,
    }),
  },
)

const durability = fc.constantFrom('sync' as const, 'sync' as const, 'async' as const, { lag: 1 })
const frequency = fc.constantFrom('step' as const, 'step' as const, { every: 2 }, { every: 3 }, 'boundary' as const)

const hour = 60 * 60 * 1000
const day = 24 * 60 * 60 * 1000

export const chaos: fc.Arbitrary<Chaos> = fc.record({
  blows: fc
    .tuple(
      fc.array(blow, { maxLength: 6 }),
      fc.option(fc.record({ kind: fc.constant('cancel' as const), at: moment }), { freq: 25 }),
    )
    .map(([blows, cancel]) => (cancel ? [...blows, cancel] : blows)),
  modes: fc.array(fc.constantFrom<Mode>('run', 'run-input', 'worker'), { minLength: 1, maxLength: 3 }),
  options: fc.array(fc.record({ durability, frequency }), { minLength: 1, maxLength: 2 }),
  delays: fc.array(fc.constantFrom(10_001, 10_001, 10_001, 2 * day), { minLength: 1, maxLength: 2 }),
  skews: fc.array(fc.constantFrom(0, 0, hour, -hour, 3 * day), { minLength: 1, maxLength: 3 }),
  secondInput: fc.nat(3).map((drawn) => drawn === 3),
})
