import { showItems, showProperties, showValue } from '../../../codec/clone.js'
import type { Value } from '../../../codec/value.js'
import { InvalidProgramError } from '../../../core/errors.js'
import type { State } from '../../../log/entry/ops.js'

/**
 * The state as a program may see it: one it can't change, because changes in place would not be recorded. In long
 * lists, only what is new is processed.
 */
export class ShownState {
  #of: State = {}
  #shown: State = Object.freeze({})
  readonly #lists = new Map<string, ShownList>()

  show(state: State): State {
    if (state === this.#of) return this.#shown
    const shown = showProperties(Object.keys(state).map((key) => [key, this.#show(key, state[key] as Value)]))
    this.#of = state
    this.#shown = shown
    return shown
  }

  #show(key: string, value: Value): Value {
    const before = Object.hasOwn(this.#of, key) ? this.#of[key] : undefined
    // Bytes are handled by the state itself.
    if (value instanceof Uint8Array) return value
    if (value === before) return this.#shown[key] as Value
    return Array.isArray(value) ? this.#showList(key, value) : showValue(value)
  }

  #showList(key: string, value: readonly Value[]): Value {
    const { of: known, items: shown, hasBytes: hadBytes } = this.#lists.get(key) ?? NO_LIST
    const items = [...value]
    let hasBytes = hadBytes
    let isSame = shown === known
    // Most lists only grow: what was shown as it is in the log is shown so again.
    for (let i = isSame ? countSame(value, known) : 0; i < items.length; i++) {
      const item = items[i] as Value
      // Bytes are handled by the list itself.
      if (item === known[i]) items[i] = shown[i] as Value
      else if (item instanceof Uint8Array) hasBytes = true
      else items[i] = showValue(item)
      isSame &&= items[i] === item
    }
    // A frozen list is slower to read and to copy: the log keeps its own, which serves us as well.
    this.#lists.set(key, { of: value, items: isSame ? value : [...items], hasBytes })
    return hasBytes ? showItems(items) : Object.freeze(items)
  }
}

/** How many items two lists have in common at their start. */
function countSame(one: readonly Value[], other: readonly Value[]): number {
  const length = Math.min(one.length, other.length)
  let count = 0
  while (count < length && one[count] === other[count]) count++
  return count
}

/** A list, and what is shown of its items. */
interface ShownList {
  readonly of: readonly Value[]
  readonly items: readonly Value[]
  readonly hasBytes: boolean
}

const EMPTY: readonly Value[] = []
const NO_LIST: ShownList = { of: EMPTY, items: EMPTY, hasBytes: false }

/** A state of which parts are already frozen. */
export function showState(state: State): State {
  return showProperties(Object.keys(state).map((key) => [key, showValue(state[key] as Value)]))
}

/**
 * An attempt by a program to change a frozen value, as an error that says what to do instead; any other error
 * unchanged.
 */
export function explainFrozen(error: unknown, who: string, field: string): unknown {
  if (!isFrozenError(error)) return error
  return new InvalidProgramError(
    `${who} changed the state in place (or something else that is frozen): ${error.message}.`,
    field,
    'Changes in place are not recorded. Copy it, and return the change as an update.',
    {},
    error,
  )
}

/** Whether code failed because it tried to change something that is frozen. */
export function isFrozenError(error: unknown): error is TypeError {
  return error instanceof TypeError && FROZEN.test(error.message)
}

/** How the JavaScript engine words an attempt to change what is frozen. */
const FROZEN =
  /^Cannot (add property .+, object is not extensible|assign to read only property .+|delete property .+|define property .+, object is not extensible)/
