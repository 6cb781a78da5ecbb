import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { agent, tool } from 'holdfast'
import { z } from 'zod'

/** An agent whose tool takes for ever the first time, which `onSlow` is told of. */
export function makeSlowAgent(modelUrl, onSlow) {
  return agent({
    name: 'slow',
    version: '1.0.0',
    model: createOpenAICompatible({ name: 'local', baseURL: modelUrl, includeUsage: true })('scripted'),
    tools: {
      wait: tool({
        description: 'Waits',
        inputSchema: z.object({}),
        effect: 'read',
        execute: async () => {
          if (!onSlow) return 'done'
          onSlow()
          return new Promise((resolve) => setTimeout(resolve, 600_000))
        },
      }),
    },
  })
}
