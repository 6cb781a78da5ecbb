import type { Clock } from '../../../core/time/clock.js'
import { isHoldfastError } from '../../../core/errors.js'
import type { Claim } from '../../../log/write/claim.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import { set } from '../../../log/entry/ops.js'
import { recordError } from '../../errors.js'
import { currentRun } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'

/** A store that is silent for longer than this has forgotten what it was sent before. */
const PERSIST_MS = 10 * 60_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000

/**
 * Releases a claim whose run ended because the store failed, as soon as the store answers again: otherwise the next
 * worker waits for a lease that nobody holds anymore, or that a late renewal brings back. Also reports that the worker
 * is alive, so that the claim does not count as a crash. Never rejects, and nobody waits for it.
 */
export async function giveUp(
  claim: Claim,
  { clock, random }: { readonly clock: Clock; readonly random: () => number },
  cause: unknown,
  wasAlone: boolean,
): Promise<void> {
  const deadline = clock.monotonic() + PERSIST_MS
  const release = async (decide?: (fold: Fold) => readonly Draft[] | undefined): Promise<boolean> => {
    try {
      await claim.release(decide)
      return true
    } catch (error) {
      return isHoldfastError(error) && OVER.has(error.code)
    }
  }
  const pause = (ms: number) => clock.sleep(ms * (0.5 + 0.5 * random()))
  for (let failures = 0; clock.monotonic() < deadline; failures++) {
    // A store at its limit may refuse entries and still end a lease.
    if ((await release((fold) => interrupted(fold, cause, wasAlone))) || (await release())) {
      if (failures === 0) return
      // What was sent to a server that stood still may be executed in any order when it continues.
      await pause(LONGEST_PAUSE_MS)
      await release()
      return
    }
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures))
  }
}

/** From here on there is nothing left to release. */
const OVER: ReadonlySet<string> = new Set(['fenced', 'closed', 'not-found', 'conflict'])

// Nothing else about the run changes. What was in progress may have happened: that stays as open as after a crash.
function interrupted(fold: Fold, cause: unknown, wasAlone: boolean): readonly Draft[] | undefined {
  const state = fold.state as RunState
  const run = currentRun(state)
  if (run === undefined) return undefined
  const { claims = 0, alone = 0 } = state
  return [
    {
      kind: 'park',
      ops: [
        ...(claims > 0 ? [set('claims', claims - 1)] : []),
        ...(alone > 0 && wasAlone ? [set('alone', alone - 1)] : []),
      ],
      data: { events: [{ type: 'run', run, status: 'interrupted', error: recordError(cause) }] },
    },
  ]
}
