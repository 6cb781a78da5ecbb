import type { Op } from '../../log/entry/ops.js'
import { type Prefix, scopeAt } from '../run/state/read-run-state.js'
import type { RunRecord, RunState } from '../run/state/run-state.js'

/*
 * What single operations of an entry mean to a replay.
 */

/** The scope whose key an operation replaces: of `['scopes', 'a', 'tasks']` it is `['scopes', 'a']`. */
export function prefixOf(op: Op, key: 'tasks' | 'state'): Prefix | undefined {
  const path = op[1] as readonly (string | number)[]
  let at = 0
  while (path[at] === 'scopes') at += 2
  if (op[0] !== 'set' || path[at] !== key || path.length !== at + 1) return undefined
  return path.slice(0, at).map(String)
}

/** The step whose record an operation makes. */
export function stepOf(op: Op): { readonly prefix: Prefix; readonly id: string } | undefined {
  const path = op[1] as readonly (string | number)[]
  if (path.length < 2 || path.at(-2) !== 'steps' || path.length % 2 !== 0) return undefined
  return { prefix: path.slice(0, -2).map(String), id: String(path.at(-1)) }
}

export function versionAt(state: RunState, prefix: Prefix): number {
  return (prefix.length === 0 ? state.run?.stateVersion : scopeAt(state, prefix).stateVersion) ?? 1
}

/** The path of a scope for people. */
export function pathOf(prefix: Prefix): string {
  return prefix.filter((_, i) => i % 2 === 1).join('/')
}

/** Whether a run begins with this: 0.1 first removed its input, and then put it into the state. */
export function takesInput(op: Op, { inputs, run }: RunState): boolean {
  const next = inputs?.[0]?.id
  if (op[0] === 'splice') return op[1][0] === 'inputs' && next !== run?.id
  return op[0] === 'set' && op[1].join() === 'run' && next === (op[2] as unknown as RunRecord).id
}
