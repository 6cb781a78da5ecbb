import { cloneValue } from '../../../codec/clone.js'
import { DEFAULT_LIMITS } from '../../../codec/limits.js'
import { copyValue, type Value } from '../../../codec/value.js'
import { isHoldfastError } from '../../../core/errors.js'
import { applyOp, copy, type Op, type Path, push, remove, type State, set } from '../../../log/entry/ops.js'
import type { Fold } from '../../../log/entry/fold.js'
import { recordError } from '../../errors.js'
import type { RecordedEvent } from '../../events/events.js'
import { migrateState, migrateUpdate } from '../../upgrade/migration.js'
import type { GraphNodePlan, GraphPlan, NodePlan, ProgramPlan } from '../../program/program.js'
import type {
  LeftQuestion,
  LeftRecord,
  RunState,
  ScopeState,
  StepRecord,
  TaskRecord,
} from '../../run/state/run-state.js'
import { joinPath } from '../../run/state/read-run-state.js'
import type { UnknownAnswer } from '../attempt/ledger.js'
import { ShownState } from '../../program/state/shown-state.js'
import type { Recorded, Update } from '../../program/state/state-shape.js'
import { completeFold, upgradeFold } from '../../upgrade/upgrade.js'

/**
 * Recorded results of a super-step that is never closed, because its run was ended from outside. They are part of what
 * happened: a payment that is missing from the state would be made again.
 */
export interface Settled {
  readonly ops: readonly Op[]
  readonly events: readonly RecordedEvent[]
  /** What the super-step held when this was made: where more has come in the meantime, it does not hold. */
  readonly of: string
}

/** Ops that keep the results of the current super-step for the program, which alone can bring them into the state. */
export function keepResults(state: RunState): readonly Op[] {
  const { run, tasks = [], left = [] } = state
  if (run?.kind !== 'graph' || tasks.length === 0) return []
  const questions = questionsOf(state)
  const record: LeftRecord = {
    run: run.id,
    stateVersion: run.stateVersion,
    ...(questions.length > 0 ? { questions } : {}),
  }
  const parts = (['tasks', 'steps', 'scopes'] as const).filter((part) => state[part] !== undefined)
  return [push('left', record), ...parts.map((part) => copy(['left', left.length, part], [part]))]
}

/** Brings the results of the current super-step into the state. Undefined if this program can't. */
export async function settleRun(plan: ProgramPlan, state: RunState): Promise<Settled | undefined> {
  const { run, tasks = [], state: before = {}, left = [] } = state
  if (plan.kind !== 'graph' || run?.kind !== 'graph' || run.program !== plan.name) return undefined
  if (run.stateVersion !== plan.stateVersion || tasks.length === 0) return undefined
  const open: LeftRecord = {
    ...partsOf(state),
    run: run.id,
    stateVersion: run.stateVersion,
    questions: questionsOf(state),
  }
  const { ops, rest, events } = await settle(plan, open, [], before)
  const kept = rest.length === 0 ? [] : [set('left', [...left, ...rest])]
  return { ops: [...ops, ...kept], events, of: whatIsOpen(state) }
}

/** Brings into the state what runs that were ended without their program left behind. Undefined if nothing changes. */
export async function settleLeft(plan: ProgramPlan, state: RunState): Promise<Omit<Settled, 'of'> | undefined> {
  const { left = [], state: before = {} } = state
  if (plan.kind !== 'graph' || left.length === 0) return undefined
  const ops: Op[] = []
  const events: RecordedEvent[] = []
  const rest: LeftRecord[] = []
  let after = before
  for (const [i, one] of left.entries()) {
    const settled = await settle(plan, one, ['left', i], after)
    ops.push(...settled.ops)
    events.push(...settled.events)
    rest.push(...settled.rest)
    after = settled.state
  }
  // What its reducers refuse stays as it is, until a program comes that accepts it.
  if (ops.length === 0 && rest.length === left.length) return undefined
  return { ops: [...ops, rest.length === 0 ? remove('left') : set('left', rest)], events }
}

/** Ops that drop what is kept for a key, for a caller that sets it itself. */
export function dropKept({ left = [] }: RunState, key: string): readonly Op[] {
  return left.flatMap(({ steps = {} }, i) =>
    Object.keys(steps).map((id) => remove(['left', i, 'steps', id, 'result', key])),
  )
}

/** The log as a run of this program would find it: in its version, with all results in the state and all keys. */
export async function showFold(plan: ProgramPlan, fold: Fold): Promise<Fold> {
  const upgraded = upgradeFold(plan, fold)
  const settled = await settleLeft(plan, upgraded.state as RunState)
  const ops = settled?.ops ?? []
  return completeFold(plan, { ...upgraded, state: ops.reduce((state, op) => applyOp(state, op), upgraded.state) })
}

