import { freezeValue } from '../codec/clone.js'
import { setOwn, type Value } from '../codec/value.js'
import { InvalidProgramError } from '../core/errors.js'
import type { State } from '../log/ops.js'

/**
 * The state as a program may see it: one it can't change, because what it changed in place would be in no record. Of
 * long lists only what is new is looked at.
 */
export class ShownState {
  #of: State = {}
  #shown: State = Object.freeze({})

  show(state: State): State {
    if (state === this.#of) return this.#shown
    const shown: Record<string, Value> = {}
    for (const key of Object.keys(state)) setOwn(shown, key, this.#show(key, state[key] as Value))
    this.#of = state
    this.#shown = Object.freeze(shown)
    return this.#shown
  }

  #show(key: string, value: Value): Value {
    const before = Object.hasOwn(this.#of, key) ? this.#of[key] : undefined
    if (value === before) return this.#shown[key] as Value
    if (!Array.isArray(value)) {
      freezeValue(value)
      return value
    }
    const known = Array.isArray(before) ? before : []
    for (let i = 0; i < value.length; i++) if (value[i] !== known[i]) freezeValue(value[i])
    // A frozen list is slower to read and to copy, so the log keeps its own.
    return Object.freeze([...value])
  }
}

/** What a program did to a frozen value, as an error that says what to do instead; any other error as it is. */
export function explainFrozen(error: unknown, who: string, field: string): unknown {
  if (!(error instanceof TypeError) || !FROZEN.test(error.message)) return error
  return new InvalidProgramError(
    `${who} changed the state in place (or something else that is frozen): ${error.message}.`,
    field,
    'What is changed in place is in no record. Copy it, and return the change as an update.',
    {},
    error,
  )
}

/** How the engine words an attempt to change what is frozen. */
const FROZEN =
  /^Cannot (add property .+, object is not extensible|assign to read only property .+|delete property .+|define property .+, object is not extensible)/
