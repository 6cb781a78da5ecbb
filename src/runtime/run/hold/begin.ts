import type { Draft } from '../../../log/entry/draft.js'
import { copy, type Op, type Path, set, splice } from '../../../log/entry/ops.js'
import type { GraphPlan, ProgramPlan } from '../../program/program.js'
import type { Recorded } from '../../program/state/state-shape.js'
import type { InputRecord, RunRecord, RunState } from '../state/run-state.js'
import { addFreshKeys, upgradeInput, upgradeRun } from '../../upgrade/upgrade.js'
import type { ParentRef } from '../../child/child-records.js'
import { isStillAwaited } from '../../child/run-errands.js'
import { CancelledError } from '../../errors.js'
import { settleLeft } from '../../step/record/kept-results.js'
import type { HeldThread } from './held-thread.js'
import { StoppedError } from '../request/stop-in-time.js'

export function stateVersionOf(plan: ProgramPlan): number {
  return plan.kind === 'graph' ? plan.stateVersion : 1
}

/** Where the value of the first waiting input is. */
const GIVEN: Path = ['inputs', 0, 'value']

/**
 * Takes the first waiting input and starts its run. Follows from the log alone, so it is noted and written with the
 * first step: after a crash it is simply repeated.
 */
function beginRun(plan: ProgramPlan, state: RunState, now: number, incarnation: string): Draft {
  const input = state.inputs?.[0] as InputRecord
  const run: Omit<RunRecord, 'inputHash'> = {
    id: input.id,
    number: (state.run?.number ?? 0) + 1,
    status: 'running',
    kind: plan.kind,
    program: plan.name,
    version: plan.version,
    stateVersion: stateVersionOf(plan),
    startedAt: now,
    incarnation,
    count: 0,
    takes: 1,
    ...(input.key === undefined ? {} : { key: input.key }),
    ...(input.parent === undefined ? {} : { parent: input.parent }),
    ...(input.transient === undefined ? {} : { transient: input.transient }),
  }
  // Referred to where it is, and only then removed: it is already in the log.
  const ops: Op[] = [set('run', run), copy(['run', 'inputHash'], ['inputs', 0, 'hash'])]
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
function completeRun(plan: ProgramPlan, state: RunState): Draft | undefined {
  const ops = addFreshKeys(plan, state)
  return ops.length === 0 ? undefined : { kind: 'step', ops }
}

/** Migrates what is of an older version, as a keyframe: nothing older is needed to read it. */
export function migrateRun(plan: ProgramPlan, state: RunState): Draft | undefined {
  const { ops } = upgradeRun(plan, state)
  return ops.length === 0 ? undefined : { kind: 'migrate', ops, keyframe: true }
}

/** Why a run could not begin. */
interface Failure {
  readonly error: unknown
}

/** Nothing of the program runs before this: a process that dies now did not die because of it. */
export function enter(held: HeldThread): Promise<void> | undefined {
  return held.request.place.enterAtOnce() ? undefined : enterInTurn(held)
}

async function enterInTurn({ request, log, abort }: HeldThread): Promise<void> {
  const { place, environment } = request
  const note = async (alone: boolean) => {
    const { alone: before = 0 } = log.state
    log.add({ kind: 'resume', ops: [set('alone', alone ? before + 1 : Math.max(0, before - 1))] })
    await log.barrier()
  }
  try {
    const entered = await place.enter(environment.clock, abort.signal, note)
    if (!entered) throw new StoppedError()
  } catch (error) {
    // Nothing of a cancelled run starts anymore, so nothing can happen to the others in this process.
    if (!(error instanceof CancelledError)) throw error
  }
}

/** Cancels the next run if whoever awaited it does so no longer. */
export function dropForsaken(held: HeldThread): Promise<void> | undefined {
  const { acknowledged, durable } = held.log
  const [next] = acknowledged.inputs ?? []
  if (next?.parent === undefined || !durable || acknowledged.cancel?.run === next.id) return undefined
  return dropUnlessAwaited(held, next, next.parent)
}

async function dropUnlessAwaited({ request, log }: HeldThread, next: InputRecord, parent: ParentRef): Promise<void> {
  const { environment, key } = request
  if (await isStillAwaited(environment, key, parent)) return
  const cancel = { reason: 'nothing awaits it anymore', at: environment.clock.now(), run: next.id }
  await log.decide(({ state }) =>
    (state as RunState).inputs?.[0]?.id === next.id ? { kind: 'cancel', ops: [set('cancel', cancel)] } : undefined,
  )
}

/** Takes the next input, migrates an old state. What can't be started stays as it is, for a fixed program. */
export function begin(held: HeldThread, isBegun: boolean): Failure | undefined | Promise<Failure | undefined> {
  const { log, request } = held
  const { plan } = request
  try {
    const migrated = migrateRun(plan, log.state)
    if (migrated) log.add(migrated)
    const completed = isBegun ? completeRun(plan, log.state) : undefined
    if (completed) log.add(completed)
    if (!isBegun && log.state.left !== undefined) return beginAfter(held, settleLeft(plan, log.state))
    if (!isBegun) take(held)
    held.noticeCancel()
    return undefined
  } catch (error) {
    return { error }
  }
}

async function beginAfter(held: HeldThread, settling: ReturnType<typeof settleLeft>): Promise<Failure | undefined> {
  try {
    const left = await settling
    if (left) held.log.add({ kind: 'step', ops: left.ops, data: { events: left.events } })
    take(held)
    held.noticeCancel()
    return undefined
  } catch (error) {
    return { error }
  }
}

function take({ log, request }: HeldThread): void {
  const { plan, environment } = request
  log.add(beginRun(plan, log.state, environment.clock.now(), log.fold.incarnation))
}
