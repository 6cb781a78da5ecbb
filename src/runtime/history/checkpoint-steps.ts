import type { RecordedEvent } from '../events/events.js'

/** One piece of work that an entry records, by the name it has in the program. */
export interface CheckpointStep {
  /**
   * `model` and `tool` are calls of an agent, `node` is a node of a graph, `step` is what a function named with
   * `ctx.step`.
   */
  readonly kind: 'model' | 'tool' | 'node' | 'step'
  readonly name: string
  /** Its place in the run, as events and outcomes name it. */
  readonly path: string
  readonly status: 'started' | 'completed' | 'failed' | 'unknown'
  /** Which model was called. */
  readonly model?: string
}

/** The steps of an entry. One that begins and ends in it is listed once, as it ended. */
export function describeSteps(events: readonly RecordedEvent[]): readonly CheckpointStep[] {
  const steps = new Map<string, CheckpointStep>()
  for (const event of events) {
    if (event.type !== 'step') continue
    const { step: path, status } = event
    const used = events.find((one) => one.type === 'usage' && one.step === path)
    const model = used?.type === 'usage' ? used.usage.model.id : undefined
    steps.set(path, { ...nameStep(path), path, status, ...(model === undefined ? {} : { model }) })
  }
  return [...steps.values()]
}

/** `12:tool getOrder[2]` is the tool getOrder, `3:plan` the node plan, `3:plan/fetch` the step fetch. */
function nameStep(path: string): Pick<CheckpointStep, 'kind' | 'name'> {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const [, task] = /^\d+:(.*)$/s.exec(last) ?? []
  if (task === undefined) return { kind: 'step', name: last }
  if (task === 'model' || task === 'compact') return { kind: 'model', name: task }
  const name = task.replace(/\[\d+\]$/, '')
  return name.startsWith('tool ') ? { kind: 'tool', name: name.slice('tool '.length) } : { kind: 'node', name }
}
