import { CorruptError, type HoldfastError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { LogKey } from '../contract.js'
import { formatCheckpointId } from '../entry/checkpoint-id.js'
import type { Fold } from '../entry/fold.js'

/** What is wrong with a log as its reader reports it: with the newest checkpoint that still verifies. */
export function damageError(log: LogKey, failure: HoldfastError, lastGood: Fold | undefined): CorruptError {
  const cause = failure.cause ?? failure
  const { plain, overBudget } = failure.data
  const isOdd = plain === true || overBudget === true
  const what = plain === true ? "can't be trusted" : overBudget === true ? 'is too large to read' : 'is damaged'
  const message = `${nameLog(log)} ${what}: ${firstSentence(failure)}`
  const remedy = isOdd ? failure.remedy : undefined
  return corruptLog(log, message, lastGood, failure.data, cause, remedy)
}

export function corruptLog(
  log: LogKey,
  message: string,
  lastGood: Fold | undefined,
  data: object = {},
  cause?: unknown,
  remedy?: string,
): CorruptError {
  const id = lastGood && lastGood.seq >= 0 ? formatCheckpointId(log.branch, lastGood.seq, lastGood.hash) : undefined
  return new CorruptError(message, { ...data, log, lastGood: id }, cause, remedy)
}

/** An entry that was there once. */
export function prunedError(log: LogKey, seq: number, oldest: number): NotFoundError {
  return new NotFoundError(
    `Entry ${seq} of ${nameLog(log)} was pruned; the oldest kept is ${oldest}.`,
    'Use a checkpoint that history lists, or restore an archive.',
    { seq, oldest },
  )
}

/** Nothing instead of damage; any other failure stays one. */
export function unlessCorrupt(error: unknown): undefined {
  if (!isHoldfastError(error, 'corrupt')) throw error
}

function firstSentence(error: HoldfastError): string {
  return error.remedy && error.message.endsWith(error.remedy)
    ? error.message.slice(0, -error.remedy.length).trim()
    : error.message
}