/** The same. A process may run it with a newer program than this one: then it is shown as it is. */
export async function showFoldOrAsIs(plan: ProgramPlan, fold: Fold): Promise<Fold> {
  try {
    return await showFold(plan, fold)
  } catch (error) {
    if (isHoldfastError(error, 'incompatible')) return fold
    throw error
  }
}

/** What of a super-step is recorded, to tell whether it is still the same. */
export function whatIsOpen(scope: ScopeState): string {
  const done = Object.entries(scope.steps ?? {}).map(([id, { status, passed }]) => [id, status, passed === true])
  const inner = Object.entries(scope.scopes ?? {}).map(([id, sub]) => [id, whatIsOpen(sub)])
  return JSON.stringify([(scope.tasks ?? []).map(({ id }) => id), done, inner, scope.count ?? 0])
}

interface Result extends Recorded {
  readonly task: TaskRecord
}

async function settle(plan: GraphPlan, left: LeftRecord, at: readonly (string | number)[], before: State) {
  const state = new ShownState().show(before)
  const { results, broken } = await collect({ plan, left, at, state, path: '' })
  const events = broken.map(
    ({ task, error }): RecordedEvent => ({ type: 'kept', step: task.id, error: recordError(error) }),
  )
  const ops: Op[] = []
  const refused = new Map<TaskRecord, Update>()
  let after: State = state
  // Key by key: one whose reducer fails must not keep the others back.
  for (const key of new Set(results.flatMap(({ update }) => Object.keys(update)))) {
    const parts = results.filter(({ update }) => Object.hasOwn(update, key))
    try {
      const updates = parts.map(({ update, from }) => ({ update: { [key]: update[key] }, ...(from ? { from } : {}) }))
      const reduced = plan.shape.reduce(after, updates, ['state'])
      after = reduced.state
      ops.push(...reduced.ops)
    } catch (error) {
      for (const { task, update } of parts) refused.set(task, { ...refused.get(task), [key]: update[key] })
      events.push({ type: 'kept', step: (parts[0] as Result).task.id, key, error: recordError(error) })
    }
  }
  const rest = [
    ...(broken.length > 0
      ? [
          pick(
            left,
            broken.map(({ task }) => task),
          ),
        ]
      : []),
    ...(refused.size > 0 ? [refusedUpdates(left.run, plan.stateVersion, refused)] : []),
  ]
  return { state: after, ops, rest, events }
}

interface Source {
  readonly plan: GraphPlan
  readonly left: Omit<LeftRecord, 'run'>
  /** Where it lies in the fold; undefined when nothing can refer to it. */
  readonly at: readonly (string | number)[] | undefined
  readonly state: State
  /** The path of its scope. */
  readonly path: string
}

/** The recorded updates, in the order of the tasks, and the tasks for which it can't be said. */
async function collect(source: Source) {
  const results: Result[] = []
  const broken: { readonly task: TaskRecord; readonly error: unknown }[] = []
  for (const task of source.left.tasks ?? []) {
    try {
      const result = await resultOf(source, task)
      if (result) results.push({ ...result, task })
    } catch (error) {
      broken.push({ task, error })
    }
  }
  return { results, broken }
}

async function resultOf(source: Source, task: TaskRecord): Promise<Recorded | undefined> {
  const { plan, left } = source
  const node = plan.resolve(task.node)
  const record = own(left.steps, task.id)
  if (record?.status === 'done') return recordedUpdate(source, task, record)
  const scope = own(left.scopes, task.id)
  if (scope?.state !== undefined) {
    if (node?.kind !== 'graph') throw new Error(`"${task.node}" is no longer a subgraph of ${plan.name}.`)
    return subgraphUpdate(source, task, node, scope)
  }
  if (node === undefined) return undefined
  const update = await saidUpdate(source, task, node, record)
  return update === undefined ? undefined : { update: await checked(plan, update, task) }
}

async function recordedUpdate(source: Source, task: TaskRecord, record: StepRecord): Promise<Recorded> {
  const { plan, left, at, path } = source
  const { stateVersion: from = 1 } = left
  const isSame = from === plan.stateVersion
  const result = (record.result ?? {}) as Update
  if (!isSame) return { update: migrateUpdate(result, from, plan.stateVersion, plan.migrations) }
  const answer = record.passed ? undefined : answerTo(left, `${joinPath(path, task.id)} after`)
  if (answer !== undefined) {
    const { approved, update } = answer as { readonly approved: boolean; readonly update?: unknown }
    const given = update === undefined ? {} : await plan.shape.check(update, 'the answer’s update')
    return { update: { ...(approved ? result : {}), ...given } }
  }
  return { update: result, ...(at ? { from: [...at, 'steps', task.id, 'result'] as unknown as Path } : {}) }
}

