import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue } from '../../codec/value.js'
import { type HoldfastError, IncompatibleError, isHoldfastError } from '../../core/errors.js'
import type { Fold } from '../../log/entry/fold.js'
import { applyOp, type Op, set } from '../../log/entry/ops.js'
import { migrateState, migrateUpdate } from './migration.js'
import type { GraphPlan, ProgramPlan } from '../program/program.js'
import { inScope, isBegun, isUnfinished, type Prefix, pathOf } from '../run/state/read-run-state.js'
import type { InputRecord, RunState, ScopeState } from '../run/state/run-state.js'
import type { Update } from '../program/state/state-shape.js'

/** A state that was migrated from one version to another: the thread's own, or that of a subgraph in progress. */
export interface Upgraded {
  /** The path of the subgraph; empty for the thread's own state. */
  readonly path: string
  readonly from: number
  readonly to: number
}

export interface Upgrade {
  readonly ops: readonly Op[]
  readonly upgraded: readonly Upgraded[]
}

/**
 * Migrates everything in a run that is of an older version: its state, the states of subgraphs in progress, and results
 * that are recorded but not yet part of a state. Throws before anything is written if a migration is missing or fails,
 * or if a state is newer than the program.
 */
export function upgradeRun(plan: ProgramPlan, state: RunState): Upgrade {
  const ops: Op[] = []
  const upgraded: Upgraded[] = []
  const { run } = state
  if (plan.kind !== 'graph' || run === undefined) return { ops, upgraded }
  const walk = (graph: GraphPlan, scope: ScopeState, prefix: Prefix, from: number) => {
    if (from !== graph.stateVersion) {
      ops.push(...upgradeScope(graph, scope, prefix, from))
      upgraded.push({ path: pathOf(prefix), from, to: graph.stateVersion })
    }
    for (const { graph: inner, scope: sub, prefix: at } of subgraphsOf(graph, scope, prefix)) {
      walk(inner, sub, at, sub.stateVersion ?? 1)
    }
  }
  // What an ended run left in its subgraphs is never entered again.
  walk(plan, isUnfinished(run) ? state : { ...(state.state ? { state: state.state } : {}) }, [], run.stateVersion)
  return { ops, upgraded }
}

/**
 * Gives keys that a version declared after the run began their initial values: in the state, and in those of subgraphs
 * in progress. Their types promise a value, and nothing else would ever create one.
 */
export function addFreshKeys(plan: ProgramPlan, state: RunState): readonly Op[] {
  const ops: Op[] = []
  if (plan.kind !== 'graph') return ops
  const walk = (graph: GraphPlan, scope: ScopeState, prefix: Prefix) => {
    for (const [key, value] of graph.shape.fresh(scope.state ?? {})) ops.push(set(inScope(prefix, 'state', key), value))
    for (const inner of subgraphsOf(graph, scope, prefix)) walk(inner.graph, inner.scope, inner.prefix)
  }
  walk(plan, state, [])
  return ops
}

/** The state of a log with all keys that a program declares, unless it is of another version of the state. */
export function completeFold(plan: ProgramPlan, fold: Fold): Fold {
  const { run, state = {} } = fold.state as RunState
  if (plan.kind !== 'graph' || (run !== undefined && run.stateVersion !== plan.stateVersion)) return fold
  const fresh = plan.shape.fresh(state)
  if (fresh.length === 0) return fold
  return { ...fold, state: { ...fold.state, state: { ...state, ...Object.fromEntries(fresh) } } }
}

/** The log as it would be if a run had migrated it; throws if that can't be done. */
export function upgradeFold(plan: ProgramPlan, fold: Fold): Fold {
  const { ops } = upgradeRun(plan, fold.state as RunState)
  return ops.length === 0 ? fold : { ...fold, state: ops.reduce((state, op) => applyOp(state, op), fold.state) }
}

/**
 * What an input changes when it is taken now. Throws, naming it, if it is of another version that can't be migrated.
 */
