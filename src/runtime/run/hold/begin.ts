import type { Draft } from '../../../log/entry/draft.js'
import { copy, type Op, type Path, set, splice } from '../../../log/entry/ops.js'
import type { GraphPlan, ProgramPlan } from '../../program/program.js'
import type { Recorded } from '../../program/state/state-shape.js'
import type { InputRecord, RunRecord, RunState } from '../state/run-state.js'
import { addFreshKeys, upgradeInput, upgradeRun } from '../../upgrade/upgrade.js'

export function stateVersionOf(plan: ProgramPlan): number {
  return plan.kind === 'graph' ? plan.stateVersion : 1
}

/** Where the value of the first waiting input is. */
const GIVEN: Path = ['inputs', 0, 'value']

/**
 * Takes the first waiting input and starts its run. Follows from the log alone, so it is noted and written with the
 * first step: after a crash it is simply repeated.
 */
export function beginRun(plan: ProgramPlan, state: RunState, now: number, incarnation: string): Draft {
  const input = state.inputs?.[0] as InputRecord
  const run: RunRecord = {
    id: input.id,
    number: (state.run?.number ?? 0) + 1,
    status: 'running',
    kind: plan.kind,
    program: plan.name,
    version: plan.version,
    stateVersion: stateVersionOf(plan),
    inputHash: input.hash,
    startedAt: now,
    incarnation,
    count: 0,
    takes: 1,
    ...(input.key === undefined ? {} : { key: input.key }),
    ...(input.parent === undefined ? {} : { parent: input.parent }),
    ...(input.transient === undefined ? {} : { transient: input.transient }),
  }
  const ops: Op[] = [set('run', run)]
  // Referred to where it is, and only then removed: it is already in the log.
  if (plan.kind === 'flow' && input.value !== undefined) ops.push(copy(['run', 'input'], GIVEN))
  if (input.context !== undefined) ops.push(copy(['run', 'context'], ['inputs', 0, 'context']))
  if (plan.kind === 'graph') {
    const { shape } = plan
    const fresh = shape.fresh(state.state ?? {})
    const before = { ...state.state, ...Object.fromEntries(fresh) }
    // Dropped by a person: what can no longer be read need not be.
    const isDropped = state.cancel?.run === input.id
    const update = isDropped ? {} : upgradeInput(plan, input)
    const given = update === input.value ? { update, from: GIVEN } : { update }
    const begins = plan.begins && !isDropped ? [{ update: plan.begins }] : []
    const updates = [...initialOf(plan, input, isDropped), ...begins, given]
    const { ops: changes } = shape.reduce(before, updates, ['state'])
    ops.push(...fresh.map(([key, value]) => set(['state', key], value)), ...changes)
  }
  ops.push(splice('inputs', 0, 1))
  const events = [{ type: 'run', run: run.id, status: 'started' }]
  return { kind: 'step', ops, data: { events } }
}

/** What the state starts with, if the input says so. */
function initialOf(plan: GraphPlan, input: InputRecord, isDropped: boolean): readonly Recorded[] {
  if (input.initial === undefined || isDropped) return []
  const update = upgradeInput(plan, { ...input, value: input.initial })
  return [update === input.initial ? { update, from: ['inputs', 0, 'initial'] } : { update }]
}

/** Keys that were declared after the run began. */
export function completeRun(plan: ProgramPlan, state: RunState): Draft | undefined {
  const ops = addFreshKeys(plan, state)
  return ops.length === 0 ? undefined : { kind: 'step', ops }
}

/** Migrates what is of an older version, as a keyframe: nothing older is needed to read it. */
export function migrateRun(plan: ProgramPlan, state: RunState): Draft | undefined {
  const { ops } = upgradeRun(plan, state)
  return ops.length === 0 ? undefined : { kind: 'migrate', ops, keyframe: true }
}
