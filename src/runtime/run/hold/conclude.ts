import { isHoldfastError } from '../../../core/errors.js'
import { DUE } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import type { Fold } from '../../../log/entry/fold.js'
import { remove, set } from '../../../log/entry/ops.js'
import { recordError } from '../../errors.js'
import { stemsOf } from '../../step/record/failed-steps.js'
import type { Settled } from '../../step/record/kept-results.js'
import { expiresWhenAtRest } from '../state/expiry.js'
import { type OnPaused, settleInput } from '../input/given-input.js'
import { noteEnded } from '../input/input-keys.js'
import { ASKS } from '../state/labels.js'
import type { Drive } from '../run-terms.js'
import { isOnlyWaiting, isUnfinished, newsOf, nextLater, nextWake, openPauses } from '../state/read-run-state.js'
import type { RunState } from '../state/run-state.js'
import { endCancelled, type ExpiryOf, leaveRun, park, restRun } from '../state/run-ops.js'

export interface Ending {
  readonly now: number
  /**
   * If the program was called again for something that had arrived, and nothing was written since: it did nothing with
   * what was there.
   */
  readonly unmovedSince?: number | undefined
  readonly goOn: boolean
  /** Since when something may have been in progress before this claim. */
  readonly inherited: number | undefined
  /** The input that this claim was made for, and what happens to it if this run, before it, can't continue. */
  readonly target: string | undefined
  readonly onPaused: OnPaused
  readonly expiry: ExpiryOf
  /** Of a run that is cancelled: what brings its results into the state. */
  readonly settled?: Settled | undefined
}

