import type { AnyAiMessage, SpecVersion } from '../messages/ai-sdk/ai-sdk-types.js'
import { copyJson, equalsJson } from '../messages/frozen-json.js'
import type { Message } from '../messages/message.js'
import {
  type Converted,
  type ConvertedMessages,
  convertMessages,
  type LeftAlone,
} from '../messages/ai-sdk/to-ai-sdk.js'
import { isFrozenError } from '../../runtime/program/state/shown-state.js'

/** A message that was copied for a call, and where it is among those of the conversation. */
interface Copied {
  readonly at: number
  readonly copy: AnyAiMessage
  readonly of: Converted
}

/** Models that were found to change messages that they had left alone before. */
const CHANGING = new WeakSet<object>()

/**
 * The prompt of one call to a model. Models and their middleware may change it in place, for instance to mark the last
 * messages for a provider's cache: none of that may be found in the log or in the prompt of the next turn. So each
 * message is handed out as a copy. Copying all of a long conversation for every turn would cost more than the turn:
 * what a model once returned unchanged is frozen, and from then on handed to this model as it is.
 */
export class CallPrompt {
  /** What the model is called with: a list of its own, so that it can be changed as well. */
  readonly messages: AnyAiMessage[]
  readonly #model: object
  readonly #copied: Copied[] = []
  readonly #left: LeftAlone
  readonly #made: ConvertedMessages['made']

  constructor(model: object, messages: readonly Message[], version: SpecVersion) {
    const { fresh, made, count, left } = convertMessages(messages, version)
    this.#model = model
    this.#made = made
    this.#left = leftBy(model, left)
    const { lead, isLeft } = this.#left
    // The conversation may have been longer when the model was last called.
    const hasLead = this.#left.count <= count
    this.messages = hasLead ? [...fresh, ...lead] : fresh
    for (let at = hasLead ? this.#left.count : 0; at < count; at++) {
      const of = made[at]
      if (of !== undefined) this.messages.push(isLeft[at] === true ? of.message : this.#copy(at, of))
    }
  }

  #copy(at: number, of: Converted): AnyAiMessage {
    const copy = copyJson(of.message)
    if (of.isFixed) this.#copied.push({ at, copy, of })
    return copy
  }

  /** After the call: what the model did not change is not copied for it again. */
  settle(): void {
    if (CHANGING.has(this.#model)) return
    const { isLeft, lead } = this.#left
    for (const { at, copy, of } of this.#copied) isLeft[at] = equalsJson(copy, of.message)
    for (; this.#left.count < this.#made.length; this.#left.count++) {
      const next = this.#made[this.#left.count]
      if (next === undefined) continue
      if (isLeft[this.#left.count] !== true) return
      lead.push(next.message)
    }
  }
}

/** Whether a call failed because the model changed a message in place that was frozen: it gets copies from now on. */
export function changesPrompt(model: object, error: unknown): boolean {
  if (CHANGING.has(model) || !isFrozenError(error)) return false
  CHANGING.add(model)
  return true
}

function leftBy(model: object, all: WeakMap<object, LeftAlone>): LeftAlone {
  const known = CHANGING.has(model) ? undefined : all.get(model)
  const left = known ?? { isLeft: [], lead: [], count: 0 }
  if (known === undefined) all.set(model, left)
  return left
}