/** What its node takes from a subgraph that did not finish. */
async function subgraphUpdate(source: Source, task: TaskRecord, node: GraphNodePlan, scope: ScopeState) {
  const { graph } = node
  const { stateVersion: version = 1, count = 0 } = scope
  const state = migrateState(scope.state ?? {}, version, graph.stateVersion, graph.migrations)
  const path = joinPath(source.path, task.id)
  const left = { ...partsOf(scope), stateVersion: version, questions: source.left.questions ?? [] }
  const shown = new ShownState().show(state)
  const { results, broken } = await collect({ plan: graph, left, at: undefined, state: shown, path })
  if (broken[0]) throw broken[0].error
  if (count === 0 && results.length === 0) return undefined
  const ended = graph.shape.reduce(shown, results, []).state
  return {
    update: await checked(
      source.plan,
      await node.leave(ended, source.state, cloneValue(task.input as Value | undefined)),
      task,
    ),
  }
}

/** What people said about a task that has no result, and that it never began if that is certain. */
async function saidUpdate(
  { left, path }: Source,
  task: TaskRecord,
  node: NodePlan,
  record: StepRecord | undefined,
): Promise<unknown> {
  const here = joinPath(path, task.id)
  const input = cloneValue(task.input as Value | undefined)
  if (node.kind === 'function') {
    const outcome = answerTo(left, `${here} unknown-effect`) as UnknownAnswer | undefined
    if (outcome?.outcome === 'succeeded') return node.resolved ? node.resolved(outcome.result, input) : outcome.result
    if (outcome?.outcome === 'failed') {
      return node.failed?.({ name: 'Error', message: outcome.message ?? 'a person said that it failed' }, input)
    }
    if (outcome?.outcome === 'not-executed') return node.unbegun?.(input)
  }
  if (record !== undefined || Object.keys(left.steps ?? {}).some((id) => id.startsWith(`${task.id}/`))) return undefined
  const answer = answerTo(left, `${here} approval`) as { readonly approved?: boolean } | undefined
  if (answer && node.approval) {
    if (!answer.approved) return node.approval.denied(input, answer)
    const instead = await node.approval.instead?.(input, answer)
    if (instead !== undefined) return instead
  }
  // Before these two an intent is written, and nothing begins while a question is open.
  const isOpen = (left.questions ?? []).some(
    ({ path: place, answer: said }) => place.startsWith(`${here} `) && said === undefined,
  )
  const { effect } = node.policy
  // A subgraph that was begun has a state.
  const isCertain = node.kind === 'graph' || effect === 'once' || effect === 'reconcilable'
  return isOpen || isCertain ? node.unbegun?.(input) : undefined
}

async function checked(plan: GraphPlan, update: unknown, { node }: TaskRecord): Promise<Update> {
  return copyValue(await plan.shape.check(update, `the update of node "${node}"`), DEFAULT_LIMITS) as Update
}

/** Questions about whole tasks, with what was answered. */
function questionsOf({ pauses = {} }: RunState): readonly LeftQuestion[] {
  return Object.values(pauses).flatMap(({ path, kind, answer }) => {
    if (kind === 'question') return []
    return [{ path, ...(answer === undefined || answer.expired ? {} : { answer: answer.value }) }]
  })
}

function answerTo({ questions = [] }: Pick<LeftRecord, 'questions'>, place: string): Value | undefined {
  return questions.find(({ path }) => path === place)?.answer
}

function partsOf({ tasks, steps, scopes }: ScopeState): Pick<LeftRecord, 'tasks' | 'steps' | 'scopes'> {
  return { ...(tasks ? { tasks } : {}), ...(steps ? { steps } : {}), ...(scopes ? { scopes } : {}) }
}

/** What is left of a run when only these tasks are. */
function pick(left: LeftRecord, tasks: readonly TaskRecord[]): LeftRecord {
  const ids = new Set(tasks.map(({ id }) => id))
  const some = <V>(of: Readonly<Record<string, V>> = {}) =>
    Object.fromEntries(Object.entries(of).filter(([id]) => ids.has(id)))
  return { ...left, tasks, steps: some(left.steps), scopes: some(left.scopes) }
}

function refusedUpdates(run: string, stateVersion: number, refused: ReadonlyMap<TaskRecord, Update>): LeftRecord {
  const steps = [...refused].map(([{ id }, update]) => {
    const record: StepRecord = { status: 'done', result: update as Value, passed: true }
    return [id, record] as const
  })
  return { run, stateVersion, tasks: [...refused.keys()], steps: Object.fromEntries(steps) }
}

function own<V>(of: Readonly<Record<string, V>> | undefined, id: string): V | undefined {
  return of && Object.hasOwn(of, id) ? of[id] : undefined
}
