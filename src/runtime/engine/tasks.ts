import { HoldfastError, IncompatibleError } from '../../core/errors.js'
import type { GraphPlan, NodePlan, Task } from '../program/program.js'
import type { TaskRecord } from '../run/state/run-state.js'
import { leftBegun, nondeterministic } from '../errors.js'
import { awaitsChild, findBegun, isBegun } from '../run/state/read-run-state.js'
import { isEffect } from '../step/call/revisits.js'
import type { GraphScope } from './graph-scope.js'

/** Names tasks so that each is found again: by super-step, node and position among those of the same node. */
export function nameTasks(tasks: readonly Task[], count: number): readonly TaskRecord[] {
  const [only] = tasks
  if (only !== undefined && tasks.length === 1) return [{ ...only, id: `${count}:${only.node}` }]
  const places = new Map<string, number>()
  for (const { node } of tasks) places.set(node, (places.get(node) ?? 0) + 1)
  const next = new Map<string, number>()
  return tasks.map((task) => {
    const place = next.get(task.node) ?? 0
    next.set(task.node, place + 1)
    const many = (places.get(task.node) ?? 0) > 1
    return { ...task, id: many ? `${count}:${task.node}[${place}]` : `${count}:${task.node}` }
  })
}

/** What the index shows of a thread while these tasks run. */
export function statusOf(plan: GraphPlan, tasks: readonly Task[]): string {
  for (const { node } of tasks) {
    const status = plan.resolve(node)?.status
    if (status !== undefined) return status
  }
  return 'active'
}

export function missingNode(plan: GraphPlan, node: string): IncompatibleError {
  return new IncompatibleError(
    `The run waits at node "${node}", which ${plan.name} ${plan.version} does not have.`,
    'missing-node',
    `Bring the node back, or name its successor in aliases: { ${JSON.stringify(node)}: … }.`,
    { node, program: plan.name, version: plan.version },
  )
}

export function tooManySteps(plan: GraphPlan): HoldfastError {
  return new HoldfastError('step-failed', `${plan.name} reached its limit of ${plan.maxSteps} super-steps.`, {
    data: { maxSteps: plan.maxSteps, reason: 'step-limit' },
    remedy: 'Raise maxSteps, or give its loop an exit.',
  })
}

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

/** So many may be in progress at once; the others wait for their turn, in order. */
export class Places {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(most: number) {
    this.#free = most
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#free++
    }
  }
}
