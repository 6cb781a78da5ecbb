import { agent, type LanguageModel, tool } from 'holdfast'
import { z } from 'zod'

/** An agent that looks orders up by itself, and asks a person before it returns one. */
export function makeSupport(model: LanguageModel) {
  return agent({
    name: 'support',
    version: '1.0.0',
    model,
    instructions: 'You help customers of a small shop with their orders. Be brief.',
    tools: {
      getOrder: tool({
        description: 'Looks an order up',
        inputSchema: z.object({ orderId: z.string() }),
        effect: 'read',
        execute: async ({ orderId }) => ({ orderId, status: 'shipped', items: ['boots'] }),
      }),
      returnOrder: tool({
        description: 'Opens a return',
        inputSchema: z.object({ orderId: z.string() }),
        effect: 'idempotent',
        needsApproval: true,
        execute: async ({ orderId }) => ({ opened: `RET-${orderId}` }),
      }),
    },
  })
}
