import { InvalidOptionError } from '../errors.js'
import { findSimilarNames } from './similar.js'

/** For a value that an option doesn't accept: says what was given, and which value may have been meant. */
export function notAChoice(field: string, given: unknown, known: readonly string[]): InvalidOptionError {
  const quoted = known.map((one) => `'${one}'`)
  const choices = quoted.length === 1 ? quoted[0] : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
  const [likest] = typeof given === 'string' ? findSimilarNames(given, known) : []
  const remedy = likest === undefined ? 'Pass one of them, or leave it out.' : `Did you mean '${likest}'?`
  return new InvalidOptionError(field, `must be ${choices}, not ${describeGiven(given)}`, remedy)
}

/** Refuses what is no whole number of these; otherwise returns it. */
export function checkWhole(
  field: string,
  value: unknown,
  most: number,
  remedy = 'Correct it, or leave it out.',
  least = 1,
): number {
  const whole = value as number
  if (Number.isSafeInteger(whole) && whole >= least && whole <= most) return whole
  const problem = `must be a whole number from ${least} to ${most}, not ${describeGiven(value)}`
  throw new InvalidOptionError(field, problem, remedy)
}

const MAX_SHOWN = 60

/** A value that was refused, short enough for a message. */
export function describeGiven(given: unknown): string {
  if (typeof given === 'string')
    return JSON.stringify(given.length > MAX_SHOWN ? `${given.slice(0, MAX_SHOWN)}…` : given)
  if (given === null || given === undefined) return String(given)
  if (['number', 'boolean', 'bigint'].includes(typeof given)) return String(given)
  if (typeof given === 'function') return 'a function'
  if (Array.isArray(given)) return 'an array'
  return typeof given === 'object' ? 'an object' : `a ${typeof given}`
}
