// @ts-check
import { agent, tool } from 'holdfast'
import { DONE, INSTRUCTIONS, PROMPT, decide, inputSchema, lookUp } from './task.mjs'

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
        : [{ type: 'text', text: DONE }]
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

/** @param {import('holdfast').Holdfast} hf @param {ReturnType<typeof makeOurs>} program @param {string} thread @param {number} calls */
export async function runOurs(hf, program, thread, calls) {
  const outcome = await hf.thread(program, thread).run({ input: PROMPT })
  if (outcome.status !== 'completed') throw new Error(`Our agent ended as ${JSON.stringify(outcome)}`)
  if (outcome.state.messages.length !== calls * 2 + 2) throw new Error('Our agent made another number of messages.')
}
