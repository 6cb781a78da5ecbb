import { HoldfastError, IncompatibleError } from '../../core/errors.js'
import type { GraphPlan, Task } from '../program/program.js'
import type { TaskRecord } from '../run/state/run-state.js'

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
