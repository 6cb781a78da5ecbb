import type { Path } from '../../../log/entry/ops.js'
import type { PauseRecord, RunRecord, RunState, ScopeState, SignalRecord, StepRecord, TaskRecord } from './run-state.js'
import { DUE } from '../../../log/contract.js'
import type { Fold } from '../../../log/entry/fold.js'

/** Where a scope lies in the fold: the root at the top, a subgraph below the scope of its task. */
export type Prefix = readonly string[]

export function inScope(prefix: Prefix, ...rest: readonly [string, ...(string | number)[]]): Path {
  return [...prefix, ...rest] as unknown as Path
}

/** The path of a scope in the thread, for people. */
export function pathOf(prefix: Prefix): string {
  return prefix.filter((_, i) => i % 2 === 1).join('/')
}

/** A path below another, which may be the thread's own. */
export function joinPath(path: string, name: string): string {
  return path === '' ? name : `${path}/${name}`
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

/** True while nothing could continue: all questions open, no sleep over, no signal come, and nobody cancelled. */
export function isOnlyWaiting(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run } = state
  if (run?.waiting === undefined || state.cancel) return false
  const isPassed = ([id, what]: News) => run.passed?.[id] === what
  if (!newsOf(state, now).every(isPassed)) return false
  return !run.waiting.some((wait) =>
    wait.kind === 'child'
      ? state.children?.[wait.child]?.ended !== undefined
      : wait.kind === 'signal'
        ? signalsOf(state, wait.name).length > 0 || (wait.until !== undefined && wait.until <= now)
        : wait.until <= now,
  )
}

type News = [pause: string, what: 'answered' | 'expired']

/** Questions that there is something new to say about: which, and what. */
export function newsOf({ pauses = {} }: RunState, now: number): News[] {
  return Object.entries(pauses).flatMap(([id, { used, answer, expiresAt }]): News[] => {
    if (used) return []
    if (answer !== undefined) return [[id, 'answered']]
    return expiresAt !== undefined && expiresAt <= now ? [[id, 'expired']] : []
  })
}

/**
 * True when nothing continues by itself: all runs ended, or what is left waits for someone who has not come yet. Input
 * behind a run that can't continue waits with it.
 */
export function isAtRest(fold: Fold, now: number): boolean {
  const state = fold.state as RunState
  const { run, parked, inputs = [] } = state
  if (parked) return !isAskedFor(fold, now)
  if (run === undefined) return false
  if (run.status === 'running') return isOnlyWaiting(fold, now)
  // Somebody asked for another try, by new input, an answer or a cancellation: whoever looks for work will make it.
  if (isStuck(state)) return !isAskedFor(fold, now)
  const later = nextLater(state)
  return inputs.length === 0 && (later === null || later > now)
}

/** Whether somebody is to look at it now, and not only because it owes something to another thread. */
export function isAskedFor({ index: { wakeAt }, state }: Fold, now: number): boolean {
  if (wakeAt === null || wakeAt > now) return false
  return wakeAt === DUE || (state as RunState).errands === undefined
}

/** A run that ended and is not over: it continues when somebody resumes it. */
export function isStuck({ run }: RunState): boolean {
  return run?.status === 'failed' || run?.status === 'incompatible'
}

/** When a suspended run is due again, if nobody does something first. */
export function nextWake(state: RunState): number | null {
  const passed = state.run?.passed
  const times = [
    ...openPauses(state).flatMap(({ id, expiresAt }) =>
      expiresAt === undefined || passed?.[id] === 'expired' ? [] : [expiresAt],
    ),
    ...(state.run?.waiting ?? []).flatMap(({ until }) => (until === undefined ? [] : [until])),
  ]
  return times.length === 0 ? null : Math.min(...times)
}

/** When the next input comes that was left for later; `null` when there is none. */
export function nextLater({ later = [] }: RunState): number | null {
  return later.length === 0 ? null : Math.min(...later.map(({ runAt }) => runAt))
}

/**
 * When a thread that nobody runs is due: what its run waits for, or input that was left for later. Behind a
 * run that waits, that input waits along.
 */
export function wakeTime(state: RunState): number | null {
  const isWaiting = state.run?.status === 'running' && state.run.waiting !== undefined && !state.parked
  return isWaiting ? nextWake(state) : nextLater(state)
}
