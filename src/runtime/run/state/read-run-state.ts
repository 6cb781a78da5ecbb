import type { Path } from '../../../log/entry/ops.js'
import type { PauseRecord, RunRecord, RunState, ScopeState, SignalRecord, StepRecord, TaskRecord } from './run-state.js'

/** Where a scope lies in the fold: the root at the top, a subgraph below the scope of its task. */
export type Prefix = readonly string[]

export function inScope(prefix: Prefix, ...rest: readonly [string, ...(string | number)[]]): Path {
  return [...prefix, ...rest] as unknown as Path
}

/** The scope at a prefix, or an empty one. */
export function scopeAt(state: RunState, prefix: Prefix): ScopeState {
  let scope: unknown = state
  for (const part of prefix) {
    scope = (scope as Record<string, unknown> | undefined)?.[part]
  }
  return (scope ?? {}) as ScopeState
}

/** Whether an effect was begun on this branch and nobody knows its outcome. */
export function isBegun(record: StepRecord | undefined): record is StepRecord & { readonly status: 'started' } {
  return record?.status === 'started' && !record.inherited
}

/** Whether a step of this branch has begun another thread and awaits it. */
export function awaitsChild(record: StepRecord | undefined): boolean {
  return record?.status === 'waiting' && record.child !== undefined && !record.inherited
}

/** The first effect of a scope, or of one inside of it, that was begun and whose outcome is open. */
export function findBegun({ steps = {}, scopes = {} }: ScopeState): string | undefined {
  for (const [path, record] of Object.entries(steps)) if (isBegun(record)) return path
  for (const [path, inner] of Object.entries(scopes)) {
    const begun = findBegun(inner)
    if (begun !== undefined) return `${path}/${begun}`
  }
  return undefined
}

/** The signals of a name that nobody has received. One may be named `constructor`: only what was sent counts. */
export function signalsOf({ signals = {} }: Pick<RunState, 'signals'>, name: string): readonly SignalRecord[] {
  return Object.hasOwn(signals, name) ? (signals[name] ?? []) : []
}

export function isUnfinished(run: RunRecord | undefined): run is RunRecord {
  return run !== undefined && run.status !== 'completed' && run.status !== 'cancelled'
}

/** Nothing of the thread is open: its last run has ended, no question is open and no input waits. Then it may expire. */
export function isOver(state: RunState): boolean {
  const { run, parked, inputs = [], later = [] } = state
  if (run === undefined || parked || inputs.length + later.length > 0 || openPauses(state).length > 0) return false
  return run.status === 'completed' || run.status === 'cancelled' || run.status === 'failed'
}

/**
 * The run that a cancellation means: the unfinished one, or that of the first waiting input. A run that has recorded
 * nothing yet is known to its worker alone, and others see only its input.
 */
export function currentRun({ run, inputs }: RunState): string | undefined {
  return isUnfinished(run) ? run.id : inputs?.[0]?.id
}

/**
 * Questions that still wait for an answer, in the order of the tasks that ask, as a model called its tools; those of one
 * task, and of a flow, oldest first.
 */
export function openPauses(state: RunState): readonly PauseRecord[] {
  const open = Object.values(state.pauses ?? {}).filter(({ answer }) => answer === undefined)
  if (open.length < 2) return open
  const places = new Map(open.map((pause) => [pause, placeOfTask(state, pause.path)]))
  const compare = (one: readonly number[] = [], other: readonly number[] = []) => {
    const at = one.findIndex((part, i) => part !== other[i])
    return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0)
  }
  return open.sort((a, b) => compare(places.get(a), places.get(b)) || a.askedAt - b.askedAt)
}

/** The place among its siblings of the task that a path leads to, and of those around it. */
function placeOfTask({ tasks = [], scopes = {} }: ScopeState, path: string): readonly number[] {
  let found: TaskRecord | undefined
  for (const task of tasks) {
    const isLonger = found === undefined || task.id.length > found.id.length
    if (isLonger && path.startsWith(task.id)) found = task
  }
  if (found === undefined) return [tasks.length]
  const inner = scopes[found.id]
  const rest = path.slice(found.id.length + 1)
  return [tasks.indexOf(found), ...(inner === undefined ? [] : placeOfTask(inner, rest))]
}
