// @ts-check
import { agent, tool } from 'holdfast'
import { scriptedModel } from './model.mjs'
import { DONE, INSTRUCTIONS, PROMPT, decide, inputSchema, lookUp } from './task.mjs'

/** @param {number} calls how many tools are called in one run */
export function makeOurs(calls) {
  const model = scriptedModel((prompt) => {
    const next = decide(calls, prompt.filter(({ role }) => role === 'tool').length)
    return next
      ? [{ type: 'tool-call', toolCallId: next.id, toolName: 'lookUp', input: JSON.stringify({ order: next.order }) }]
      : [{ type: 'text', text: DONE }]
  })
  return agent({
    name: 'looker',
    version: '1.0.0',
    model,
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

/** @param {import('holdfast').Holdfast} hf @param {ReturnType<typeof makeOurs>} program @param {string} thread @param {number} calls */
export async function runOurs(hf, program, thread, calls) {
  const outcome = await hf.thread(program, thread).run({ input: PROMPT })
  if (outcome.status !== 'completed') throw new Error(`Our agent ended as ${JSON.stringify(outcome)}`)
  if (outcome.state.messages.length !== calls * 2 + 2) throw new Error('Our agent made another number of messages.')
}