export function upgradeInput(plan: GraphPlan, input: InputRecord): Update {
  const { value = {}, stateVersion: from = plan.stateVersion, id, key, at } = input
  if (from === plan.stateVersion) return value as Update
  try {
    const update = migrateUpdate(value as Update, from, plan.stateVersion, plan.migrations)
    checkDeclared(plan, update, 'It')
    return copyValue(update, DEFAULT_LIMITS) as Update
  } catch (error) {
    if (!isHoldfastError(error, 'incompatible')) throw error
    const name = key === undefined ? '' : ` "${key}"`
    throw new IncompatibleError(
      `The input${name} of ${new Date(at).toISOString()} was queued for state version ${from}. ${reasonOf(error)}`,
      String(error.data['reason']),
      `${error.remedy} Or cancel the run to drop the input.`,
      { ...error.data, input: id, ...(key === undefined ? {} : { inputKey: key }) },
    )
  }
}

/** What an error says, without its remedy. */
export function reasonOf({ message, remedy }: HoldfastError): string {
  return remedy && message.endsWith(remedy) ? message.slice(0, -remedy.length).trim() : message
}

/** The first node that a run waits at and that its program, or the graph of its subgraph, does not have. */
export function findMissingNode(
  plan: GraphPlan,
  scope: ScopeState,
  prefix: Prefix = [],
): { readonly node: string; readonly plan: GraphPlan; readonly begun: boolean } | undefined {
  const missing = (scope.tasks ?? []).find(({ node }) => plan.resolve(node) === undefined)
  if (missing) return { node: missing.node, plan, begun: isBegun(scope.steps?.[missing.id]) }
  for (const { graph, scope: sub, prefix: at } of subgraphsOf(plan, scope, prefix)) {
    const inner = findMissingNode(graph, sub, at)
    if (inner) return inner
  }
  return undefined
}

function upgradeScope(plan: GraphPlan, scope: ScopeState, prefix: Prefix, from: number): readonly Op[] {
  const { stateVersion: to, migrations } = plan
  const migrated = copyValue(migrateState(scope.state ?? {}, from, to, migrations), DEFAULT_LIMITS)
  const results = (scope.tasks ?? []).flatMap(({ id }) => {
    const result = scope.steps?.[id]?.status === 'done' ? scope.steps[id]?.result : undefined
    if (result === undefined) return []
    const update = migrateUpdate(result as Update, from, to, migrations)
    checkDeclared(plan, update, `Step "${id}"`, id)
    return [set(inScope(prefix, 'steps', id, 'result'), copyValue(update, DEFAULT_LIMITS))]
  })
  const version = prefix.length === 0 ? (['run', 'stateVersion'] as const) : inScope(prefix, 'stateVersion')
  return [set(inScope(prefix, 'state'), migrated), ...results, set(version, to)]
}

function checkDeclared({ name, shape, stateVersion }: GraphPlan, update: Update, who: string, step?: string): void {
  const key = Object.keys(update).find((one) => !shape.keys.has(one))
  if (key === undefined) return
  throw new IncompatibleError(
    `${who} is recorded with a change of "${key}", which ${name} does not declare in state version ${stateVersion}.`,
    'undeclared-key',
    `Turn it into one of this version: migrations: { ${stateVersion}: { state, update: (update) => … } }, or declare the key.`,
    { key, ...(step === undefined ? {} : { step }) },
  )
}

/** The subgraphs of a scope that are in progress. */
export function subgraphsOf(plan: GraphPlan, scope: ScopeState, prefix: Prefix) {
  return Object.entries(scope.scopes ?? {}).flatMap(([id, sub]) => {
    const task = scope.tasks?.find((one) => one.id === id)
    const node = task && plan.resolve(task.node)
    return node?.kind === 'graph' ? [{ graph: node.graph, scope: sub, prefix: [...prefix, 'scopes', id] }] : []
  })
}
