import { setOwn, type Value } from '../../codec/value.js'
import { applyOp, type Op, type Path, remove, set, type State } from '../../log/entry/ops.js'
import { type Prefix, scopeAt } from '../run/state/read-run-state.js'
import type { RunState, ScopeState, TaskRecord } from '../run/state/run-state.js'

/*
 * An entry that closes a super-step is written in one of two forms. With several tasks, or where reducers make
 * something else of an update, it records the last result and refers to all of them:
 *
 *   set steps.<id> { status, result } · copy and concat from there to the state · set tasks · delete steps · set count
 *
 * What one task alone did to the state is all there is to say, so that its result is not written, only its changes:
 *
 *   set count · set and push in the state · set tasks
 *
 * Both are read for ever.
 */

/** Closes a super-step of one task by the changes that it made to the state. */
export function closeByChanges(
  { steps }: ScopeState,
  at: { readonly steps: Path; readonly tasks: Path },
  count: Op,
  changes: readonly Op[],
  next: readonly TaskRecord[],
): Op[] {
  const ops = [count, ...changes, set(at.tasks, next)]
  // Begun, or with steps of its own.
  if (steps !== undefined) ops.push(remove(at.steps))
  return ops
}

/** The operations of an entry, with every super-step closed in the first form: by the records of its results. */
export function withRecords(ops: readonly Op[], before: State): readonly Op[] {
  if (!ops.some((op) => countedAt(op) !== undefined)) return ops
  const all: Op[] = []
  let state = before
  for (let i = 0; i < ops.length; i++) {
    const op = ops[i] as Op
    const closing = closingAt(ops, i, state)
    if (closing === undefined) {
      all.push(op)
      state = applyOp(state, op)
      continue
    }
    const { record, result, gone, changes } = closing
    all.push(set(record, { status: 'done', result }), ...changes, remove(gone), op)
    for (const change of [op, ...changes]) state = applyOp(state, change)
    i += changes.length
  }
  return all
}

/** What the task of a path returned, according to the operations of the entry that recorded it. */
export function resultIn(ops: readonly Op[], path: string): Readonly<Record<string, Value>> | undefined {
  const names = path.split('/')
  const id = names.pop() as string
  const prefix = names.flatMap((name) => ['scopes', name])
  const record = [...prefix, 'steps', id].join('\n')
  const number = Number.parseInt(id, 10) + 1
  for (const [i, op] of ops.entries()) {
    if (op[0] !== 'set') continue
    if (op[2] === number && countedAt(op)?.join('\n') === prefix.join('\n')) {
      const found = resultOf(changesAfter(ops, i, prefix), prefix)
      if (found) return found
    }
    if (op[1].join('\n') !== record) continue
    const { result } = op[2] as { readonly result?: Value }
    if (typeof result === 'object' && result !== null) return result as Readonly<Record<string, Value>>
  }
  return undefined
}

interface FoundClosing {
  readonly record: Path
  readonly result: Value
  /** What goes with the record: all of them, if there were none before. */
  readonly gone: Path
  /** The operations after the count, up to the next tasks. */
  readonly changes: readonly Op[]
}

/** The closing of the second form that begins with an operation, on the state before it. */
function closingAt(ops: readonly Op[], at: number, state: State): FoundClosing | undefined {
  const prefix = countedAt(ops[at] as Op)
  if (prefix === undefined) return undefined
  const { tasks = [], steps } = scopeAt(state as RunState, prefix)
  const [task] = tasks
  const count = (ops[at] as Op)[2] as number
  // In the first form the count comes last, when the tasks are already those of the next super-step.
  if (task === undefined || tasks.length > 1 || !task.id.startsWith(`${count - 1}:`)) return undefined
  const changes = changesAfter(ops, at, prefix)
  const result = resultOf(changes, prefix)
  if (result === undefined) return undefined
  const all = [...prefix, 'steps'] as unknown as Path
  const record: Path = [...all, task.id]
  return { record, result, gone: steps === undefined ? all : record, changes }
}

function changesAfter(ops: readonly Op[], at: number, prefix: Prefix): readonly Op[] {
  const tasks = [...prefix, 'tasks'].join('\n')
  const end = ops.findIndex((op, i) => i > at && op[0] === 'set' && op[1].join('\n') === tasks)
  return end < 0 ? [] : ops.slice(at + 1, end + 1)
}

/** The update that these changes are made of; undefined if they are not those of one task. */
function resultOf(changes: readonly Op[], prefix: Prefix): Readonly<Record<string, Value>> | undefined {
  if (changes.length === 0) return undefined
  const result: Record<string, Value> = {}
  const depth = prefix.length
  for (const op of changes.slice(0, -1)) {
    const [, path] = op
    const name = String(path[depth + 1])
    const isOwn = path[depth] === 'state' && prefix.every((part, i) => path[i] === part)
    if (!isOwn || path.length < depth + 2) return undefined
    const old = Object.hasOwn(result, name) ? result[name] : undefined
    if (op[0] === 'push') setOwn(result, name, [...((old ?? []) as readonly Value[]), ...op[2]])
    else if (op[0] !== 'set') return undefined
    else if (path.length === depth + 2) setOwn(result, name, op[2])
    else {
      const merged = { ...(old as State | undefined) }
      setOwn(merged, String(path[depth + 2]), op[2])
      setOwn(result, name, merged)
    }
  }
  return result
}

/** The scope whose closed super-steps an operation counts. */
function countedAt(op: Op): Prefix | undefined {
  const path = op[1] as readonly (string | number)[]
  if (op[0] !== 'set' || path.at(-1) !== 'count' || typeof op[2] !== 'number') return undefined
  if (path[0] === 'run') return path.length === 2 ? [] : undefined
  for (let i = 0; i < path.length - 1; i += 2) if (path[i] !== 'scopes') return undefined
  return path.length % 2 === 1 && path.length > 1 ? path.slice(0, -1).map(String) : undefined
}
