import { isDeepStrictEqual } from 'node:util'
import type { Value } from '../../../codec/value.js'
import { InvalidProgramError } from '../../../core/errors.js'
import type { State } from '../../../log/entry/ops.js'
import { isPlainObject } from './reduce-key.js'
import type { StateKey } from './state-key.js'
import type { StateShape } from './state-shape.js'

/** How a subgraph's state is connected to its parent's if the node does not say. */
export interface SharedState {
  readonly enter: (state: State, input: unknown) => State
  readonly leave: (subState: State, state: State) => State
}

/**
 * Keys that both declare the same way are shared. `leave` returns only what the subgraph changed: handing everything
 * back would duplicate lists, and overwrite what a sibling changed in the meantime with old values. Keys with custom
 * reducers are not shared, because a value is not an update of them.
 */
export function shareState(node: string, parent: StateShape, sub: StateShape): SharedState {
  const shared = [...sub.keys].filter(([name, key]) => {
    return key.kind !== 'reduced' && parent.keys.get(name)?.kind === key.kind
  })
  return {
    enter(state, input) {
      if (input !== undefined) {
        throw new InvalidProgramError(
          `The subgraph at "${node}" was sent an item, but its node does not say what to do with it.`,
          `node "${node}"`,
          'Give the node { input: (state, item) => …, output: … }.',
          { node },
        )
      }
      return pick(shared, (name) => own(state, name))
    },
    leave: (subState, state) => pick(shared, (name, key) => changed(key, own(subState, name), own(state, name))),
  }
}

function pick(
  keys: readonly (readonly [string, StateKey])[],
  read: (name: string, key: StateKey) => Value | undefined,
): State {
  const picked: Record<string, Value> = {}
  for (const [name, key] of keys) {
    const value = read(name, key)
    if (value !== undefined) picked[name] = value
  }
  return picked
}

function changed(key: StateKey, after: Value | undefined, entered: Value | undefined): Value | undefined {
  if (after === undefined || isDeepStrictEqual(after, entered)) return undefined
  if (key.kind === 'append' && Array.isArray(after)) {
    const initial = key.initial?.() as readonly Value[] | undefined
    const own = after.slice((initial?.length ?? 0) + (Array.isArray(entered) ? entered.length : 0))
    return own.length === 0 ? undefined : own
  }
  if (key.kind === 'merge' && isPlainObject(after) && isPlainObject(entered)) {
    const entries = Object.entries(after)
    return Object.fromEntries(entries.filter(([name, value]) => !hasSame(entered, name, value)))
  }
  return after
}

// A key may be named `constructor`: only what the state has counts, not what every object has.
function own(state: State, name: string): Value | undefined {
  return Object.hasOwn(state, name) ? state[name] : undefined
}

function hasSame(entered: Record<string, Value>, name: string, value: Value): boolean {
  return Object.hasOwn(entered, name) && isDeepStrictEqual(entered[name], value)
}
