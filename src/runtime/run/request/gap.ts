import type { Claim } from '../../../log/write/claim.js'
import type { ClaimOptions } from '../../../log/write/claim-options.js'
import { isHoldfastError } from '../../../core/errors.js'
import type { PossibleLoss } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { Log } from '../../../log/log.js'
import { type Op, remove, set } from '../../../log/entry/ops.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'

/** A possible loss, and the thread as it was when the store came back. */
interface Lost {
  readonly loss: PossibleLoss
  readonly past: Fold
}

/**
 * Claims a thread. If the store came back and may have lost its newest records, the claim notes which runs may have
 * gone further than the log says: their effects count as possibly begun, in this process and in every later one.
 */
export async function claimThread(log: Log, options: ClaimOptions): Promise<Claim> {
  for (;;) {
    const lost = log.loss && (await readLoss(log, log.loss))
    const decide = (fold: Fold): readonly Draft[] => {
      if (log.loss?.at !== lost?.loss.at || log.loss?.after !== lost?.loss.after) throw new CameBack()
      return withOps(options.decide?.(fold) ?? [], noteGap(fold.state as RunState, lost))
    }
    try {
      return await log.claim({ ...options, decide })
    } catch (error) {
      if (!(error instanceof CameBack)) throw error
    }
  }
}

/** Since when the current run may have begun effects of which no record is left; undefined if that can't be. */
export function gapOf({ gap, run }: RunState): number | undefined {
  return run !== undefined && gap?.runs.includes(run.id) ? gap.since : undefined
}

async function readLoss(log: Log, loss: PossibleLoss): Promise<Lost> {
  const { fold } = log
  if (loss.after >= fold.seq) return { loss, past: fold }
  // What others sent since then is not in doubt: only what was there before.
  const past = await log.at(loss.after).catch((error: unknown) => {
    if (!isHoldfastError(error, 'not-found')) throw error
    return fold
  })
  return { loss, past }
}

// Whatever happened in the lost part belongs to a run that was in progress, or to an input that was waiting: what began
// with an input that is lost as well begins again only when that is given again.
function noteGap(state: RunState, lost: Lost | undefined): readonly Op[] {
  const { gap } = state
  if (lost === undefined && gap === undefined) return []
  const before = new Set(lost && runsOf(lost.past.state as RunState))
  const runs = runsOf(state).filter((run) => before.has(run) || gap?.runs.includes(run))
  if (runs.length === 0) return gap ? [remove('gap')] : []
  if (lost === undefined && runs.length === gap?.runs.length) return []
  return [set('gap', { since: Math.min(gap?.since ?? Infinity, lost?.past.at ?? Infinity), runs })]
}

// Also those left for later: their time may have come in the lost part.
function runsOf({ run, inputs = [], later = [] }: RunState): readonly string[] {
  return [...(isUnfinished(run) ? [run.id] : []), ...[...inputs, ...later].map(({ id }) => id)]
}

function withOps(drafts: readonly Draft[], ops: readonly Op[]): readonly Draft[] {
  if (ops.length === 0) return drafts
  const last = drafts.at(-1)
  if (last === undefined) return [{ kind: 'effect', ops }]
  return [...drafts.slice(0, -1), { ...last, ops: [...(last.ops ?? []), ...ops] }]
}

/** Ends a claim that was based on the store as it was before it came back. */
class CameBack extends Error {}
