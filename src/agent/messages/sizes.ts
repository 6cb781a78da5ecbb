import { estimateTokens, type TokenCounter } from './estimate.js'
import type { Message } from './message.js'

/** What counts the tokens of a prompt. */
export interface PromptSizes {
  of(messages: readonly Message[], tools?: readonly object[]): number
}

/**
 * Estimates that are made once for each message and tool. A conversation is measured before and after every turn, and
 * counting all of it each time would make turns slower the longer it gets, especially with a real tokenizer.
 */
export class RememberedSizes implements PromptSizes {
  readonly #count: TokenCounter | undefined
  readonly #known = new WeakMap<object, number>()
  readonly #frame: number

  constructor(count?: TokenCounter) {
    this.#count = count
    this.#frame = this.#estimate([], [])
  }

  of(messages: readonly Message[], tools: readonly object[] = []): number {
    let tokens = this.#frame
    for (const message of messages) tokens += this.#known.get(message) ?? this.#remember(message, [message], [])
    for (const tool of tools) tokens += this.#known.get(tool) ?? this.#remember(tool, [], [tool])
    return tokens
  }

  #remember(one: object, messages: readonly Message[], tools: readonly object[]): number {
    const size = this.#estimate(messages, tools) - this.#frame
    this.#known.set(one, size)
    return size
  }

  #estimate(messages: readonly Message[], tools: readonly object[]): number {
    return estimateTokens(messages, { tools, ...(this.#count === undefined ? {} : { count: this.#count }) })
  }
}
