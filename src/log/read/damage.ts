import { CorruptError, type HoldfastError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Driver, LogKey, Tail } from '../contract.js'
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

/** The seq of the head, if at least that can be read. */
export async function readableEnd(driver: Driver, log: LogKey): Promise<number | undefined> {
  try {
    return (await driver.head(log))?.seq
  } catch {
    return undefined
  }
}

/**
 * The newest fold before an entry that verifies: where a keyframe itself is damaged, an older one may still be good. Only
 * walked when something is wrong already.
 * @param lastOf the fold after the last entry of a tail that verifies, if any does.
 */
export async function lastGoodBefore(
  driver: Driver,
  log: LogKey,
  seq: number,
  lastOf: (tail: Tail) => Promise<Fold | undefined>,
): Promise<Fold | undefined> {
  for (let upTo = seq - 1; upTo >= 0; ) {
    const tail = await driver.tail(log, upTo).catch((error: unknown) => {
      if (isHoldfastError(error, 'corrupt')) return 'damaged' as const
      throw error
    })
    if (tail === 'damaged') {
      upTo--
      continue
    }
    const first = tail?.entries[0]
    if (tail === undefined || first === undefined) return undefined
    const last = await lastOf(tail)
    if (last) return last
    // A damaged row may name any seq, and must not make this walk in circles.
    upTo = Math.min(first.seq, upTo) - 1
  }
  return undefined
}
