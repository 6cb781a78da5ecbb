import { onAbort } from '../../../core/async/on-abort.js'
import type { Log } from '../../../log/log.js'
import { HeldThread } from './held-thread.js'
import { driveRuns } from './hold.js'
import { type Outcome, readOutcome } from '../state/outcome.js'
import type { RecordedReads } from '../record/recorded-reads.js'
import type { Request } from '../request/request.js'
import type { RunState } from '../state/run-state.js'
import { Unrecorded } from '../record/run-claim.js'

/** Runs without a claim and without a record. */
export async function driveUnrecorded(
  request: Request,
  log: Log,
  recordedReads: RecordedReads | undefined,
): Promise<Outcome> {
  const { options, place, key, input } = request
  const before = log.fold.state as RunState
  const fork = before.fork ?? request.begins
  const state = {
    ...(before.state ? { state: before.state } : {}),
    ...(fork ? { fork: fork as never } : {}),
    ...(before.left ? { left: before.left as never } : {}),
    inputs: (input ? [input] : []) as never,
  }
  const held = new HeldThread(request, new Unrecorded({ ...log.fold, state }), undefined, recordedReads)
  const letGo = onAbort(options.signal, () => held.abort.abort(options.signal?.reason))
  try {
    const outcome = { ...readOutcome(key, await driveRuns(held)), checkpoint: undefined }
    return input === undefined ? outcome : { ...outcome, input: 'taken' }
  } catch (error) {
    held.unwatch('lost', error)
    throw error
  } finally {
    place.leave()
    letGo()
  }
}
