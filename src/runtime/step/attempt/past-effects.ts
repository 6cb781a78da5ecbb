import type { Value } from '../../../codec/value.js'
import { isHoldfastError, NotExecutedError } from '../../../core/errors.js'
import { nondeterministic } from '../../errors.js'
import { gapOf } from '../../run/request/gap.js'
import { isBegun } from '../../run/state/read-run-state.js'
import type { ForkRecord, StepRecord } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import type { Effect } from '../context.js'
import { failed, Ledger, recordAt, type Resolved, sinceOf } from './ledger.js'
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

const PERMISSION_ANSWER: Value = {
  type: 'object',
  properties: { allowed: { type: 'boolean' }, result: {} },
  required: ['allowed'],
  additionalProperties: false,
}

/** The outcome of an effect that may have happened; undefined if it did not. */
async function findOut(run: Run, ledger: Ledger, before: StepRecord | undefined): Promise<Resolved | undefined> {
  const missing = isBegun(before) ? undefined : missingRecord(run, ledger.effect)
  // Kept with the intent, so that the same question is asked until it is answered.
  if (missing) ledger.miss(missing)
  const late = await ledger.settle()
  if (late?.status === 'returned') return late
  if (late?.status !== 'threw' || !isHoldfastError(late.error, 'not-executed')) {
    return ledger.resolve(before?.error?.message ?? missing?.message ?? null, late?.status === 'running')
  }
  ledger.raise()
  return undefined
}

/**
 * Resolves an effect whose record the store may have lost, before anybody is asked whether it may begin. Undefined if
 * it did not happen, or if that is not in doubt.
 */
export async function findLost(run: Run, work: Work): Promise<Resolved | undefined> {
  const before = recordAt(run, work)
  const ledger = new Ledger(run, work, before)
  const isLost = isBegun(before) ? before.missing : mayBeMissing(run, before)
  if (!ledger.mustNotRepeat || !isLost) return undefined
  const known = await findOut(run, ledger, before)
  if (known) return { ...known, result: known.result === undefined ? undefined : run.keep(known.result) }
  // From here on it is one that was not begun.
  if (isBegun(recordAt(run, work))) ledger.raise()
  return undefined
}

/**
 * Resolves an effect that was begun where a transaction is now, which begins nothing itself. Undefined if nothing was
 * begun, or if it did not happen.
 */
export async function findBegun(run: Run, work: Work): Promise<Resolved | undefined> {
  const before = recordAt(run, work)
  if (!isBegun(before)) return undefined
  checkInput(work, before)
  return findOut(run, new Ledger(run, work, before), before)
}

/**
 * On a branch that time travel created, an effect on the outside world needs permission: what happened on the branch it
 * came from has happened. Resolves to a result that stands in for the effect, or to undefined if it may run.
 */
export async function permit(run: Run, work: Work, effect: Effect): Promise<{ readonly result: unknown } | undefined> {
  const fork = forkOf(run)
  if (fork === undefined || fork.effects === 'allow') return undefined
  const begun = recordAt(run, work)
  // Begun on this very branch: permission was given, and its outcome is another question.
  if (isBegun(begun) || (begun?.status === 'retry' && !begun.inherited)) return undefined
  if (fork.effects === 'deny') throw failed(work, new NotExecutedError(`Branch "${run.key.branch}" allows no effects.`))
  const from = { branch: fork.branch, seq: fork.seq }
  const question = {
    effect,
    step: work.path,
    input: work.input ?? null,
    ...(fork.restarted
      ? { restartedBeside: from, begunThere: 'unknown' }
      : { forkedFrom: from, begunThere: isBegunThere(begun) || (await run.begunBeyond(from, work.path)) }),
  }
  const answer = (await work.ask('permission', question, PERMISSION_ANSWER)) as { allowed: boolean; result?: unknown }
  if (answer.allowed) return undefined
  if ('result' in answer) return { result: answer.result }
  throw failed(work, new NotExecutedError('Permission to run this effect on a fork was denied.'))
}

function isBegunThere(record: StepRecord | undefined): boolean {
  return record?.inherited === true && (record.status === 'started' || record.child !== undefined)
}

// A branch that was created below the runtime says nothing about effects, or has what its parent said: then a person
// decides.
function forkOf({ state, log }: Run): ForkRecord | undefined {
  const { origin } = log.fold
  const { fork } = state
  if (origin === null) return fork
  if (fork?.branch === origin.branch && fork.seq === origin.seq) return fork
  return { branch: origin.branch, seq: origin.seq, effects: 'ask', reads: 'live' }
}

// An intent without an end is an effect that may have happened. One with the service's key needs none: it is repeated,
// as long as the service still knows the key.
function mayHaveHappened(run: Run, work: Work, ledger: Ledger, before: StepRecord | undefined): boolean {
  if (ledger.effect === 'read') return false
  if (ledger.effect !== 'idempotent') return isBegun(before) || mayBeMissing(run, before)
  const since = sinceOf(run, work, before)
  return since !== undefined && ledger.isOlderThanKey(since)
}

// The store came back and may have lost its newest records, the intent of this effect among them.
function mayBeMissing({ state }: Run, before: StepRecord | undefined): boolean {
  const since = gapOf(state)
  return since !== undefined && before?.clear !== since
}

function missingRecord({ state }: Run, effect: Effect): Error | undefined {
  const since = effect === 'idempotent' ? undefined : gapOf(state)
  if (since === undefined) return undefined
  const last = new Date(since).toISOString()
  return new Error(`The store came back and may have lost what was recorded after ${last}: this may have begun then.`)
}

/** Refuses to continue what was begun with another input. */
export function checkInput(work: Work, before: StepRecord | undefined): void {
  if (before?.input === undefined || before.input === work.inputHash()) return
  throw nondeterministic(`Step "${work.path}" was begun with another input than it has now.`, work.path)
}
