import { DUE } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import { type Op, remove, set } from '../../../log/entry/ops.js'
import { CancelledError, recordError } from '../../errors.js'
import { closePauses } from '../../pause/asking.js'
import type { ProgramPlan } from '../../program/program.js'
import { retryFailed } from '../../step/record/failed-steps.js'
import { keepResults, type Settled, whatIsOpen } from '../../step/record/kept-results.js'
import { type Expiry, expiresWhenAtRest } from './expiry.js'
import { noteEnded } from '../input/input-keys.js'
import { isUnfinished, nextLater } from './read-run-state.js'
import type { RunRecord, RunState } from './run-state.js'

/** Leaves a thread alone until someone runs it, or more input comes: nothing of its run changes. */
export function park(cause: unknown, state: RunState): Draft {
  const { alone } = state
  const error = recordError(cause)
  return {
    kind: 'end',
    // Since when something was in progress stays: whoever runs it must still know how old the keys are.
    ops: [set('parked', error), set('claims', 0), ...(alone ? [set('alone', 0)] : [])],
    // Input that was left for later is a reason to try again, as it is when it is given then.
    index: { status: 'failed', wakeAt: nextLater(state) },
    data: { events: [{ type: 'parked', error }] },
  }
}

/**
 * Ops that end a run at a person's request, in the entry with this seq. Its effects stay in the log, including those
 * whose outcome is unknown.
 */
export function cancelRun(state: RunState, reason: string, now: number, seq: number): readonly Op[] {
  const error = recordError(new CancelledError(reason))
  return [
    set(['run', 'status'], 'cancelled'),
    set(['run', 'error'], error),
    remove(['run', 'waiting']),
    ...leaveRun(state, now),
    ...noteEnded(state, seq, 'cancelled'),
  ]
}

/** How long a thread of a program is kept, where its program is known. */
export interface ExpiryOf extends Expiry {
  readonly plan?: ProgramPlan | undefined
}

/**
 * The entry that ends a cancelled run; undefined when there is none to end. `settled` brings its results into the state;
 * without it, or when more was recorded since it was made, they are kept for the next run.
 */
export function endCancelled(
  fold: Fold,
  rest: readonly Op[],
  now: number,
  expiry: ExpiryOf,
  settled?: Settled | undefined,
): Draft | undefined {
  const state = fold.state as RunState
  const { run, cancel } = state
  if (!isUnfinished(run) || cancel?.run !== run.id) return undefined
  const waits = (state.inputs ?? []).length > 0
  const later = nextLater(state)
  const holds = settled !== undefined && settled.of === whatIsOpen(state)
  const results = holds ? settled.ops : keepResults(state)
  return {
    kind: 'end',
    ops: [...results, ...cancelRun(state, cancel.reason, now, fold.seq + 1), ...rest],
    index: {
      status: waits ? 'active' : 'failed',
      wakeAt: waits ? DUE : later,
      ...(waits || later !== null ? {} : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
    },
    data: { events: [...(holds ? settled.events : []), { type: 'run', run: run.id, status: 'cancelled' }] },
  }
}

/** Ops that take away what only a run in progress needs. */
export function leaveRun(state: RunState, now: number): readonly Op[] {
  const gone = (['tasks', 'joins', 'steps', 'scopes', 'children', 'cancel'] as const).filter(
    (key) => state[key] !== undefined,
  )
  return [
    ...gone.map((key) => remove(key)),
    ...(['input', 'context', 'transient'] as const)
      .filter((key) => state.run?.[key] !== undefined)
      .map((key) => remove(['run', key])),
    ...closePauses(state, () => true, now),
  ]
}

/** Ops that let a run continue that waits, was interrupted or failed. */
export function resumeRun(state: RunState, run: RunRecord): readonly Op[] {
  return [
    set(['run', 'takes'], run.takes + 1),
    ...(run.waiting === undefined ? [] : [remove(['run', 'waiting'])]),
    ...(run.status === 'running'
      ? []
      : [
          set(['run', 'status'], 'running'),
          remove(['run', 'error']),
          ...retryFailed(state, run),
          ...(run.retry ? [remove(['run', 'retry'])] : []),
          ...(run.doubt ? [remove(['run', 'doubt'])] : []),
        ]),
  ]
}

/** Ops that say that nothing of the thread is in progress. */
export function restRun({ claims, alone, openSince, ahead }: RunState): readonly Op[] {
  return [
    ...(claims ? [set('claims', 0)] : []),
    ...(alone ? [set('alone', 0)] : []),
    ...(openSince === undefined ? [] : [remove('openSince')]),
    ...(ahead ? [remove('ahead')] : []),
  ]
}
