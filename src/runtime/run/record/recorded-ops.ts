import type { Op } from '../../../log/entry/ops.js'
import { type Prefix, scopeAt } from '../state/read-run-state.js'
import type { RunRecord, RunState } from '../state/run-state.js'

/*
 * What single operations of an entry mean to those who read it again.
 */

/** The scope whose key an operation replaces: of `['scopes', 'a', 'tasks']` it is `['scopes', 'a']`. */
export function prefixOf(op: Op, key: 'tasks' | 'state'): Prefix | undefined {
  const prefix = scopeOf(op)
  const isOfKey = op[0] === 'set' && op[1][prefix.length] === key && op[1].length === prefix.length + 1
  return isOfKey ? prefix : undefined
}

/** The step whose record an operation sets or removes: of `['scopes', 'a', 'steps', 'b']` it is `b` of `['scopes', 'a']`. */
export function stepOf(op: Op): { readonly prefix: Prefix; readonly id: string } | undefined {
  const prefix = scopeOf(op)
  const [kind, id, ...rest] = op[1].slice(prefix.length)
  return kind === 'steps' && id !== undefined && rest.length === 0 ? { prefix, id: String(id) } : undefined
}

function scopeOf([, path]: Op): Prefix {
  let at = 0
  while (path[at] === 'scopes') at += 2
  return path.slice(0, at).map(String)
}

export function versionAt(state: RunState, prefix: Prefix): number {
  return (prefix.length === 0 ? state.run?.stateVersion : scopeAt(state, prefix).stateVersion) ?? 1
}

/** Whether a run begins with this: 0.1 first removed its input, and then put it into the state. */
export function takesInput(op: Op, { inputs, run }: RunState): boolean {
  const next = inputs?.[0]?.id
  if (op[0] === 'splice') return op[1][0] === 'inputs' && next !== run?.id
  return op[0] === 'set' && op[1].join() === 'run' && next === (op[2] as unknown as RunRecord).id
}
