// @ts-check
import { AIMessage, ToolMessage } from '@langchain/core/messages'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { tool as langchainTool } from '@langchain/core/tools'
import { Annotation, DeltaChannel, messagesDeltaReducer } from '@langchain/langgraph'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { DONE, INSTRUCTIONS, PROMPT, decide, inputSchema, lookUp } from './task.mjs'

/** @typedef {import('@langchain/core/messages').BaseMessage} Message */
/** @typedef {{ saver?: import('@langchain/langgraph-checkpoint').BaseCheckpointSaver, delta?: boolean }} Keeping */

/**
 * LangGraph's own agent, with its defaults: saves run beside the next step (`durability: 'async'`).
 * @param {number} calls how many tools are called in one run
 * @param {Keeping} [keeping]
 */
export function makeTheirs(calls, keeping) {
  const model = scripted((messages) => {
    const next = decide(calls, messages.filter((message) => ToolMessage.isInstance(message)).length)
    return next
      ? new AIMessage({ content: '', tool_calls: [{ id: next.id, name: 'lookUp', args: { order: next.order } }] })
      : new AIMessage(DONE)
  })
  const look = langchainTool(/** @param {{ order: string }} input */ ({ order }) => JSON.stringify(lookUp(order)), {
    name: 'lookUp',
    description: 'Looks an order up',
    schema: inputSchema,
  })
  return createReactAgent({ llm: model, tools: [look], prompt: INSTRUCTIONS, ...kept(keeping) })
}

/** What an agent is given so that its conversation is kept. @param {Keeping} [keeping] */
export function kept({ saver, delta = false } = {}) {
  return {
    ...(saver ? { checkpointer: saver } : {}),
    // Beta: only what a step added is written, and a whole snapshot after 1,000 updates.
    ...(delta ? { stateSchema: Annotation.Root({ messages: () => new DeltaChannel(messagesDeltaReducer) }) } : {}),
  }
}

/** A model that answers at once. @param {(messages: Message[]) => AIMessage} reply @returns {any} */
export function scripted(reply) {
  class Scripted extends BaseChatModel {
    _llmType() {
      return 'scripted'
    }

    bindTools() {
      return this
    }

    /** @param {Message[]} messages */
    async _generate(messages) {
      return { generations: [{ text: '', message: reply(messages) }] }
    }
  }
  return new Scripted({})
}

/** @param {ReturnType<typeof makeTheirs>} program @param {string} thread @param {number} calls */
export async function runTheirs(program, thread, calls) {
  const limits = { recursionLimit: calls * 2 + 10, configurable: { thread_id: thread } }
  const { messages } = await program.invoke({ messages: [{ role: 'user', content: PROMPT }] }, limits)
  if (messages.length !== calls * 2 + 2) throw new Error(`Their agent made ${messages.length} messages.`)
}
