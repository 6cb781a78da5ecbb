import type { NodePlan } from '../program/program.js'
import { leftBegun, nondeterministic } from '../errors.js'
import { awaitsChild, findBegun, isBegun } from '../run/state/read-run-state.js'
import type { TaskRecord } from '../run/state/run-state.js'
import { isEffect } from '../step/call/revisits.js'
import type { GraphScope } from './graph-scope.js'

/** The node of a task, as what it began as where it may be of two kinds. */
export function nodeOf({ plan, isNew, records }: GraphScope, { id, node: name }: TaskRecord): NodePlan | undefined {
  const node = plan.resolve(name)
  if (node?.otherwise === undefined || isNew) return node
  const { steps = {}, scopes = {} } = records
  const isFunction = Object.keys(steps).some((path) => path.startsWith(`${id}/`))
  const begun = scopes[id] !== undefined ? 'graph' : isFunction ? 'function' : node.kind
  return begun === node.kind ? node : node.otherwise
}

/**
 * Whether any of a task was begun. Then no gate is asked anymore: a "no" would be recorded for what has happened, and
 * what is known about it would be dropped.
 */
export function isTaskBegun(scope: GraphScope, { id }: TaskRecord): boolean {
  if (scope.isNew) return false
  const { steps = {}, scopes = {} } = scope.records
  if ((isBegun(steps[id]) && !steps[id].missing) || scopes[id] !== undefined) return true
  return Object.entries(steps).some(
    ([path, record]) =>
      path.startsWith(`${id}/`) &&
      (isBegun(record) || awaitsChild(record) || record.status === 'done' || record.status === 'failed'),
  )
}

/**
 * A node may be of another kind than when it began. What it did then is in no record that it would reach again, so
 * this is checked before the node does anything: a subgraph in place of a function and the reverse, or a function
 * that is now itself an effect and used to have steps.
 */
export function checkLeft({ records, run }: GraphScope, node: NodePlan, { id }: TaskRecord): void {
  const { steps = {}, scopes = {} } = records
  const own = Object.hasOwn(steps, id) ? steps[id] : undefined
  if (node.kind === 'graph' && isBegun(own)) throw leftBegun(id)
  if (node.kind === 'function' && scopes[id] !== undefined) {
    const begun = findBegun(scopes[id])
    if (begun !== undefined) throw leftBegun(`${id}/${begun}`)
    throw nondeterministic(`Node "${id}" was a subgraph when it began, and is a function now.`, id)
  }
  // One that was an effect before has an intent of its own, unless 0.1 wrote it.
  const isSame = isBegun(own) || own?.status === 'retry' || run.state.run?.incarnation === undefined
  if (node.kind === 'function' && (isSame || (node.policy.effect ?? 'read') === 'read')) return
  for (const [path, record] of Object.entries(steps)) {
    if (!path.startsWith(`${id}/`) || !isEffect(record)) continue
    if (isBegun(record) || awaitsChild(record)) throw leftBegun(path)
    throw nondeterministic(`Step "${path}" is recorded, but node "${id}" is another by now and has no steps.`, path)
  }
}
