import { describeGiven } from '../../../core/wording/choices.js'
import { InvalidOptionError } from '../../../core/errors.js'

/** How often what happened is written: after every step, every n steps, at the start and end of a run, or never. */
export type Frequency = 'step' | 'boundary' | 'none' | { readonly every: number }

/**
 * 'sync': the next step starts once the record of the last is acknowledged. 'async': a limited number may be in flight.
 */
export type Durable = 'sync' | 'async' | { readonly lag: number }

export interface RecordPolicy {
  readonly frequency: Frequency
  readonly durability: Durable
}

const DEFAULT_LAG = 16

/** Refuses unknown policies. */
export function checkRecordPolicy({ frequency, durability }: RecordPolicy): void {
  stepsPerWrite(frequency)
  lagOf(durability)
}

/** How many steps travel in one write. */
export function stepsPerWrite(frequency: Frequency): number {
  // What is kept nowhere is told step by step.
  if (frequency === 'step' || frequency === 'none') return 1
  if (frequency === 'boundary') return Number.POSITIVE_INFINITY
  if (
    typeof frequency === 'object' &&
    frequency !== null &&
    Number.isSafeInteger(frequency.every) &&
    frequency.every >= 1
  ) {
    return frequency.every
  }
  throw new InvalidOptionError(
    'frequency',
    `must be 'step', 'boundary', 'none' or { every: n }, not ${describeGiven(frequency)}`,
    "Leave it out for 'step', or pass for example { every: 10 }.",
  )
}

/** How many writes may be in flight while the program continues. */
export function lagOf(durability: Durable): number {
  if (durability === 'sync') return 0
  if (durability === 'async') return DEFAULT_LAG
  if (
    typeof durability === 'object' &&
    durability !== null &&
    Number.isSafeInteger(durability.lag) &&
    durability.lag >= 1
  ) {
    return durability.lag
  }
  throw new InvalidOptionError(
    'durability',
    `must be 'sync', 'async' or { lag: n }, not ${describeGiven(durability)}`,
    "Leave it out for 'sync', or pass for example { lag: 4 }.",
  )
}
