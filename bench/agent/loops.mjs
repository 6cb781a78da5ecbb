// @ts-check
import { AIMessage, ToolMessage } from '@langchain/core/messages'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { tool as langchainTool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { agent, tool } from 'holdfast'
import { z } from 'zod'

/** What a tool gives back, of the size that a look at an order has. @param {string} order */
const lookUp = (order) => ({
  order,
  status: 'in transit',
  carrier: 'post',
  note: 'left the depot in the morning '.repeat(8),
})
const inputSchema = z.object({ order: z.string() })
const INSTRUCTIONS = 'You help customers with their orders.'
const PROMPT = 'Where are all of my orders?'

/** The model of both: it asks for one order after the other, at no cost, and then it is done. @param {number} calls @param {number} sofar */
function decide(calls, sofar) {
  return sofar < calls ? { id: `call-${sofar}`, order: `ORD-${sofar}` } : undefined
}

/** @param {number} calls how many tools are called in one run */
export function makeOurs(calls) {
  const model = {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'none',
    supportedUrls: {},
    /** @param {{ prompt: { role: string }[] }} options */
    async doGenerate({ prompt }) {
      const next = decide(calls, prompt.filter(({ role }) => role === 'tool').length)
      const content = next
        ? [{ type: 'tool-call', toolCallId: next.id, toolName: 'lookUp', input: JSON.stringify({ order: next.order }) }]
        : [{ type: 'text', text: 'All of them are on their way.' }]
      const finishReason = { unified: next ? 'tool-calls' : 'stop', raw: undefined }
      const usage = { inputTokens: { total: 10 }, outputTokens: { total: 10 } }
      return { content, finishReason, usage, warnings: [] }
    },
    async doStream() {
      throw new Error('not used')
    },
  }
  return agent({
    name: 'looker',
    version: '1.0.0',
    model: /** @type {any} */ (model),
    instructions: INSTRUCTIONS,
    tools: {
      lookUp: tool({
        description: 'Looks an order up',
        inputSchema,
        effect: 'read',
        execute: ({ order }) => lookUp(order),
      }),
    },
    maxTurns: calls + 10,
    stream: false,
  })
}

/** @param {number} calls @param {import('@langchain/langgraph-checkpoint').BaseCheckpointSaver} [saver] */
export function makeTheirs(calls, saver) {
  class Scripted extends BaseChatModel {
    _llmType() {
      return 'scripted'
    }

    bindTools() {
      return this
    }

    /** @param {import('@langchain/core/messages').BaseMessage[]} messages */
    async _generate(messages) {
      const next = decide(calls, messages.filter((message) => ToolMessage.isInstance(message)).length)
      const message = next
        ? new AIMessage({ content: '', tool_calls: [{ id: next.id, name: 'lookUp', args: { order: next.order } }] })
        : new AIMessage('All of them are on their way.')
      return { generations: [{ text: '', message }] }
    }
  }
  const look = langchainTool(/** @param {{ order: string }} input */ ({ order }) => JSON.stringify(lookUp(order)), {
    name: 'lookUp',
    description: 'Looks an order up',
    schema: inputSchema,
  })
  return createReactAgent({
    llm: /** @type {any} */ (new Scripted({})),
    tools: [look],
    prompt: INSTRUCTIONS,
    ...(saver ? { checkpointer: saver } : {}),
  })
}

/** @param {ReturnType<typeof makeTheirs>} program @param {string} thread @param {number} calls */
export async function runTheirs(program, thread, calls) {
  const limits = { recursionLimit: calls * 2 + 10, configurable: { thread_id: thread } }
  const { messages } = await program.invoke({ messages: [{ role: 'user', content: PROMPT }] }, limits)
  if (messages.length !== calls * 2 + 2) throw new Error(`Their agent made ${messages.length} messages.`)
}

/** @param {import('holdfast').Holdfast} hf @param {ReturnType<typeof makeOurs>} program @param {string} thread @param {number} calls */
export async function runOurs(hf, program, thread, calls) {
  const outcome = await hf.thread(program, thread).run({ input: PROMPT })
  if (outcome.status !== 'completed') throw new Error(`Our agent ended as ${JSON.stringify(outcome)}`)
  if (outcome.state.messages.length !== calls * 2 + 2) throw new Error('Our agent made another number of messages.')
}
