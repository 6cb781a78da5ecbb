// @ts-check
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { uuid6 } from '@langchain/langgraph-checkpoint'
import { makeTurns } from '../turns.mjs'

/** @typedef {import('@langchain/langgraph-checkpoint').BaseCheckpointSaver} Saver */
/** @typedef {import('@langchain/core/messages').BaseMessage} Message */

/** A question, a tool call, its result and an answer: an agent saves after each. */
export const STEPS_PER_TURN = 4

/**
 * The messages of a support agent, about 2 KB a turn.
 * @param {number} seed
 * @param {number} turns
 * @returns {Message[]}
 */
export function makeMessages(seed, turns) {
  return makeTurns(seed, turns).flatMap(({ ops }) => {
    const [, , items] = /** @type {['push', unknown, any[]]} */ (/** @type {unknown} */ (ops[0]))
    return items.map(({ id, role, content, toolCalls, toolCallId }) => {
      if (role === 'user') return new HumanMessage({ id, content })
      if (role === 'tool') return new ToolMessage({ id, content: JSON.stringify(content), tool_call_id: toolCallId })
      const calls = /** @type {any[]} */ (toolCalls ?? [])
      const tool_calls = calls.map((call) => ({ id: call.id, name: call.name, args: call.arguments }))
      return new AIMessage({ id, content, tool_calls })
    })
  })
}

/** An agent's conversation as LangGraph saves it: after each message a checkpoint, and the writes that led to the next. */
export class Conversation {
  /** @type {Message[]} */
  #messages = []
  #version = 0
  /** @type {any} */
  #at
  #subject
  #source

  /**
   * @param {{ readonly saver: Saver }} subject
   * @param {string} thread
   * @param {readonly Message[]} source
   */
  constructor(subject, thread, source) {
    this.#subject = subject
    this.#source = source
    this.#at = { configurable: { thread_id: thread, checkpoint_ns: '' } }
  }

  /** Begins with so many messages in one checkpoint. For savers that write all of them each time anyway. @param {number} count */
  async begin(count) {
    this.#messages = this.#source.slice(0, count)
    await this.#put()
  }

  /** One more message: what one step of an agent costs. */
  async step() {
    const next = this.#source[this.#messages.length]
    if (next === undefined) throw new Error('The conversation is over.')
    // LangGraph's reducer makes a new list of the same messages.
    this.#messages = [...this.#messages, next]
    await this.#put()
    await this.#subject.saver.putWrites(this.#at, [['messages', [next]]], `task-${this.#version}`)
  }

  /** @param {number} count */
  async steps(count) {
    for (let i = 0; i < count; i++) await this.step()
  }

  async #put() {
    this.#version++
    const checkpoint = {
      v: 4,
      id: uuid6(this.#version % 16_000),
      ts: new Date().toISOString(),
      channel_values: { messages: this.#messages, 'branch:to:agent': null },
      channel_versions: { __start__: 1, messages: this.#version, 'branch:to:agent': this.#version },
      versions_seen: { __input__: {}, __start__: { __start__: 1 }, agent: { 'branch:to:agent': this.#version - 1 } },
    }
    /** @type {any} */
    const metadata = { source: 'loop', step: this.#version, parents: {}, thread_id: this.#at.configurable.thread_id }
    const versions = { messages: this.#version, 'branch:to:agent': this.#version }
    this.#at = await this.#subject.saver.put(this.#at, checkpoint, metadata, versions)
  }
}
