import fc from 'fast-check'
import type { RunOptions } from 'holdfast'
import { type Edit, edits } from './versions.js'

/** Something that happens at a moment: just before the nth thing that any process does. */
export type Blow =
  /** The process that was about to do it is dead. */
  | { readonly kind: 'kill'; readonly at: number }
  /** It stands still, and goes on after so many things that others did, or when all is over. */
  | { readonly kind: 'freeze'; readonly at: number; readonly for: number }
  /** The reply to its next append is lost, before or after the store did it. */
  | { readonly kind: 'lose'; readonly at: number; readonly landed: boolean }
  /** People and other processes who don't wait for the run to rest. */
  | { readonly kind: Visit; readonly at: number }

export type Visit = 'answer' | 'signal' | 'cancel' | 'second-input' | 'interrupt' | 'replace' | 'redeliver' | 'wait-for'

export interface Chaos {
  readonly blows: readonly Blow[]
  /** How each process takes the thread up, in turn. */
  readonly modes: readonly Mode[]
  readonly options: readonly Pick<RunOptions, 'durability' | 'frequency'>[]
  /** How long it takes until somebody takes up what a dead process left. */
  readonly delays: readonly number[]
  readonly secondInput: boolean
  /** How far the clock of each process is ahead of the store's, in turn. */
  readonly skews?: readonly number[]
  /** What changes in the program, and from which process on. */
  readonly edits?: readonly Edit[]
  /** What people say to what they are asked to agree to. */
  readonly mood?: number
  /** The thread is erased when all is over, and its id used again for the same. */
  readonly reuse?: boolean
}

export type Mode = 'run' | 'run-input' | 'worker'

const moment = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 160 }))

const blow: fc.Arbitrary<Blow> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('kill' as const), at: moment }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('freeze' as const),
      at: moment,
      for: fc.constantFrom(5, 20, 60, 1_000_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('lose' as const), at: moment, landed: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom<Visit>('answer', 'signal', 'second-input', 'redeliver', 'wait-for'),
      at: moment,
    }),
  },
)

const durability = fc.constantFrom('sync' as const, 'sync' as const, 'async' as const, { lag: 1 })
const frequency = fc.constantFrom('step' as const, 'step' as const, { every: 2 }, { every: 3 }, 'boundary' as const)

const minute = 60 * 1000
const hour = 60 * minute
const day = 24 * hour

const ending = fc.record({ kind: fc.constantFrom<Visit>('cancel', 'cancel', 'interrupt', 'replace'), at: moment })

const common = {
  blows: fc
    .tuple(fc.array(blow, { maxLength: 6 }), fc.option(ending, { freq: 12 }))
    .map(([blows, cancel]) => (cancel ? [...blows, cancel] : blows)),
  modes: fc.array(fc.constantFrom<Mode>('run', 'run-input', 'worker'), { minLength: 1, maxLength: 3 }),
  options: fc.array(fc.record({ durability, frequency }), { minLength: 1, maxLength: 2 }),
  delays: fc.array(fc.constantFrom(10_001, 10_001, 10_001, 2 * day), { minLength: 1, maxLength: 2 }),
  secondInput: fc.nat(3).map((drawn) => drawn === 3),
  skews: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.constantFrom(0, minute / 2, hour, -hour, 3 * day), { minLength: 1, maxLength: 3 }),
    },
  ),
  mood: fc.nat(3),
  reuse: fc.nat(9).map((drawn) => drawn === 9),
}

/** The program stays as it is. */
export const chaos: fc.Arbitrary<Chaos> = fc.record(common)

/** The program changes while its run is under way. */
export const changingChaos: fc.Arbitrary<Chaos> = fc.record({ ...common, edits })
