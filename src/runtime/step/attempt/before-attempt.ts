import type { StepRecord } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import { type Ledger, type Resolved, sinceOf } from '../effect/ledger.js'
import { findOut, mayHaveHappened, permit } from '../effect/past-effects.js'
import type { Work } from '../work.js'

/** What must be known before an effect is attempted at all. Its outcome, if there is one already. */
export async function beforeEffect(
  run: Run,
  work: Work,
  ledger: Ledger,
  before: StepRecord | undefined,
): Promise<Resolved | undefined> {
  const { effect } = ledger
  ledger.unsure = effect === 'idempotent' && sinceOf(run, work, before) !== undefined
  const instead = await permit(run, work, effect)
  if (instead) return { result: instead.result, writes: [] }
  // A machine that slept takes the key for younger than it is.
  const woken = effect === 'idempotent' ? run.clock.catchUp() : undefined
  if (woken) await woken
  if (!mayHaveHappened(run, work, ledger, before)) return undefined
  const known = await findOut(run, ledger, before)
  if (known === undefined) ledger.unsure = false
  return known
}

/**
 * What must be so before each attempt at something that reaches the outside world: its intent is durable, the lease
 * holds, and the service still knows its key. The outcome of an earlier attempt, where that is resolved first.
 */
export async function beforeAttempt(run: Run, ledger: Ledger): Promise<Resolved | undefined> {
  await ledger.announce()
  await run.lease?.secure()
  const jump = ledger.unsure ? run.clock.catchUp() : undefined
  if (jump) await jump
  if (!ledger.unsure || !ledger.isForgotten) return undefined
  const late = await ledger.settle()
  if (late?.status === 'returned') return late
  const known = await ledger.resolve(ledger.trouble)
  if (known) return known
  ledger.unsure = false
  await ledger.announce()
  return undefined
}
