// @ts-check
import { AIMessage, HumanMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { createReactAgent } from '@langchain/langgraph/prebuilt'
import { agent, tool } from 'holdfast'
import { scriptedModel } from '../agent/model.mjs'
import { kept, scripted } from '../agent/theirs.mjs'
import { INSTRUCTIONS, inputSchema, turnOf } from './talk.mjs'

/** @typedef {import('./talk.mjs').Said} Said */

/** @param {readonly Said[]} talk */
export function makeOurs(talk) {
  const model = scriptedModel((prompt) => {
    const last = prompt.at(-1)
    const question = last?.role === 'user' ? last.content[0].text : prompt.at(-3)?.content[0].text
    const said = turnOf(talk, question)
    if (last?.role !== 'user') return [{ type: 'text', text: said.answer }]
    const input = JSON.stringify({ orderId: said.orderId })
    return [
      { type: 'text', text: said.thought },
      { type: 'tool-call', toolCallId: `call-${said.orderId}`, toolName: 'lookUp', input },
    ]
  })
  return agent({
    name: 'support',
    version: '1.0.0',
    model,
    instructions: INSTRUCTIONS,
    tools: {
      lookUp: tool({
        description: 'Looks an order up',
        inputSchema,
        effect: 'read',
        execute: ({ orderId }) => turnOf(talk, orderId).found,
      }),
    },
    stream: false,
  })
}

/** @param {readonly Said[]} talk @param {import('../agent/theirs.mjs').Keeping} keeping */
export function makeTheirs(talk, keeping) {
  const model = scripted((messages) => {
    const last = messages.at(-1)
    if (HumanMessage.isInstance(last)) {
      const { orderId, thought } = turnOf(talk, String(last.content))
      const tool_calls = [{ id: `call-${orderId}`, name: 'lookUp', args: { orderId } }]
      return new AIMessage({ content: thought, tool_calls })
    }
    return new AIMessage(turnOf(talk, String(messages.at(-3)?.content)).answer)
  })
  const look = langchainTool(
    /** @param {{ orderId: string }} input */ ({ orderId }) => JSON.stringify(turnOf(talk, orderId).found),
    { name: 'lookUp', description: 'Looks an order up', schema: inputSchema },
  )
  return createReactAgent({ llm: model, tools: [look], prompt: INSTRUCTIONS, ...kept(keeping) })
}
