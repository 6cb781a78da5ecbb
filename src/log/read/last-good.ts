import { isHoldfastError } from '../../core/errors.js'
import type { Driver, LogKey, Tail } from '../contract.js'
import type { Fold } from '../entry/fold.js'

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
