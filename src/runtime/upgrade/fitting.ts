import { isHoldfastError } from '../../core/errors.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import { stateVersionOf } from '../run/hold/begin.js'
import { PROGRAM, SCHEDULE } from '../run/state/labels.js'
import { isCompatible } from './migration.js'
import { incompatible, type Outcome, outcomeBase, type Restart } from '../run/state/outcome.js'
import type { GraphPlan, ProgramPlan, Refusal } from '../program/program.js'
import { isBegun, isUnfinished } from '../run/state/read-run-state.js'
import type { RunState, ScopeState } from '../run/state/run-state.js'
import { completeFold, findMissingNode, reasonOf, subgraphsOf, upgradeInput, upgradeRun } from './upgrade.js'

/** Why this program can't continue this log, as an outcome; undefined if it can. Only looks, writes nothing. */
export function checkFits(log: LogKey, fold: Fold, plan: ProgramPlan, restart: Restart): Outcome | undefined {
  const { run } = fold.state as RunState
  const refuse = (reason: string, remedy?: string) =>
    incompatible(outcomeBase(log, completeFold(plan, fold), restart), reason, remedy)
  if (SCHEDULE in fold.index.metadata) {
    return refuse('The thread is the log of a schedule.', 'Use hf.schedules for it, and another thread id for a run.')
  }
  const program = run?.program ?? queuedFor(fold)
  if (program !== undefined && program !== plan.name) {
    return refuse(
      `The thread was run by the program "${program}", not by "${plan.name}".`,
      'Open it with that program, or use another thread id.',
    )
  }
  try {
    if (!isUnfinished(run)) checkQueued(plan, fold.state as RunState)
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return refuse(reasonOf(error), error.remedy)
  }
  if (run === undefined) return undefined
  const known = stateVersionOf(plan)
  if (run.stateVersion > known) {
    return refuse(
      `The state is of version ${run.stateVersion}; ${plan.name} ${plan.version} knows up to ${known}.`,
      'Run the thread with the newer program.',
    )
  }
  try {
    // Tried here, where nothing is written yet: a missing or failing migration must not leave a claim behind.
    upgradeRun(plan, fold.state as RunState)
  } catch (error) {
    if (!isHoldfastError(error)) throw error
    return refuse(reasonOf(error), error.remedy)
  }
  if (!isUnfinished(run)) return undefined
  if (!isCompatible(run.version, plan)) {
    return refuse(
      `The run was started by ${plan.name} ${run.version}, which version ${plan.version} does not continue.`,
      `Finish it with ${run.version}, declare compatibleWith, or cancel the run.`,
    )
  }
  if (run.kind !== plan.kind) return refuse(`The run is of a ${run.kind}, but "${plan.name}" is a ${plan.kind} now.`)
  const refusal = plan.kind === 'graph' ? findRefusal(plan, fold.state as RunState) : undefined
  if (refusal) return refuse(refusal.reason, refusal.remedy)
  const missing = plan.kind === 'graph' ? findMissingNode(plan, fold.state as RunState) : undefined
  if (missing) {
    const { name, version } = missing.plan
    return refuse(
      `The run waits at node "${missing.node}", which ${name} ${version} does not have.${missing.begun ? ' It was begun, and its outcome is unknown.' : ''}`,
      `Bring the node back, or name its successor in aliases: { ${JSON.stringify(missing.node)}: … }.`,
    )
  }
  return undefined
}

/** Why a task can't be continued: one of the program's own, or of a subgraph in progress. */
function findRefusal(plan: GraphPlan, scope: ScopeState): Refusal | undefined {
  for (const task of scope.tasks ?? []) {
    const record = scope.steps?.[task.id]
    const refusal = record?.status === 'done' ? undefined : plan.refuse?.(task, isBegun(record))
    if (refusal) return refusal
  }
  for (const { graph, scope: inner } of subgraphsOf(plan, scope, [])) {
    const refusal = findRefusal(graph, inner)
    if (refusal) return refusal
  }
  return undefined
}

/** Refuses the next input if this program can't take it. Any program takes one that was dropped. */
function checkQueued(plan: ProgramPlan, { inputs, cancel }: RunState): void {
  const next = inputs?.[0]
  if (plan.kind === 'graph' && next && next.id !== cancel?.run) upgradeInput(plan, next)
}

/** The program of a thread that has never been run, if it was given input. */
function queuedFor({ state, index }: Fold): string | undefined {
  const { inputs = [], later = [] } = state as RunState
  const program = inputs.length + later.length > 0 ? index.metadata[PROGRAM] : undefined
  return typeof program === 'string' ? program : undefined
}
