import type { Fold } from '../../log/entry/fold.js'
import type { ObservedRun, RunEnd } from '../../telemetry/observer.js'
import type { LogKey } from '../../log/contract.js'
import type { ProgramPlan } from '../program/program.js'
import { isUnfinished } from '../run/state/read-run-state.js'
import type { RunState } from '../run/state/run-state.js'
import type { RuntimeEnvironment } from '../run/environment.js'

/** Reports what a claim reveals about how the thread was left: `before` it and after. */
export function observeClaim({ observer, clock }: RuntimeEnvironment, before: Fold, after: Fold): void {
  const was = before.state as RunState
  const is = after.state as RunState
  if (wasLeft(was)) {
    observer.count('holdfast.takeovers')
    observer.record('holdfast.takeover.duration', Math.max(0, clock.now() - before.at))
  }
  if (is.parked && !was.parked) observer.count('holdfast.runs.failed')
  // New input may cancel the run that waits, with the claim itself.
  if (isUnfinished(was.run) && is.run?.status === 'cancelled') observer.count('holdfast.runs.cancelled')
}

// A worker that shuts down cleanly releases its lease: nothing has been open since, or the run says what it waits for
// or why it ended.
function wasLeft({ openSince, run }: RunState): boolean {
  if (openSince === undefined) return false
  return !isUnfinished(run) || (run.status === 'running' && run.waiting === undefined)
}

/** A run as it is reported to observers. */
export function describeRun(key: LogKey, plan: ProgramPlan, { run }: RunState, resumed: boolean): ObservedRun {
  return {
    tenant: key.tenant,
    thread: key.thread,
    branch: key.branch,
    run: run?.id ?? '',
    program: plan.name,
    version: plan.version,
    kind: plan.kind === 'graph' ? (plan.role ?? 'graph') : 'flow',
    attempt: run?.takes ?? 1,
    resumed,
    begunIn: run?.trace,
  }
}

/** How a stretch of a run ended, according to its record. */
export function endOfRun(fold: Fold): RunEnd {
  const { run } = fold.state as RunState
  if (run === undefined || run.status === 'running') return 'paused'
  return run.status === 'completed' && run.limit ? 'limited' : run.status
}
