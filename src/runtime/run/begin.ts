import type { Draft } from '../../log/entry/draft.js'
import { type Op, set, splice } from '../../log/entry/ops.js'
import type { ProgramPlan } from '../program/program.js'
import type { InputRecord, RunRecord, RunState } from './run-state.js'
import { upgradeInput, upgradeRun } from '../upgrade/upgrade.js'

export function stateVersionOf(plan: ProgramPlan): number {
  return plan.kind === 'graph' ? plan.stateVersion : 1
}

/**
 * Takes the first waiting input and begins its run. Follows from the log alone, so it is noted and written with the
 * first step: after a crash it is simply done again.
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
    ...(plan.kind === 'flow' && input.value !== undefined ? { input: input.value } : {}),
  }
  const ops: Op[] = [splice('inputs', 0, 1), set('run', run)]
  if (plan.kind === 'graph') {
    const { shape } = plan
    const fresh = Object.entries(shape.initial()).filter(([key]) => !Object.hasOwn(state.state ?? {}, key))
    const before = { ...state.state, ...Object.fromEntries(fresh) }
    // Dropped by a person: what can't be read any more need not be.
    const isDropped = state.cancel?.run === input.id
    const update = isDropped ? {} : upgradeInput(plan, input)
    const { ops: changes } = shape.reduce(before, [{ update }], ['state'])
    ops.push(...fresh.map(([key, value]) => set(['state', key], value)), ...changes)
  }
  const events = [{ type: 'run', run: run.id, status: 'started' }]
  return { kind: 'step', ops, data: { events } }
}

/** Brings what is of an older version up to date, as a keyframe: what is older is never needed to read it. */
export function migrateRun(plan: ProgramPlan, state: RunState): Draft | undefined {
  const { ops } = upgradeRun(plan, state)
  return ops.length === 0 ? undefined : { kind: 'migrate', ops, keyframe: true }
}