/** The entry that ends a stretch of a run. Undefined if something arrived that lets it continue. */
export function endOf(fold: Fold, driven: Drive, ending: Ending): Draft | undefined {
  const { now, unmovedSince, goOn, inherited, target, onPaused, expiry, settled } = ending
  const state = fold.state as RunState
  const { run } = state
  if (run === undefined) return undefined
  // The next run of this claim is in progress from here on.
  const over = goOn
    ? [set('claims', 1), ...(state.alone ? [set('alone', 0)] : []), set('openSince', now)]
    : restRun(state)
  const isMisfit = driven.status === 'failed' && isHoldfastError(driven.error, 'incompatible')
  // What an interrupted worker did further on, ahead of its records, is not resolved before the run gets there; and a
  // program that fails, or is incompatible, may reach none of what was in progress: whoever resumes the run must still
  // know how old the keys are.
  const isOpen = inherited !== undefined && (state.ahead === true || driven.status === 'failed')
  const rest = isOpen ? [set('claims', 0), ...(state.alone ? [set('alone', 0)] : [])] : over
  const cancelled = endCancelled(fold, over, now, expiry, settled)
  if (cancelled) return cancelled
  const waits = (state.inputs ?? []).length > 0
  const later = nextLater(state)
  switch (driven.status) {
    case 'completed': {
      const { limit } = driven
      const status = limit === undefined ? 'completed' : 'limited'
      return {
        kind: 'step',
        ops: [
          set(['run', 'status'], 'completed'),
          ...(limit === undefined ? [] : [set(['run', 'limit'], limit)]),
          ...over,
          ...(run.kind === 'flow' && driven.output !== undefined ? [set(['run', 'output'], driven.output)] : []),
          ...leaveRun(state, now),
          ...noteEnded(state, fold.seq + 1, 'completed'),
        ],
        index: {
          status: waits ? 'active' : status,
          wakeAt: waits ? DUE : later,
          ...(waits || later !== null ? {} : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
        },
        data: { events: [{ type: 'run', run: run.id, status, ...limit }] },
      }
    }
    case 'suspended': {
      const passed = unmovedSince === undefined ? [] : newsOf(state, unmovedSince)
      const { passed: before, passedBy: _, ...still } = run
      const waits = {
        ...still,
        waiting: driven.waiting,
        ...(passed.length > 0 ? { passed: Object.fromEntries(passed) } : {}),
      }
      const waiting = { ...fold, state: { ...state, run: waits } as never }
      if (unmovedSince === undefined && !isOnlyWaiting(waiting, now)) return undefined
      return {
        kind: 'wait',
        ops: [
          set(['run', 'waiting'], driven.waiting),
          ...(waits.passed
            ? [set(['run', 'passed'], waits.passed), set(['run', 'passedBy'], expiry.plan?.version ?? run.version)]
            : before
              ? [remove(['run', 'passed']), remove(['run', 'passedBy'])]
              : []),
          ...rest,
          // To drop a run that waits is the next thing that is done for this input.
          ...(onPaused === 'cancel' ? [] : settleInput(state, target, onPaused === 'queue')),
        ],
        index: {
          status: openPauses(state).length > 0 ? 'waiting_human' : 'waiting',
          wakeAt: nextWake(waiting.state as RunState),
        },
        data: { events: [{ type: 'run', run: run.id, status: 'paused' }] },
      }
    }
    default: {
      const error = recordError(driven.error)
      const { retry, doubt } = stemsOf([driven.error, ...(driven.others ?? [])])
      return {
        kind: 'end',
        ops: [
          set(['run', 'status'], isMisfit ? 'incompatible' : 'failed'),
          set(['run', 'error'], error),
          ...rest,
          ...(retry.length === 0 ? [] : [set(['run', 'retry'], retry)]),
          set(['run', 'doubt'], doubt),
          ...settleInput(state, target, onPaused === 'queue'),
        ],
        index: {
          status: isMisfit ? 'incompatible' : 'failed',
          // With its input it is tried again then, as it is when new input is given.
          wakeAt: later,
          ...(openPauses(state).length > 0 ? { metadata: { [ASKS]: true } } : {}),
          ...(isMisfit || waits || later !== null || openPauses(state).length > 0
            ? {}
            : expiresWhenAtRest(expiry, fold, expiry.plan, now)),
        },
        data: { events: [{ type: 'run', run: run.id, status: isMisfit ? 'incompatible' : 'failed', error }] },
      }
    }
  }
}

/**
 * Leaves alone a thread whose next run can't begin. Input behind that one is taken back; its own stays to be retried.
 */
export function parkBehind(fold: Fold, cause: unknown, target: string | undefined, onPaused: OnPaused): Draft {
  const state = fold.state as RunState
  const parked = park(cause, state)
  if (!isUnfinished(state.run) && state.inputs?.[0]?.id === target) return parked
  return { ...parked, ops: [...(parked.ops ?? []), ...settleInput(state, target, onPaused === 'queue')] }
}

/**
 * The run is told to stop and releases the thread cleanly: what is recorded stays, what is in progress is lost as in a
 * crash, but nobody has to wait for the lease. If something was in progress before, it is not known how far this
 * process got.
 */
export function stopRun(state: RunState, wasOpen: boolean): Draft | undefined {
  const { run, ...others } = state
  if (!isUnfinished(run)) return undefined
  const { openSince: _, ahead: __, ...counts } = others
  return { kind: 'park', ops: restRun(wasOpen ? counts : others), data: { events: [] } }
}

/** Nothing to run after all. Undefined if input arrived in the meantime, which nobody would ever be woken for. */
export function restThread(fold: Fold, expiry: ExpiryOf, now: number): Draft | undefined {
  const state = fold.state as RunState
  if ((state.inputs ?? []).length > 0) return undefined
  const expires = isUnfinished(state.run) ? {} : expiresWhenAtRest(expiry, fold, expiry.plan, now)
  const wakeAt = isUnfinished(state.run) ? null : nextLater(state)
  return { kind: 'release', ops: restRun(state), index: { wakeAt, ...(wakeAt === null ? expires : {}) } }
}

/** Another process has to continue: releases a thread that stays due. */
export function leaveThread(state: RunState, target: string | undefined): Draft {
  const ops = [...restRun(state), ...settleInput(state, target, false)]
  return { kind: 'release', ops, index: { wakeAt: DUE } }
}
