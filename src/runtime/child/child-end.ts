import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue } from '../../codec/value.js'
import { isHoldfastError } from '../../core/errors.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { LogStore } from '../../log/log-store.js'
import type { ProgramPlan } from '../program/program.js'
import { findEnded } from '../run/input/input-keys.js'
import { readOutcome } from '../run/state/outcome.js'
import { isStuck, isUnfinished } from '../run/state/read-run-state.js'
import type { RunRecord, RunState } from '../run/state/run-state.js'
import { showFold } from '../step/record/kept-results.js'
import type { ChildEnd } from './child-records.js'

/** The run of an input, by its key. */
interface Which {
  readonly run?: string
  readonly key?: string
}

/**
 * How the run of an input ended, as its log says now. Undefined while it is in progress, waits, or is not there.
 * @param plan for what a program gives back that is not its state; without it only ends that gave nothing are read.
 */
export async function readChildEnd(
  logs: LogStore,
  key: LogKey,
  fold: Fold,
  which: Which,
  plan: ProgramPlan | undefined,
): Promise<ChildEnd | undefined> {
  const state = fold.state as RunState
  const { run, parked, inputs = [] } = state
  const isIt = (one: { readonly id: string; readonly key?: string }) =>
    which.key === undefined ? one.id === which.run : one.key === which.key
  const first = inputs[0]
  if (parked && !isUnfinished(run) && first && isIt(first)) {
    // It never began. Each time that it is parked its log is longer: that tells one failure from the next.
    return { status: 'failed', run: first.id, takes: fold.seq / Number.MAX_SAFE_INTEGER, error: parked }
  }
  if (run !== undefined && isIt(run)) return endOf(key, fold, run, plan)
  if (inputs.some(isIt) || which.key === undefined) return undefined
  const ended = findEnded(state, which.key, key.branch)
  if (ended === undefined) return undefined
  const gone: ChildEnd = { status: 'gone', run: '', takes: Number.MAX_SAFE_INTEGER }
  if (ended.seq === undefined) return gone
  try {
    const then = await logs.unread(key).at(ended.seq)
    const { run: past } = then.state as RunState
    return past !== undefined && isIt(past) ? await endOf(key, then, past, plan) : gone
  } catch (error) {
    if (isHoldfastError(error, 'not-found')) return gone
    throw error
  }
}

async function endOf(
  key: LogKey,
  fold: Fold,
  run: RunRecord,
  plan: ProgramPlan | undefined,
): Promise<ChildEnd | undefined> {
  const state = fold.state as RunState
  const base = { run: run.id, takes: run.takes }
  if (state.parked) return { ...base, status: 'failed', error: state.parked }
  if (isStuck(state) || run.status === 'cancelled') {
    const status = run.status as 'failed' | 'cancelled' | 'incompatible'
    return { ...base, status, ...(run.error ? { error: run.error } : {}) }
  }
  if (run.status !== 'completed' || plan === undefined) return undefined
  const output = await outputOf(key, fold, plan)
  return {
    ...base,
    status: run.limit ? 'limited' : 'completed',
    ...(output === undefined ? {} : { output: copyValue(output, DEFAULT_LIMITS) }),
    ...(run.limit ? { limit: run.limit, ...doneBy(fold, plan) } : {}),
  }
}

/** What a program that was ended by a limit had done: it stays done, and whoever awaited it must not repeat it. */
function doneBy(fold: Fold, plan: ProgramPlan): Pick<ChildEnd, 'done'> {
  const done = plan.kind === 'graph' ? plan.done?.((fold.state as RunState).state ?? {}) : undefined
  return done === undefined ? {} : { done: copyValue(done, DEFAULT_LIMITS) }
}

async function outputOf(key: LogKey, fold: Fold, plan: ProgramPlan): Promise<unknown> {
  const shown = await showFold(plan, fold)
  const outcome = readOutcome(key, shown)
  if (outcome.status !== 'completed' && outcome.status !== 'limited') return undefined
  if (plan.kind === 'graph' && plan.output !== undefined) return plan.output(outcome.state)
  return outcome.output
}
