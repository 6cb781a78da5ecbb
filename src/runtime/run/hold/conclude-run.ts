import type { Fold } from '../../../log/entry/fold.js'
import type { Updated } from '../../../log/write/update.js'
import { type Ending, endOf } from './conclude.js'
import type { HeldThread } from './held-thread.js'
import type { Drive } from '../run-terms.js'

/** Writes how a run ended or what it waits for. Undefined if something arrived that lets it continue. */
export async function concludeRun(
  held: HeldThread,
  driven: Drive,
  how: Pick<Ending, 'goOn' | 'settled'>,
): Promise<Updated | undefined> {
  let decided: { readonly seq: number; readonly at: number } | undefined
  const decide = (fold: Fold) => {
    // Of what came since then, the program knows nothing.
    const unmovedSince = held.unmoved?.seq === fold.seq ? held.unmoved.at : undefined
    const ending = { ...held.ending, unmovedSince, ...how }
    decided = { seq: fold.seq, at: ending.now }
    return endOf(fold, driven, ending)
  }
  const ended = await (how.goOn ? held.conclude(decide, false) : held.concludeLast(decide))
  // Something arrived while the run was about to wait, so it continues at once. But a program that does nothing with
  // it would be called forever: if nothing was written since, it waits all the same.
  held.unmoved = ended === undefined ? decided : undefined
  return ended
}

/** Whether another run follows on this claim. */
export function goesOn(
  { target, log }: HeldThread,
  driven: Drive,
  id: string | undefined,
  isCancelled: boolean,
): boolean {
  if (driven.status !== 'completed' && !isCancelled) return false
  if (target !== undefined) return id !== target
  // As long as nothing of this run is written, its own input lies among those that others see.
  return (log.acknowledged.inputs ?? []).some((input) => input.id !== id)
}
