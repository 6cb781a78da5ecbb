import { showItems, showProperties, showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { InvalidProgramError } from '../../core/errors.js'
import type { State } from '../../log/entry/ops.js'

/**
 * The state as a program may see it: one it can't change, because changes in place would not be recorded. In long
 * lists, only what is new is processed.
 */
export class ShownState {
  #of: State = {}
  #shown: State = Object.freeze({})

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
    if (!Array.isArray(value)) return showValue(value)
    const known: readonly Value[] = Array.isArray(before) ? before : []
    const shown = this.#shown[key] as readonly Value[]
    const items = [...value] as Value[]
    for (let i = 0; i < items.length; i++) {
      // Bytes are handled by the list itself.
      if (items[i] instanceof Uint8Array) continue
      items[i] = items[i] === known[i] ? (shown[i] as Value) : showValue(items[i] as Value)
    }
    // A frozen list is slower to read and to copy, so the log keeps its own.
    return showItems(items)
  }
}

/** A state of which parts are already frozen. */
export function showState(state: State): State {
  return showProperties(Object.keys(state).map((key) => [key, showValue(state[key] as Value)]))
}

/**
 * An attempt by a program to change a frozen value, as an error that says what to do instead; any other error
 * unchanged.
 */
export function explainFrozen(error: unknown, who: string, field: string): unknown {
  if (!(error instanceof TypeError) || !FROZEN.test(error.message)) return error
  return new InvalidProgramError(
    `${who} changed the state in place (or something else that is frozen): ${error.message}.`,
    field,
    'Changes in place are not recorded. Copy it, and return the change as an update.',
    {},
    error,
  )
}

/** How the JavaScript engine words an attempt to change what is frozen. */
const FROZEN =
  /^Cannot (add property .+, object is not extensible|assign to read only property .+|delete property .+|define property .+, object is not extensible)/
