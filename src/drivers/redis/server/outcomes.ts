import { HoldfastError } from '../../../core/errors.js'
import type { Reply } from '../client.js'
import type { Outcome } from '../connection.js'
import { toDriverError } from './errors.js'

/**
 * The replies of calls that write many things independently. Results have no place for an error, so one failed call
 * fails them all. The error may say that nothing was written only if that is true of every call; in a reply, 1 stands
 * for what was written.
 */
export function checkOutcomes(outcomes: readonly Outcome[]): readonly Reply[] {
  const errors = outcomes.flatMap((outcome) => ('error' in outcome ? [toDriverError(outcome.error, true)] : []))
  const first = errors.find((error) => error.data['written'] !== 'nothing') ?? errors[0]
  if (first === undefined) return outcomes.map((outcome) => (outcome as { reply: Reply }).reply)
  const landed = outcomes.some((outcome) => 'reply' in outcome && hasLanded(outcome.reply))
  throw landed ? afterOthers(first) : first
}

/** An error of a part whose other parts landed: it must not say that nothing was written. */
export function afterOthers(error: HoldfastError): HoldfastError {
  if (error.data['written'] !== 'nothing') return error
  return new HoldfastError(error.code, `${error.message} Other writes of the same call landed.`, {
    data: { ...error.data, written: 'unknown' },
    retryable: error.retryable,
    cause: error,
  })
}

function hasLanded(reply: Reply): boolean {
  return reply === 1 || (Array.isArray(reply) && reply.includes(1))
}
