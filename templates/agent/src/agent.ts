import { agent, NotExecutedError, tool } from 'holdfast'
import { z } from 'zod'
import { model } from './model.ts'
import { findOrder, openReturn } from './shop.ts'

const inputSchema = z.object({ orderId: z.string().describe('ORD-…') })

export const support = agent({
  name: 'support',
  version: '1.0.0',
  model,
  instructions: 'You help customers of a shop with their orders and returns. Use the tools for every fact; be brief.',
  tools: {
    getOrder: tool({
      description: 'One order with its article, price and status',
      inputSchema,
      // Changes nothing, so it may simply run again after a crash.
      effect: 'read',
      execute: ({ orderId }) => findOrder(orderId) ?? { error: `There is no order ${orderId}.` },
    }),
    openReturn: tool({
      description: 'Opens a return and gives its label',
      inputSchema,
      // After a crash it is called again with the same key, and the shop knows what it did.
      effect: 'idempotent',
      // Nothing runs while a person thinks: the thread rests in the store, for a second or a month.
      needsApproval: ({ orderId }) => (findOrder(orderId)?.price ?? 0) > 100,
      execute: ({ orderId }, { idempotencyKey }) => {
        if (!findOrder(orderId)) throw new NotExecutedError(`There is no order ${orderId}.`)
        return openReturn(orderId, idempotencyKey)
      },
    }),
  },
})
